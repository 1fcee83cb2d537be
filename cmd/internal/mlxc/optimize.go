package mlxc

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

type optimizeCmd struct {
	modelFlags
	kernelFlags
	cli.OrderFlag
	budgetFlags

	Graph      string      `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Output     string      `short:"o" required:"" placeholder:"FILE" help:"Graph file to write: a container, or a text if its name ends in .mlxt."`
	HTML       string      `name:"html" placeholder:"FILE" help:"Write a page (HTML) that shows each graph before and after: what waits for what, what was fused, moved and removed, and why not."`
	Passes     string      `placeholder:"LIST" help:"Passes to run, as in annotate,barriers; options in braces. See mlxc passes."`
	Allow      []string    `placeholder:"NAME" help:"Rewrites that may change bits and may be used (docs/terms.md): round."`
	Remarks    remarksFlag `placeholder:"KIND" help:"Print what the passes did, and what they did not do and why. Without KIND, the first few remarks of each form; with KIND (a pass, done, not-done, a command such as #12, or words of the text), all such remarks."`
	PrintAfter []string    `placeholder:"PASS" help:"Print the graphs as text after these passes (all: after each)."`
	Verify     bool        `help:"Check every checksum and digest of the file first."`
	Force      bool        `help:"Let -o replace the graph that is read."`
	JSON       bool        `name:"json" help:"Print the result as JSON."`
}

func (c *optimizeCmd) Run(env *cli.Env) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	files := output.Files{Keep: !c.Force}
	if err := files.Read(c.Profile, "the profile"); err != nil {
		return err
	}
	for _, path := range c.Kernels {
		if err := files.Read(path, "the kernels"); err != nil {
			return err
		}
	}
	if o.Proof.Sources, err = c.register(); err != nil {
		return err
	}
	write, err := files.WriteGraph("-o", c.Output)
	if err != nil {
		return err
	}
	var html *output.File
	if c.HTML != "" {
		if html, err = files.Write("--html", c.HTML); err != nil {
			return err
		}
	}
	checking := cli.StartProgress(env.Stderr, "checking contents")
	// A container is written with all its contents, and the writer compares each with
	// its digest first. That is enough: no pass and no proof looks at their bytes, so
	// they need not be checked here too.
	f, err := inputs.Open(env.Context, c.Graph, inputs.Options{Verify: c.Verify, SkipEmbedded: write.Form() == output.Container, Progress: checking.Set})
	checking.End()
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
	c.Apply(f.Module.Graphs...)
	progress := cli.StartProgress(env.Stderr, "optimizing")
	defer progress.End()
	o.Passes.After = c.after(env)
	var results []*optimize.Result
	for i, g := range f.Module.Graphs {
		if err := env.Context.Err(); err != nil {
			return err
		}
		o.Progress = func(done int) {
			progress.Set((float64(i) + float64(done)/float64(len(o.Pipeline)+1)) / float64(len(f.Module.Graphs)))
		}
		r, err := optimize.Run(env.Context, g, o)
		if err != nil {
			if env.Context.Err() != nil {
				return err
			}
			return cli.Fail(err)
		}
		if r.Proof.Verdict != prove.Proved {
			return c.unproved(env, &files, g, r, o)
		}
		results = append(results, r)
	}
	progress.End()
	shown := page.Page{Title: filepath.Base(f.Name), Model: o.Passes.Model}
	for i, r := range results {
		shown.Graphs = append(shown.Graphs, page.Graph{Before: f.Module.Graphs[i], Result: r})
		f.Module.Graphs[i] = r.Optimized
	}
	if err := write.Graph(env.Context, f.Module, f, output.Options{Inline: output.InlineLimit}); err != nil {
		return err
	}
	if html != nil {
		if err := html.Data(func(w io.Writer) error { return shown.Write(env.Context, w) }); err != nil {
			return err
		}
	}
	if c.JSON {
		said := map[string]any{"graphs": results, "output": c.Output}
		if c.HTML != "" {
			said["page"] = c.HTML
		}
		return cli.JSON(env.Context, env.Stdout, c.Mention(said))
	}
	return c.print(env, results, o.Passes.Model)
}

// options checks the flags before any file is read.
func (c *optimizeCmd) options() (o optimize.Options, err error) {
	if err := term.CheckAllowed(c.Allow); err != nil {
		return o, cli.BadUsage("--allow: %v", err)
	}
	model, err := c.model()
	if err != nil {
		return o, err
	}
	if o.Pipeline, err = passes.ParsePipeline(c.Passes); err != nil {
		return o, cli.BadUsage("--passes: %v", err)
	}
	if err := c.budgetFlags.check(); err != nil {
		return o, err
	}
	o.Passes = passes.Options{Model: model, Allow: c.Allow, Budget: passes.Budget(c.budget())}
	o.Proof.Budget = c.budget()
	if err := o.Pipeline.Validate(o.Passes); err != nil {
		return o, cli.BadUsage("--passes: %v", err)
	}
	for _, name := range c.PrintAfter {
		known := name == "all"
		for _, p := range passes.All() {
			known = known || p.Name == name
		}
		if !known {
			return o, cli.BadUsage("--print-after: there is no pass %q", name)
		}
	}
	return o, nil
}

// unproved returns the error for a graph that is not written. If the proof was refused,
// it also writes a small recording with the same refusal beside the output.
func (c *optimizeCmd) unproved(env *cli.Env, files *output.Files, recorded *ir.Graph, r *optimize.Result, o optimize.Options) error {
	what := fmt.Errorf("graph %s is not proved to compute what %s does; nothing was written\n%s", ir.QuoteName(r.Graph), c.Graph, r.Proof)
	if r.Proof.OverBudget() {
		what = fmt.Errorf("%w\nallow more by --budget-time and --budget-memory, or run fewer passes", what)
	} else if r.OfRecording != prove.Proved {
		what = fmt.Errorf("%w\nthe recording is not even proved against itself (%s): look for a race or a read of undefined bytes in it", what, r.OfRecording)
	} else if r.Proof.Verdict == prove.Refused {
		what = fmt.Errorf("%w\nthis is a bug of mlxc: please report it", what)
	}
	if r.Proof.Verdict != prove.Refused {
		return cli.Fail(what)
	}
	if small := optimize.Reduce(env.Context, recorded, o, optimize.ReduceLimit); small != nil {
		path := c.Output + ".refused.txtar"
		out, err := files.Write("the reproduction", path)
		if err == nil {
			err = out.Data(func(w io.Writer) error {
				_, err := w.Write(small.Reproduction(filepath.Base(c.Graph)))
				return err
			})
		}
		if err != nil {
			return cli.Fail(fmt.Errorf("%w\na reproduction could not be kept: %w", what, err))
		}
		what = fmt.Errorf("%w\na small recording with the same refusal: %s", what, path)
	}
	return cli.Fail(what)
}

// after prints the graph after a pass if --print-after asks for it.
func (c *optimizeCmd) after(env *cli.Env) func(passes.Step, *ir.Graph) error {
	return func(s passes.Step, g *ir.Graph) error {
		for _, name := range c.PrintAfter {
			if name != "all" && name != s.Pass.Name {
				continue
			}
			fmt.Fprintf(env.Stdout, "// graph %s after %s\n", ir.QuoteName(g.Name), s)
			if err := (mlxt.Options{InlineLimit: 64, External: elided}).Print(env.Stdout, &ir.Module{Graphs: []*ir.Graph{g}}); err != nil {
				return err
			}
		}
		return nil
	}
}

// elided stands in for contents that a printed graph leaves out.
func elided(b *ir.Blob) (string, int64, bool) { return "(embedded)", 0, true }

func (c *optimizeCmd) print(env *cli.Env, results []*optimize.Result, m cost.Model) error {
	for i, r := range results {
		if i > 0 {
			fmt.Fprintln(env.Stdout)
		}
		t := cli.Table{Header: []string{r.Graph, "dispatches", "barriers", "epochs", "depth", "depth∞", "scratch", "modelled", "time"}}
		add := func(name string, f optimize.Figures, d string) {
			t.Add(name, f.Dispatches, f.Barriers, f.Epochs, f.Depth, f.ValueDepth, cli.Bytes(f.Bytes.Scratch), cli.Micros(f.Modelled.GPU), d)
		}
		add("(recorded)", r.Before, "")
		for _, p := range r.Rows {
			if p.Undone != "" {
				add(p.Pass+" (undone)", p.After, "")
				continue
			}
			add(p.Pass, p.After, p.Time.Round(10*time.Microsecond).String())
		}
		if err := t.Print(env.Stdout); err != nil {
			return err
		}
		name := ir.QuoteName(r.Graph)
		if len(r.Fused) > 0 {
			fmt.Fprintf(env.Stdout, "graph %s: fused %s\n", name, optimize.FusedText(r.Fused))
		}
		printModel(env.Stdout, name, m, r.ModelledAt)
		if c.RecordedOrder {
			fmt.Fprintf(env.Stdout, "graph %s: its list was taken as its order (--recorded-order)\n", name)
		}
		if n := r.After.Unannotated; n > 0 {
			fmt.Fprintf(env.Stdout, "graph %s: %d dispatch(es) of unknown effects: nothing crosses them, and their times are guesses; mlxc effects --infer finds out what they touch\n", name, n)
		}
		for _, p := range r.Undone() {
			fmt.Fprintf(env.Stdout, "graph %s: undone: %s: %s\n", name, p.Pass, p.Undone)
		}
		printProof(env.Stdout, name, r.Proof)
	}
	c.Remarks.printAll(env, results)
	if c.HTML != "" {
		_, err := fmt.Fprintf(env.Stdout, "wrote %s and %s\n", cli.Quote(c.Output), cli.Quote(c.HTML))
		return err
	}
	_, err := fmt.Fprintf(env.Stdout, "wrote %s\n", cli.Quote(c.Output))
	return err
}

// printProof prints the answer of a proof and its assumptions.
func printProof(w io.Writer, graph string, r *prove.Result) {
	fmt.Fprintf(w, "graph %s: %s\n", graph, r)
	for _, a := range r.Assumptions {
		fmt.Fprintf(w, "  given that %s\n", a)
	}
}
