package mlxc

import (
	"fmt"
	"sort"

	"github.com/mlxc/mlxc/internal/cli"
	"github.com/mlxc/mlxc/internal/modfile"
	"github.com/mlxc/mlxc/ir"
)

type statsCmd struct {
	Graph   string `arg:"" help:"Graph file (.mlxg or .mlxt)."`
	Kernels bool   `help:"Count dispatches of each kernel too."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

func (c *statsCmd) Run(env *cli.Env) error {
	f, err := modfile.Open(c.Graph, modfile.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer f.Close()
	stats := map[string]ir.Stats{}
	t := cli.Table{Header: []string{"graph", "dispatches", "barriers", "epochs", "largest", "unannotated", "weights", "state", "scratch"}}
	kernels := cli.Table{Header: []string{"graph", "kernel", "dispatches"}}
	for _, g := range f.Module.Graphs {
		s := g.Stats()
		stats[g.Name] = s
		t.Add(g.Name, s.Dispatches, s.Barriers, s.Epochs, s.Largest, s.Unannotated, cli.Bytes(s.Bytes.Weight), cli.Bytes(s.Bytes.State), cli.Bytes(s.Bytes.Scratch))
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
		return cli.JSON(env.Stdout, stats)
	}
	if err := t.Print(env.Stdout); err != nil {
		return err
	}
	if c.Kernels {
		fmt.Fprintln(env.Stdout)
		return kernels.Print(env.Stdout)
	}
	return nil
}
