package mlxc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/report"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/files/regular"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

type reportCmd struct {
	modelFlags
	kernelFlags
	cli.OrderFlag
	budgetFlags

	Graph    string   `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Name     string   `name:"graph" placeholder:"NAME" help:"Report on this graph only."`
	Top      int      `default:"10" placeholder:"N" help:"How many findings to print of each graph; 0 prints all."`
	Findings []string `type:"path" placeholder:"FILE" help:"Also what mlxreplay check GRAPH --json has written to this file. Repeatable, for several graphs."`
	FailOver *float64 `placeholder:"PERCENT" help:"Exit with code 1 if mlxc optimize would save more than this share of a graph's modelled time, or if --findings has any."`
	JSON     bool     `name:"json" help:"Print all findings as JSON."`
}

func (c *reportCmd) Run(env *cli.Env) error {
	if c.FailOver != nil && !(*c.FailOver >= 0 && *c.FailOver <= 100) {
		return cli.BadUsage("--fail-over: %v is no share in percent, 0 to 100", *c.FailOver)
	}
	if c.Top < 0 {
		return cli.BadUsage("--top: %d is negative", c.Top)
	}
	model, err := c.model()
	if err != nil {
		return err
	}
	if err := c.budgetFlags.check(); err != nil {
		return err
	}
	var o report.Options
	o.Passes = passes.Options{Model: model, Budget: passes.Budget(c.budget())}
	o.Proof.Budget = c.budget()
	if o.Proof.Sources, err = c.register(); err != nil {
		return err
	}
	defects, err := c.defects()
	if err != nil {
		return err
	}
	f, err := inputs.Open(env.Context, c.Graph, inputs.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer f.Close()
	graphs := f.Module.Graphs
	if c.Name != "" {
		g := f.Module.Graph(c.Name)
		if g == nil {
			return cli.BadUsage("%s has no graph %q", c.Graph, c.Name)
		}
		graphs = []*ir.Graph{g}
	}
	if err := c.used(graphs...); err != nil {
		return err
	}
	for i, d := range defects {
		if !slices.ContainsFunc(graphs, func(g *ir.Graph) bool { return g.Name == d.Graph }) {
			return cli.BadUsage("--findings %s: they are of graph %q, which is none of those that are reported on", c.Findings[i], d.Graph)
		}
	}
	c.Apply(graphs...)
	progress := cli.StartProgress(env.Stderr, "looking")
	defer progress.End()
	var all []*report.Report
	over := false
	for i, g := range graphs {
		progress.Set(float64(i) / float64(len(graphs)))
		r, err := report.Of(env.Context, g, o)
		if err != nil {
			if env.Context.Err() != nil {
				return err
			}
			return cli.Fail(err)
		}
		for i, d := range defects {
			if d.Graph != g.Name {
				continue
			}
			if err := r.Add(g, d); err != nil {
				return cli.BadUsage("--findings %s: %v", c.Findings[i], err)
			}
		}
		all = append(all, r)
		over = over || c.FailOver != nil && r.Defects > 0 || c.FailOver != nil && 100*r.Saves() > *c.FailOver
	}
	progress.End()
	if c.JSON {
		err = cli.JSON(env.Context, env.Stdout, c.Mention(map[string]any{"graphs": all, "over": over}))
	} else {
		err = c.print(env, all, model)
	}
	if err == nil && over {
		return cli.Exit(cli.Failed)
	}
	return err
}

// maxFindings is the size up to which a file of findings is read.
const maxFindings = 256 << 20

// defects reads the files of --findings.
func (c *reportCmd) defects() (out []*report.Defects, err error) {
	for _, path := range c.Findings {
		text, err := regular.Read(path, maxFindings)
		if err != nil {
			return nil, err
		}
		d, err := report.ParseDefects(text)
		if err != nil {
			return nil, cli.BadUsage("--findings %s: %v", path, err)
		}
		out = append(out, d)
	}
	return out, nil
}

func (c *reportCmd) print(env *cli.Env, all []*report.Report, m cost.Model) error {
	w := env.Stdout
	for i, r := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		name := ir.QuoteName(r.Graph)
		fmt.Fprintf(w, "graph %s: %s; ", name, cli.Micros(r.Now))
		switch {
		case r.Proof.Verdict == prove.Proved && r.Optimized > r.Now:
			fmt.Fprintf(w, "mlxc optimize would lose %s, proved\n", cli.Micros(r.Optimized-r.Now))
		case r.Proof.Verdict == prove.Proved:
			fmt.Fprintf(w, "mlxc optimize would save %s (%.0f %%), proved\n", cli.Micros(r.Now-r.Optimized), 100*r.Saves())
		default:
			fmt.Fprintf(w, "what mlxc optimize would do is not proved: %s\n", r.Proof)
		}
		printModel(w, name, m, r.ModelledAt)
		if r.Unknown > 0 {
			fmt.Fprintf(w, "graph %s: nobody knows what %d dispatch(es) touch: nothing crosses them, none runs beside another, and times are guesses; mlxc effects --infer -o FILE finds out, and --kernels FILE takes it\n", name, r.Unknown)
		}
		if r.Defects > 0 {
			fmt.Fprintf(w, "graph %s: mlxreplay check found %d defect(s): mend these first\n", name, r.Defects)
		}
		if len(r.Findings) == 0 {
			fmt.Fprintf(w, "graph %s: nothing was found that it could do without\n", name)
			continue
		}
		t := cli.Table{Header: []string{"saves", "times", "kind", "what", "for example"}}
		findings := r.Findings
		if c.Top > 0 && len(findings) > c.Top {
			findings = findings[:c.Top]
		}
		for _, f := range findings {
			saves := ""
			if f.Saves > 0 {
				saves = fmt.Sprint(cli.Micros(f.Saves))
			}
			t.Add(saves, f.Count, string(f.Kind), f.What, example(f))
		}
		if err := t.Print(w); err != nil {
			return err
		}
		if more := len(r.Findings) - len(findings); more > 0 {
			fmt.Fprintf(w, "and %d more (--top 0 prints all)\n", more)
		}
	}
	return nil
}

// example returns the first example of a finding, in the engine's own words.
func example(f report.Finding) string {
	if len(f.Examples) == 0 {
		return ""
	}
	var out []string
	for i, c := range f.Examples[0] {
		if i == 12 {
			out = append(out, "…")
			break
		}
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}
