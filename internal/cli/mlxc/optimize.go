package mlxc

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/mlxc/mlxc/internal/cli"
	"github.com/mlxc/mlxc/internal/modfile"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

type optimizeCmd struct {
	Graph      string   `arg:"" help:"Graph file (.mlxg or .mlxt)."`
	Output     string   `short:"o" required:"" placeholder:"FILE.mlxg" help:"Graph file to write."`
	Passes     string   `placeholder:"LIST" help:"Passes to run, as in annotate,barriers; options in braces. See mlxc passes."`
	Remarks    bool     `help:"Print what the passes did, and what they did not and why."`
	PrintAfter []string `placeholder:"PASS" help:"Print the graphs as text after these passes (all: after each)."`
	Verify     bool     `help:"Check every checksum and digest of the file first."`
	JSON       bool     `name:"json" help:"Print the result as JSON."`
}

// graphResult is what optimize did to one graph.
type graphResult struct {
	Graph  string           `json:"graph"`
	Before ir.Stats         `json:"before"`
	After  ir.Stats         `json:"after"`
	Passes []*passes.Report `json:"passes"`
	Proof  *prove.Result    `json:"proof"`
}

func (c *optimizeCmd) Run(env *cli.Env) error {
	pipeline, err := passes.ParsePipeline(c.Passes)
	if err != nil {
		return cli.BadUsage("--passes: %v", err)
	}
	f, err := modfile.Open(c.Graph, modfile.Options{Verify: c.Verify})
	if err != nil {
		return err
	}
	defer f.Close()
	var results []graphResult
	for _, g := range f.Module.Graphs {
		if err := env.Context.Err(); err != nil {
			return err
		}
		recorded := g.Clone()
		r := graphResult{Graph: g.Name, Before: g.Stats()}
		r.Passes, err = passes.Run(g, pipeline, passes.Options{After: c.after(env)})
		if err != nil {
			return cli.Fail(err)
		}
		r.After = g.Stats()
		r.Proof = prove.Check(recorded, g, prove.Options{})
		results = append(results, r)
		if r.Proof.Verdict != prove.Proved {
			return cli.Fail(fmt.Errorf("graph %s is not proved to compute what %s does; nothing was written\n%s", ir.QuoteName(g.Name), c.Graph, r.Proof))
		}
	}
	if err := mlxg.WriteFile(c.Output, f.Module, mlxg.WriteOptions{Base: filepath.Dir(c.Graph)}); err != nil {
		return err
	}
	if c.JSON {
		return cli.JSON(env.Stdout, map[string]any{"graphs": results, "output": c.Output})
	}
	return c.print(env, results)
}

// after prints the graph where --print-after asks for it.
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

// elided stands for contents that a printed graph leaves out.
func elided(b *ir.Blob) (string, int64, bool) { return "(embedded)", 0, true }

func (c *optimizeCmd) print(env *cli.Env, results []graphResult) error {
	t := cli.Table{Header: []string{"graph", "after", "dispatches", "barriers", "epochs", "unannotated", "scratch", "time"}}
	for _, r := range results {
		add := func(name string, s ir.Stats, d string) {
			t.Add(r.Graph, name, s.Dispatches, s.Barriers, s.Epochs, s.Unannotated, cli.Bytes(s.Bytes.Scratch), d)
		}
		add("(recorded)", r.Before, "")
		for _, p := range r.Passes {
			add(p.Pass, p.After, p.Time.Round(10*time.Microsecond).String())
		}
	}
	if err := t.Print(env.Stdout); err != nil {
		return err
	}
	for _, r := range results {
		fmt.Fprintf(env.Stdout, "graph %s: %s\n", ir.QuoteName(r.Graph), r.Proof)
		for _, a := range r.Proof.Assumptions {
			fmt.Fprintf(env.Stdout, "  given that %s\n", a)
		}
	}
	if c.Remarks {
		for _, r := range results {
			for _, p := range r.Passes {
				for _, m := range p.Remarks {
					fmt.Fprintf(env.Stdout, "%s: %s: %s\n", r.Graph, p.Pass, m)
				}
			}
		}
	}
	_, err := fmt.Fprintf(env.Stdout, "wrote %s\n", c.Output)
	return err
}
