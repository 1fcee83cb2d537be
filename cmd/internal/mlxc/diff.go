package mlxc

import (
	"fmt"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/graphdiff"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/ir"
)

type diffCmd struct {
	Before string `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	After  string `arg:"" help:"Graph file to compare it with."`
	All    bool   `help:"Print every change, not the first few of each kind."`
	JSON   bool   `name:"json" help:"Print every change as JSON."`
}

// shown is how many changes of each kind are printed without --all.
const shown = 5

// graphDiff is what changed in one graph.
type graphDiff struct {
	Graph string `json:"graph"`
	In    string `json:"in"` // "both", "before" or "after"
	*graphdiff.Diff
}

func (c *diffCmd) Run(env *cli.Env) error {
	before, err := inputs.Open(env.Context, c.Before, inputs.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer before.Close()
	after, err := inputs.Open(env.Context, c.After, inputs.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer after.Close()
	graphs := []graphDiff{}
	equal := true
	for _, g := range before.Module.Graphs {
		d := graphDiff{Graph: g.Name, In: "both"}
		if other := after.Module.Graph(g.Name); other != nil {
			if d.Diff, err = graphdiff.Graphs(env.Context, g, other); err != nil {
				return err
			}
		} else {
			d.In = "before"
		}
		equal = equal && d.Diff != nil && d.Equal()
		graphs = append(graphs, d)
	}
	for _, g := range after.Module.Graphs {
		if before.Module.Graph(g.Name) == nil {
			equal = false
			graphs = append(graphs, graphDiff{Graph: g.Name, In: "after"})
		}
	}
	data := dataChanges(before.Module, after.Module)
	equal = equal && len(data) == 0
	if c.JSON {
		err = cli.JSON(env.Context, env.Stdout, map[string]any{"equal": equal, "graphs": graphs, "data": data})
	} else {
		err = c.print(env, graphs, data)
	}
	if err == nil && !equal {
		return cli.Exit(cli.Failed)
	}
	return err
}

// dataChanges compares, by name, the data sections that lie beside the graphs in a
// file.
func dataChanges(b, a *ir.Module) []string {
	out := []string{}
	for _, d := range b.Data {
		switch other := a.Lookup(d.Name); {
		case other == nil:
			out = append(out, fmt.Sprintf("data %q is gone", d.Name))
		case other.Digest != d.Blob.Digest || other.Length != d.Blob.Length:
			out = append(out, fmt.Sprintf("data %q: %d bytes before, %d after", d.Name, d.Blob.Length, other.Length))
		}
	}
	for _, d := range a.Data {
		if b.Lookup(d.Name) == nil {
			out = append(out, fmt.Sprintf("data %q is new", d.Name))
		}
	}
	return out
}

func (c *diffCmd) print(env *cli.Env, graphs []graphDiff, data []string) error {
	w := env.Stdout
	for _, d := range graphs {
		name := ir.QuoteName(d.Graph)
		if d.Diff == nil {
			file := c.Before
			if d.In == "after" {
				file = c.After
			}
			fmt.Fprintf(w, "graph %s: only in %s\n", name, file)
			continue
		}
		fmt.Fprintf(w, "graph %s: %s\n", name, d.Summary())
		for _, k := range graphdiff.Kinds {
			changes := d.Of(k)
			for i, x := range changes {
				if i == shown && !c.All && len(changes) > shown+1 {
					fmt.Fprintf(w, "  %s: … %d more (--all)\n", k, len(changes)-shown)
					break
				}
				fmt.Fprintf(w, "  %s: %s\n", k, x.Text)
			}
		}
	}
	for _, d := range data {
		fmt.Fprintln(w, d)
	}
	return nil
}
