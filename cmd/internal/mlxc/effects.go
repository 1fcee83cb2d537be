package mlxc

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/internal/infer"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

type effectsCmd struct {
	kernelFlags

	Graph   string        `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Name    string        `name:"graph" placeholder:"NAME" help:"Look at this graph only (default: all of the file)."`
	Kernel  []string      `placeholder:"NAME" help:"Look at this kernel's dispatches only; * and ? stand for any letters. Repeatable."`
	Infer   bool          `help:"Run the kernels on software Metal and see what they touch: of a kernel with a declaration, hold that against it; of one without, propose one (docs/effects.md)."`
	Output  string        `short:"o" placeholder:"FILE" help:"With --infer: write the proposed declarations to this file, for --kernels of mlxc optimize (default: print them)."`
	Shapes  int           `default:"48" help:"With --infer: how many shapes of each kernel are made up, besides those of the graph."`
	Seed    uint64        `default:"1" help:"With --infer: seed of shapes and data."`
	Limit   time.Duration `default:"60s" help:"With --infer: how long one dispatch may take."`
	Library string        `placeholder:"FILE" help:"With --infer: take builtin kernels from this .metallib, such as MLX's own, and not from their Metal source."`
	Trust   bool          `name:"trust-kernels" help:"With --infer: run kernels of others also where this system has no way to confine them and the compiler (SECURITY.md)."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

func (c *effectsCmd) Run(env *cli.Env) error {
	for _, p := range c.Kernel {
		if _, err := path.Match(p, ""); err != nil {
			return cli.BadUsage("--kernel: %q is no pattern: a bracket is open, or a backslash ends it", p)
		}
	}
	switch {
	case !c.Infer && c.Output != "":
		return cli.BadUsage("-o: only proposals are written: add --infer")
	case c.Shapes < 1 || c.Shapes > 100_000:
		return cli.BadUsage("--shapes: from 1 to 100000, not %d", c.Shapes)
	case c.Limit <= 0:
		return cli.BadUsage("--limit: more than nothing, not %v", c.Limit)
	}
	var files output.Files
	for _, p := range c.Kernels {
		if err := files.Read(p, "the kernels"); err != nil {
			return err
		}
	}
	if err := files.Read(c.Library, "the library"); err != nil {
		return err
	}
	if _, err := c.register(); err != nil {
		return err
	}
	var out *output.File
	if c.Output != "" {
		var err error
		if out, err = files.Write("-o", c.Output); err != nil {
			return err
		}
	}
	f, err := inputs.Open(env.Context, c.Graph, inputs.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := files.ReadGraph(f); err != nil {
		return err
	}
	if err := c.used(f.Module.Graphs...); err != nil {
		return err
	}
	graphs := f.Module.Graphs
	if c.Name != "" {
		g := f.Module.Graph(c.Name)
		if g == nil {
			return fmt.Errorf("%s has no graph %s", c.Graph, ir.QuoteName(c.Name))
		}
		graphs = []*ir.Graph{g}
	}
	if !slices.ContainsFunc(graphs, func(g *ir.Graph) bool {
		return slices.ContainsFunc(g.Kernels, func(k ir.Kernel) bool { return c.wanted(&k) })
	}) && len(c.Kernel) > 0 {
		return fmt.Errorf("%s: no kernel is called %s", c.Graph, strings.Join(c.Kernel, " or "))
	}
	if !c.Infer {
		return c.list(env, graphs)
	}
	return c.infer(env, graphs, out)
}

// wanted reports whether the flags --kernel choose a kernel.
func (c *effectsCmd) wanted(k *ir.Kernel) bool {
	for _, p := range c.Kernel {
		if ok, err := path.Match(p, k.Function); ok && err == nil || p == k.Function || p == k.Name {
			return true
		}
	}
	return len(c.Kernel) == 0
}

// effectsJSON is the JSON form of a dispatch's effects.
type effectsJSON struct {
	Graph   string `json:"graph"`
	Command ir.ID  `json:"command"`
	Kernel  string `json:"kernel"`
	Effects string `json:"effects,omitempty"` // in the text form's syntax
	From    string `json:"from"`              // where the effects come from
	Unknown string `json:"unknown,omitempty"` // why the effects are not known
}

// list prints the declared effects of dispatches.
func (c *effectsCmd) list(env *cli.Env, graphs []*ir.Graph) error {
	list := []effectsJSON{}
	for _, g := range graphs {
		cache := msl.NewCache(g)
		for _, n := range g.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok || !c.wanted(&g.Kernels[d.Kernel]) {
				continue
			}
			if err := env.Context.Err(); err != nil {
				return err
			}
			k := &g.Kernels[d.Kernel]
			x := effectsJSON{Graph: g.Name, Command: d.ID, Kernel: k.Function, From: "graph"}
			e := d.Effects
			if msl.Declared(k) {
				x.From = "declaration"
				if file, ok := msl.Registered(k); ok {
					x.From = file
				}
				var err error
				if e, err = cache.Describe(d); err != nil {
					x.Unknown = err.Error()
				}
			} else if !e.Known() {
				x.From, x.Unknown = "", "the kernel has no declaration, and the graph gives no complete effects"
			}
			if x.Unknown == "" {
				x.Effects = formatEffects(g, e)
			}
			list = append(list, x)
		}
	}
	if c.JSON {
		return cli.JSON(env.Context, env.Stdout, map[string]any{"dispatches": list})
	}
	for _, x := range list {
		text := x.Effects
		if x.Unknown != "" {
			text = "unknown: " + x.Unknown
		}
		if _, err := fmt.Fprintf(env.Stdout, "%s %s %s\n    %s\n", ir.QuoteName(x.Graph), x.Command, x.Kernel, text); err != nil {
			return err
		}
	}
	return nil
}

// formatEffects formats effects in the text form's syntax.
func formatEffects(g *ir.Graph, e *ir.Effects) string {
	var b strings.Builder
	b.WriteString("effects complete")
	for i, r := range e.Reads {
		b.WriteString([]string{", ", " reads "}[min(1, 1-min(1, i))] + g.FormatRegion(r))
	}
	for i, w := range e.Writes {
		b.WriteString([]string{", ", " writes "}[min(1, 1-min(1, i))])
		if w.Must {
			b.WriteString("must ")
		} else {
			b.WriteString("may ")
		}
		if w.Atomic {
			b.WriteString("atomic ")
		}
		b.WriteString(g.FormatRegion(w.Region))
	}
	return b.String()
}

// infer runs the kernels, observes what they touch, and proposes declarations.
func (c *effectsCmd) infer(env *cli.Env, graphs []*ir.Graph, out *output.File) error {
	progress := cli.StartProgress(env.Stderr, "observing kernels")
	defer progress.End()
	x, err := infer.New(env.Context, infer.Options{Shapes: c.Shapes, HeldOut: max(8, c.Shapes/2), Seed: c.Seed, Limit: c.Limit, Library: c.Library, Trust: c.Trust, Progress: progress.Set})
	if err != nil {
		return err
	}
	defer x.Close()
	declared := func(k *ir.Kernel) bool { return msl.Declared(k) || c.listed(graphs, k) }
	compared, err := x.Compare(env.Context, graphs, func(k *ir.Kernel) bool { return c.wanted(k) && declared(k) })
	if err != nil {
		return err
	}
	report, err := x.Propose(env.Context, graphs, func(k *ir.Kernel) bool { return c.wanted(k) && !declared(k) })
	if err != nil {
		return err
	}
	progress.End()
	report.Comparisons, report.Left = compared.Comparisons, append(compared.Left, report.Left...)
	text, err := c.file(report)
	if err != nil {
		return err
	}
	if out != nil {
		if len(report.Proposals) == 0 {
			return fmt.Errorf("nothing is proposed, so %s is not written%s", cli.Quote(c.Output), c.why(report))
		}
		if err := out.Data(func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return err
		}
	}
	return c.answer(env, report, text, out != nil)
}

// listed reports whether every dispatch of a kernel without a declaration states complete effects.
func (c *effectsCmd) listed(graphs []*ir.Graph, k *ir.Kernel) bool {
	any := false
	for _, g := range graphs {
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok && &g.Kernels[d.Kernel] == k {
				if any = true; !d.Effects.Known() {
					return false
				}
			}
		}
	}
	return any
}

