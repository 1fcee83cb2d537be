package metallib_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

var (
	sampleSize = flag.Int("sample", 40, "how many kernels of each library clang disassembles")
	sampleSeed = flag.Uint64("seed", 1, "of the sample")
)

// disassembly is a module as clang prints it.
type disassembly struct {
	nodes map[string][]string // by number or name; operands as they stand
	text  string
}

var (
	nodeLine    = regexp.MustCompile(`(?m)^!([\w.]+) = (?:distinct )?!\{(.*)\}$`)
	threadgroup = regexp.MustCompile(`(?m)^@(\S+) = .*addrspace\(3\) (?:externally_initialized )?(?:global|constant) (.*), align (\d+)$`)
	structLine  = regexp.MustCompile(`(?m)^(%\S+) = type (.*)$`)
)

func disassemble(text string) *disassembly {
	d := &disassembly{nodes: map[string][]string{}, text: text}
	for _, m := range nodeLine.FindAllStringSubmatch(text, -1) {
		d.nodes[m[1]] = split(m[2])
	}
	return d
}

// split splits a list at the commas outside of strings and brackets.
func split(list string) (out []string) {
	depth, quoted, from := 0, false, 0
	for i, c := range list {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{<", c):
			depth++
		case strings.ContainsRune(")]}>", c):
			depth--
		case c == ',' && depth == 0:
			out, from = append(out, strings.TrimSpace(list[from:i])), i+1
		}
	}
	if s := strings.TrimSpace(list[from:]); s != "" {
		out = append(out, s)
	}
	return out
}

func (d *disassembly) node(ref string) []string { return d.nodes[strings.TrimPrefix(ref, "!")] }

func text(op string) string {
	s, err := strconv.Unquote(strings.TrimPrefix(op, "!"))
	if err != nil {
		return ""
	}
	return s
}

func number(t *testing.T, op string) int64 {
	_, digits, ok := strings.Cut(op, " ")
	n, err := strconv.ParseInt(digits, 10, 64)
	require.True(t, ok && err == nil, "%q is no integer", op)
	return n
}

func (d *disassembly) version(t *testing.T, name string, from int) air.Version {
	n := d.node(d.nodes[name][0])[from:]
	return air.Version{Major: int(number(t, n[0])), Minor: int(number(t, n[1])), Patch: int(number(t, n[2]))}
}

func (d *disassembly) fields(t *testing.T, ref string) (out []air.Field) {
	ops := d.node(ref)
	for len(ops) > 0 {
		var f air.Field
		if text(ops[0]) == "air.struct_type_info" {
			f.Fields, ops = d.fields(t, ops[1]), ops[2:]
		}
		f.Offset, f.Size, f.Array = number(t, ops[0]), number(t, ops[1]), int(number(t, ops[2]))
		f.Type, f.Name, ops = text(ops[3]), text(ops[4]), ops[5:]
		out = append(out, f)
	}
	return out
}

func (d *disassembly) argument(t *testing.T, ops []string) (a air.Arg) {
	after := func(key string, n int) string {
		for i, op := range ops {
			if text(op) == key {
				return ops[i+n]
			}
		}
		return ""
	}
	find := func(key string) int64 {
		if op := after(key, 1); op != "" {
			return number(t, op)
		}
		return 0
	}
	a.Name, a.Type = text(after("air.arg_name", 1)), text(after("air.arg_type_name", 1))
	if c := after("air.function_constant", 1); c != "" {
		a.If = text(d.node(c)[2])
	}
	a.Unused = after("air.arg_unused", 0) != ""
	if after("air.buffer", 0) == "" {
		a.Attribute = strings.TrimPrefix(text(ops[1]), "air.")
		return a
	}
	a.Index, a.Space = int(find("air.location_index")), air.Space(find("air.address_space"))
	a.Size, a.TypeSize, a.TypeAlign = find("air.buffer_size"), find("air.arg_type_size"), find("air.arg_type_align_size")
	for access, key := range map[air.Access]string{air.Read: "air.read", air.Write: "air.write", air.ReadWrite: "air.read_write"} {
		if after(key, 0) != "" {
			a.Access = access
		}
	}
	if s := after("air.struct_type_info", 1); s != "" {
		a.Fields = d.fields(t, s)
	}
	return a
}

