package mlxc

import (
	"fmt"
	"sort"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

type statsCmd struct {
	modelFlags

	Graph   string `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Kernels bool   `help:"Count dispatches of each kernel too."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (c *statsCmd) Run(env *cli.Env) error {
	model, err := c.model()
	if err != nil {
		return err
	}
	f, err := inputs.Open(env.Context, c.Graph, inputs.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer f.Close()
	found, err := meaningless(env.Context, f.Module.Graphs)
	if err != nil {
		return err
	}
	type result struct {
		optimize.Figures
		Faults     []meaning.Fault       `json:"faults,omitempty"` // why the graph has no meaning
		Model      string                `json:"model"`
		ModelledAt []optimize.ParamValue `json:"modelled_at"`
	}
	stats := map[string]result{}
	t := cli.Table{Header: []string{"graph", "dispatches", "barriers", "epochs", "largest", "depth", "depth∞", "unannotated", "weights", "state", "scratch", "arguments", "modelled"}}
	kernels := cli.Table{Header: []string{"graph", "kernel", "dispatches"}}
	for _, g := range f.Module.Graphs {
		s, err := optimize.Measure(env.Context, g, model)
		if err != nil {
			return err
		}
		x := result{Figures: s, Model: model.OrDefault().Name, ModelledAt: optimize.ModelledAt(g, model)}
		if r := found[g]; r != nil {
			x.Faults = r.Faults
		}
		stats[g.Name] = x
		t.Add(g.Name, s.Dispatches, s.Barriers, s.Epochs, s.Largest, s.Depth, s.ValueDepth, s.Unannotated,
			cli.Bytes(s.Bytes.Weight), cli.Bytes(s.Bytes.State), cli.Bytes(s.Bytes.Scratch), cli.Bytes(s.Bytes.Argument), cli.Micros(s.Modelled.GPU))
		var names []string
		for k := range s.Kernels {
			names = append(names, k)
		}
		sort.Slice(names, func(i, j int) bool {
			if a, b := s.Kernels[names[i]], s.Kernels[names[j]]; a != b {
				return a > b
			}
			return names[i] < names[j]
		})
		for _, k := range names {
			kernels.Add(g.Name, k, s.Kernels[k])
		}
	}
	if c.JSON {
		return cli.JSON(env.Context, env.Stdout, stats)
	}
	if err := comment(env.Stderr, "mlxc: ", f.Module.Graphs, found); err != nil {
		return err
	}
	if err := t.Print(env.Stdout); err != nil {
		return err
	}
	for _, g := range f.Module.Graphs {
		printModel(env.Stdout, ir.QuoteName(g.Name), model, stats[g.Name].ModelledAt)
	}
	if c.Kernels {
		fmt.Fprintln(env.Stdout)
		return kernels.Print(env.Stdout)
	}
	return nil
}