// why returns the reason why no declaration is proposed.
func (c *effectsCmd) why(r *infer.Report) string {
	if len(r.Left) == 0 {
		return ": each kernel has a declaration, or complete effects"
	}
	return fmt.Sprintf(": %s of graph %s (%s): %s", r.Left[0].Command, ir.QuoteName(r.Left[0].Graph), r.Left[0].Kernel, r.Left[0].Why)
}

// file returns the text of the proposed declarations, library by library.
func (c *effectsCmd) file(r *infer.Report) (string, error) {
	if len(r.Proposals) == 0 {
		return "", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// What kernels touch, as mlxc effects --infer observed it. It was seen, and is not proved:\n"+
		"// read it before you give it to mlxc optimize --kernels, whose proof will say that it believes\n// this file. docs/effects.md explains the lines.\n")
	last := ir.Library{Path: "?"}
	list := slices.Clone(r.Proposals)
	slices.SortStableFunc(list, func(a, b infer.Proposal) int { return strings.Compare(a.Library.Path, b.Library.Path) })
	for _, p := range list {
		if p.Library != last {
			last = p.Library
			l := last
			if l.Digest == (ir.Digest{}) {
				// The graph accepts any file of this name, but the observation holds only for this file.
				data, err := os.ReadFile(l.Path)
				if err != nil {
					return "", err
				}
				l.Digest = sha256.Sum256(data)
				fmt.Fprintf(&b, "//\n// The graph names no digest of this library: give it the one below, or nothing here is of its kernels.\n")
			}
			fmt.Fprintf(&b, "//\n// @library %s %q sha256 %s\n", l.Kind, l.Path, l.Digest)
		}
		b.WriteString("\n")
		for _, f := range p.Fits {
			switch {
			case f.Skips:
				fmt.Fprintf(&b, "// %s: memory decides which of these bytes are touched.\n", f.Argument)
			case !f.Exact:
				fmt.Fprintf(&b, "// %s: %s; touched %s of %s declared bytes.\n", f.Argument, f.Why, percent(f.Touched, f.Declared), cli.Bytes(f.Declared))
			}
		}
		for _, n := range p.Notes {
			fmt.Fprintf(&b, "// %s.\n", n)
		}
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

func percent(a, b int64) string {
	if b == 0 {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(a)/float64(b))
}

// answer prints the report. It is a failed check if a declaration leaves out bytes that a kernel touches.
func (c *effectsCmd) answer(env *cli.Env, r *infer.Report, text string, written bool) error {
	broken := 0
	for _, x := range r.Comparisons {
		if len(x.Broken) > 0 {
			broken++
		}
	}
	if c.JSON {
		if err := cli.JSON(env.Context, env.Stdout, r); err != nil {
			return err
		}
	} else if err := c.print(env.Stdout, r, text, written); err != nil {
		return err
	}
	if len(r.Comparisons)+len(r.Proposals) == 0 && len(r.Left) > 0 {
		return cli.Fail(fmt.Errorf("nothing was compared and nothing proposed%s", c.why(r)))
	}
	if broken > 0 {
		return cli.Fail(fmt.Errorf("%d of %d declaration(s) leave out what their kernels do", broken, len(r.Comparisons)))
	}
	return nil
}

func (c *effectsCmd) print(w io.Writer, r *infer.Report, text string, written bool) error {
	for _, x := range r.Comparisons {
		fmt.Fprintf(w, "%s, declared by %s: %d shapes of the graph, %d others\n", x.Kernel, x.Declared, x.Counts.Real, x.Counts.Made)
		for _, b := range x.Broken {
			fmt.Fprintf(w, "  %s: %d bytes of %s, within [%d:%d]: %s\n", b.Kind, b.Bytes, b.Argument, b.Lo, b.Hi, b.Shape)
			if b.Detail != "" {
				fmt.Fprintf(w, "    %s\n", b.Detail)
			}
		}
		for _, f := range x.Fits {
			if f.Loosest != "" {
				fmt.Fprintf(w, "  loose: %s: %s of the declared bytes are touched; most are left over with %s\n", f.Argument, percent(f.Touched, f.Declared), f.Loosest)
			}
		}
		for _, n := range x.Notes {
			fmt.Fprintf(w, "  %s\n", n)
		}
	}
	for _, l := range r.Left {
		fmt.Fprintf(w, "%s of graph %s (%s): nothing can be said: %s\n", l.Command, ir.QuoteName(l.Graph), l.Kernel, l.Why)
	}
	if len(r.Proposals) == 0 {
		return nil
	}
	if !written {
		_, err := io.WriteString(w, text)
		return err
	}
	t := cli.Table{Header: []string{"proposed", "exact", "touched", "shapes", "others", "held out", "refused"}}
	for _, p := range r.Proposals {
		exact, touched, declared := 0, int64(0), int64(0)
		for _, f := range p.Fits {
			if touched, declared = touched+f.Touched, declared+f.Declared; f.Exact {
				exact++
			}
		}
		t.Add(p.Kernel, fmt.Sprintf("%d of %d", exact, len(p.Fits)), percent(touched, declared), p.Counts.Real, p.Counts.Made, p.Counts.HeldOut, p.Counts.Refused)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "wrote %s: %d declaration(s), observed with seed %d and not proved\n", cli.Quote(c.Output), len(r.Proposals), r.Seed)
	return err
}