// size returns the size and alignment in bytes of a type in LLVM's text: scalars, arrays, structs and vectors of
// those.
func (d *disassembly) size(t *testing.T, ty string) (size, align int64) {
	up := func(n, a int64) int64 { return (n + a - 1) / a * a }
	scalars := map[string]int64{"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4}
	if n, ok := scalars[ty]; ok {
		return n, n
	}
	switch {
	case ty[0] == '[':
		n, element, _ := strings.Cut(ty[1:len(ty)-1], " x ")
		count, err := strconv.ParseInt(n, 10, 64)
		require.NoError(t, err)
		size, align = d.size(t, element)
		return count * size, align
	case ty[0] == '{':
		align = 1
		for _, field := range split(ty[1 : len(ty)-1]) {
			n, a := d.size(t, field)
			size, align = up(size, a)+n, max(align, a)
		}
		return up(size, align), align
	case ty[0] == '<':
		n, element, _ := strings.Cut(ty[1:len(ty)-1], " x ")
		count, err := strconv.ParseInt(n, 10, 64)
		require.NoError(t, err)
		each, _ := d.size(t, element)
		for align = 1; align < count*each; align *= 2 {
		}
		return align, align
	}
	for _, m := range structLine.FindAllStringSubmatch(d.text, -1) {
		if m[1] == ty {
			return d.size(t, m[2])
		}
	}
	t.Fatalf("no type %q", ty)
	return 0, 0
}

func (d *disassembly) describe(t *testing.T) *air.Kernel {
	require.Len(t, d.nodes["air.kernel"], 1)
	node := d.node(d.nodes["air.kernel"][0])
	k := &air.Kernel{
		Name: strings.Trim(strings.TrimPrefix(node[0], "ptr @"), `"`),
		AIR:  d.version(t, "air.version", 0), Metal: d.version(t, "air.language_version", 1),
	}
	for _, ref := range d.node(node[2]) {
		k.Args = append(k.Args, d.argument(t, d.node(ref)))
	}
	for _, ref := range node[3:] {
		require.Equal(t, "air.max_work_group_size", text(d.node(ref)[0]))
		k.MaxThreadgroup = int(number(t, d.node(ref)[1]))
	}
	for _, ref := range d.nodes["air.function_constants"] {
		n := d.node(ref)
		k.Constants = append(k.Constants, air.FunctionConstant{Type: text(n[1]), Name: text(n[2]), Index: int(number(t, n[3]))})
	}
	for _, ref := range d.nodes["air.compile_options"] {
		k.Options = append(k.Options, strings.TrimPrefix(text(d.node(ref)[0]), "air.compile."))
	}
	for _, m := range threadgroup.FindAllStringSubmatch(d.text, -1) {
		// A type and its initial value, both of which may have blanks.
		ty := m[2]
		for _, value := range []string{" undef", " zeroinitializer", " poison"} {
			ty = strings.TrimSuffix(ty, value)
		}
		align, err := strconv.ParseInt(m[3], 10, 64)
		require.NoError(t, err)
		size, _ := d.size(t, ty)
		k.Threadgroup = append(k.Threadgroup, air.ThreadgroupMemory{Name: strings.Trim(m[1], `"`), Size: size, Align: align})
	}
	return k
}

// Describe agrees with what clang's disassembly of the kernel says.
func TestClang(t *testing.T) {
	sample.Long(t)
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	for _, version := range metallibs.Versions {
		t.Run(version, func(t *testing.T) {
			t.Logf("-seed %d -sample %d", *sampleSeed, *sampleSize)
			lib := metallibs.Open(t, version)
			r := rand.New(rand.NewPCG(*sampleSeed, 2))
			dir := t.TempDir()
			var saw struct{ constants, conditional, threadgroup, fields, most int }
			// Every other kernel is of a family with function constants, since these are few.
			var families, sample []string
			for i := range lib.Kernels {
				if name := lib.Kernels[i].Name; strings.HasPrefix(name, "steel_gemm_fused") || strings.HasPrefix(name, "steel_attention") || strings.HasPrefix(name, "sdpa_vector") {
					families = append(families, name)
				}
			}
			for len(sample) < *sampleSize {
				sample = append(sample, families[r.IntN(len(families))], lib.Kernels[r.IntN(len(lib.Kernels))].Name)
			}
			for i, name := range sample {
				data, err := lib.Bitcode(name)
				require.NoError(t, err)
				in := filepath.Join(dir, fmt.Sprintf("%d.bc", i))
				require.NoError(t, os.WriteFile(in, data, 0o644))
				out, err := c.Command(context.Background(), "-S", "-emit-llvm", "-Wno-override-module", in, "-o", "-").Output()
				require.NoError(t, err, name)
				want := disassemble(string(out)).describe(t)
				got, err := lib.Describe(name)
				require.NoError(t, err)
				assert.Equal(t, want, got)
				saw.constants += len(got.Constants)
				saw.threadgroup += len(got.Threadgroup)
				saw.most += min(got.MaxThreadgroup, 1)
				for _, a := range got.Args {
					saw.conditional += min(len(a.If), 1)
					saw.fields += len(a.Fields)
				}
			}
			assert.Positive(t, min(saw.constants, saw.conditional, saw.threadgroup, saw.fields, saw.most), "%+v", saw)
		})
	}
}
