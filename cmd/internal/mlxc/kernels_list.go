package mlxc

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

type kernelsCmd struct {
	Library string   `arg:"" help:"Compiled Metal library (.metallib), - is standard input; or Metal source (.metal), which is compiled."`
	Names   []string `arg:"" optional:"" help:"Names of kernels, or patterns as a shell's: 'rms*'."`
	JSON    bool     `name:"json" xor:"form" help:"Print JSON."`
	Text    bool     `xor:"form" help:"Print them as a graph's text has them, to write dispatches of them (docs/text-format.md)."`
	Trust   bool     `name:"trust-kernels" help:"Compile a source also where this system has no way to confine the compiler (SECURITY.md)."`
}

// fewKernels is the max number of kernels that are printed in full.
const fewKernels = 4

func (c *kernelsCmd) Run(env *cli.Env) error {
	if filepath.Ext(c.Library) == ".metal" {
		return c.source(env)
	}
	lib, err := inputs.OpenLibrary(c.Library)
	if err != nil {
		return err
	}
	defer lib.Close()
	chosen, err := c.choose(lib)
	if err != nil {
		return err
	}
	list := make([]described, 0, len(chosen))
	var failed []error // kernels that are damaged or have features that cannot be described
	for _, entry := range chosen {
		if err := env.Context.Err(); err != nil {
			return err
		}
		k, err := lib.Describe(entry.Name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		list = append(list, described{entry, k})
	}
	library := ir.Library{Kind: ir.Metallib, Path: filepath.Base(lib.File)}
	if c.Text {
		library.Digest = sha256.Sum256(lib.Data)
	}
	if err := c.print(env.Context, env.Stdout, library, list); err != nil {
		return err
	}
	if lib.Skipped > 0 && len(c.Names) == 0 && !c.JSON && !c.Text {
		fmt.Fprintf(env.Stdout, "%d function(s) are no kernels.\n", lib.Skipped)
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d kernel(s) cannot be described, the first: %w", len(failed), len(chosen), failed[0])
}

// source compiles a Metal source and prints its kernels.
func (c *kernelsCmd) source(env *cli.Env) error {
	text, err := readSource(c.Library)
	if err != nil {
		return err
	}
	o := mslc.Options{Trust: c.Trust}
	if !slices.ContainsFunc(c.Names, func(n string) bool { return strings.ContainsAny(n, `*?[\`) }) {
		o.Kernels = c.Names // those of a large family alone
	}
	u, err := mslc.Compile(env.Context, c.Library, text, o)
	if err != nil {
		return err
	}
	var list []described
	for i := range u.Kernels {
		k := &u.Kernels[i]
		wanted := len(c.Names) == 0
		for _, pattern := range c.Names {
			is, err := path.Match(pattern, k.Name)
			if err != nil {
				return badPattern(pattern)
			}
			wanted = wanted || is || pattern == k.Name
		}
		if wanted {
			list = append(list, described{nil, k})
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("%s has no kernel that is asked for (it has %d)", c.Library, len(u.Kernels))
	}
	return c.print(env.Context, env.Stdout, ir.Library{Kind: ir.SourceFile, Path: filepath.Base(c.Library), Digest: sha256.Sum256([]byte(text))}, list)
}

func badPattern(pattern string) error {
	return cli.BadUsage("%q is no pattern: a bracket is open, or a backslash ends it", pattern)
}

func (c *kernelsCmd) print(ctx context.Context, w io.Writer, lib ir.Library, list []described) error {
	switch {
	case c.JSON:
		out := make([]kernelJSON, len(list))
		for i, d := range list {
			out[i] = d.json()
		}
		return cli.JSON(ctx, w, map[string]any{"kernels": out})
	case c.Text:
		return printText(w, lib, list)
	case len(list) > fewKernels:
		if err := printLines(w, list); err != nil {
			return err
		}
	default:
		for i, d := range list {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := d.print(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose returns the kernels whose names match the arguments.
func (c *kernelsCmd) choose(lib *inputs.Library) (out []*metallib.Kernel, err error) {
	wanted := make([]bool, len(lib.Kernels))
	for _, pattern := range c.Names {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, badPattern(pattern)
		}
		found := false
		for i := range lib.Kernels {
			name := lib.Kernels[i].Name
			if is, _ := path.Match(pattern, name); is || name == pattern {
				wanted[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no kernel %q%s", lib.File, pattern, similar(lib, pattern))
		}
	}
	for i := range lib.Kernels {
		if wanted[i] || len(c.Names) == 0 {
			out = append(out, &lib.Kernels[i])
		}
	}
	slices.SortFunc(out, func(a, b *metallib.Kernel) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// similar says how many kernel names contain the text that matched none.
func similar(lib *inputs.Library, part string) string {
	n := 0
	for i := range lib.Kernels {
		if strings.Contains(lib.Kernels[i].Name, part) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d name(s) contain it: '*%s*')", n, part)
}

// described is a kernel of a library.
type described struct {
	entry *metallib.Kernel // nil: it comes from a source
	*air.Kernel
}

// threadgroup returns the bytes of the kernel's threadgroup variables.
func (d described) threadgroup() (bytes int64) {
	for _, m := range d.Threadgroup {
		bytes += m.Size
	}
	return bytes
}

// size returns the size of the kernel's bitcode for people, which a source has not.
func (d described) size() any {
	if d.entry == nil {
		return ""
	}
	return cli.Bytes(d.entry.Size)
}

// printLines prints a line for each kernel.
func printLines(w io.Writer, list []described) error {
	t := cli.Table{Header: []string{"kernel", "reads", "writes", "const", "tg", "if", "fc", "memory", "threads", "bitcode"}}
	for _, d := range list {
		var read, written, constant, group, conditional int
		for i := range d.Args {
			a := &d.Args[i]
			switch {
			case a.Attribute != "":
				continue
			case a.Space == air.Threadgroup:
				group++
			case a.Space == air.Constant:
				constant++
			case a.Access == air.Read:
				read++
			default:
				written++
			}
			if a.If != "" {
				conditional++
			}
		}
		most := "any"
		if d.MaxThreadgroup > 0 {
			most = fmt.Sprintf("≤ %d", d.MaxThreadgroup)
		}
		t.Add(d.Name, read, written, constant, group, conditional, len(d.Constants), cli.Bytes(d.threadgroup()), most, d.size())
	}
	if err := t.Print(w); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, legend)
	return err
}

// legend explains the column heads of printLines, which are short because kernel names are long.
const legend = `arguments: device memory that the kernel reads, writes; constant; tg: threadgroup; if: those that a constant decides on
fc: function constants; memory: threadgroup memory of its own; threads: in a threadgroup
`

// print prints everything that the library says about a kernel.
func (d described) print(w io.Writer) error {
	if d.entry == nil {
		fmt.Fprintf(w, "kernel %s: compiled from source", d.Name)
	} else {
		fmt.Fprintf(w, "kernel %s: %s of bitcode, AIR %s, Metal %s", d.Name, d.size(), d.AIR, d.Metal)
	}
	for _, o := range d.Options {
		fmt.Fprintf(w, ", %s", o)
	}
	fmt.Fprintln(w)
	t := cli.Table{Header: []string{"slot", "argument", "type", "what", "bytes", "only if"}}
	for i := range d.Args {
		a := &d.Args[i]
		if a.Attribute != "" {
			t.Add("", a.Name, a.Type, a.Attribute+unused(a), "", a.If)
			continue
		}
		ty, bytes := a.Type+"*", ""
		if a.Size > 0 {
			ty, bytes = a.Type+"&", fmt.Sprint(a.Size)
		}
		t.Add(fmt.Sprint(a.Index), a.Name, ty, a.Space.String()+" "+a.Access.String()+unused(a), bytes, a.If)
		addFields(&t, a.Name, 0, a.Fields)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	if len(d.Constants) > 0 {
		t := cli.Table{Header: []string{"index", "function constant", "type"}}
		for _, c := range d.Constants {
			t.Add(c.Index, c.Name, c.Type)
		}
		if err := t.Print(w); err != nil {
			return err
		}
	}
	if n := len(d.Threadgroup); n > 0 {
		fmt.Fprintf(w, "threadgroup memory of its own: %s in %d variable(s)\n", cli.Bytes(d.threadgroup()), n)
	}
	if d.MaxThreadgroup > 0 {
		fmt.Fprintf(w, "at most %d threads in a threadgroup\n", d.MaxThreadgroup)
	}
	return nil
}

// addFields adds a row for each field of a struct that lies at an offset.
func addFields(t *cli.Table, name string, offset int64, fields []air.Field) {
	for _, f := range fields {
		ty := f.Type
		if f.Array > 0 {
			ty += fmt.Sprintf("[%d]", f.Array)
		}
		t.Add("", name+"."+f.Name, ty, fmt.Sprintf("at %d", offset+f.Offset), fmt.Sprint(f.Size*int64(max(f.Array, 1))), "")
		if f.Array == 0 {
			addFields(t, name+"."+f.Name, offset+f.Offset, f.Fields)
		}
	}
}

// printText prints a graph without commands that has the kernels. Function constants are zero, because the library
// does not have their values.
func printText(w io.Writer, library ir.Library, list []described) error {
	g := &ir.Graph{Name: strings.TrimSuffix(library.Path, filepath.Ext(library.Path))}
	for _, d := range list {
		k, err := bind.Kernel(d.Kernel, library)
		if err != nil {
			return fmt.Errorf("%s: kernel %q: %w", library.Path, d.Name, err)
		}
		g.Kernels = append(g.Kernels, k)
	}
	return mlxt.Print(w, &ir.Module{Graphs: []*ir.Graph{g}})
}

func unused(a *air.Arg) string {
	if a.Unused {
		return ", unused"
	}
	return ""
}

type kernelJSON struct {
	Name       string         `json:"name"`
	Bitcode    int64          `json:"bitcode_bytes,omitempty"` // of a library
	SHA256     string         `json:"sha256,omitempty"`
	AIR        string         `json:"air"`
	Metal      string         `json:"metal"`
	Options    []string       `json:"options"`
	Arguments  []argumentJSON `json:"arguments"`
	Constants  []constantJSON `json:"function_constants"`
	Memory     []memoryJSON   `json:"threadgroup_memory"`
	MaxThreads int            `json:"max_threads,omitempty"`
}

type argumentJSON struct {
	Name      string      `json:"name"`
	Type      string      `json:"type"`
	Attribute string      `json:"attribute,omitempty"`
	Slot      *int        `json:"slot,omitempty"`
	Space     string      `json:"space,omitempty"`
	Access    string      `json:"access,omitempty"`
	Bytes     int64       `json:"bytes,omitempty"`
	TypeBytes int64       `json:"type_bytes,omitempty"`
	TypeAlign int64       `json:"type_align,omitempty"`
	Fields    []fieldJSON `json:"fields,omitempty"`
	Unused    bool        `json:"unused,omitempty"`
	If        string      `json:"if,omitempty"`
}

type fieldJSON struct {
	Name   string      `json:"name"`
	Type   string      `json:"type"`
	Offset int64       `json:"offset"`
	Bytes  int64       `json:"bytes"`
	Array  int         `json:"array,omitempty"`
	Fields []fieldJSON `json:"fields,omitempty"`
}

type constantJSON struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	Type  string `json:"type"`
}

type memoryJSON struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Align int64  `json:"align"`
}

func (d described) json() kernelJSON {
	out := kernelJSON{
		Name: d.Name, AIR: d.AIR.String(), Metal: d.Metal.String(),
		Options: append([]string{}, d.Options...), Arguments: []argumentJSON{}, Constants: []constantJSON{}, Memory: []memoryJSON{}, MaxThreads: d.MaxThreadgroup,
	}
	if d.entry != nil {
		out.Bitcode, out.SHA256 = d.entry.Size, fmt.Sprintf("%x", d.entry.Hash)
	}
	for i := range d.Args {
		a := &d.Args[i]
		j := argumentJSON{Name: a.Name, Type: a.Type, Attribute: a.Attribute, Bytes: a.Size, TypeBytes: a.TypeSize, TypeAlign: a.TypeAlign, Fields: fieldsJSON(a.Fields), Unused: a.Unused, If: a.If}
		if a.Attribute == "" {
			j.Slot, j.Space, j.Access = &a.Index, a.Space.String(), a.Access.String()
		}
		out.Arguments = append(out.Arguments, j)
	}
	for _, c := range d.Constants {
		out.Constants = append(out.Constants, constantJSON(c))
	}
	for _, m := range d.Threadgroup {
		out.Memory = append(out.Memory, memoryJSON{m.Name, m.Size, m.Align})
	}
	return out
}

func fieldsJSON(fields []air.Field) (out []fieldJSON) {
	for _, f := range fields {
		out = append(out, fieldJSON{f.Name, f.Type, f.Offset, f.Size, f.Array, fieldsJSON(f.Fields)})
	}
	return out
}
