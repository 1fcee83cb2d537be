package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

func TestStats(t *testing.T) {
	mem := func(name string, kind ir.MemKind, size int64) ir.Memory {
		return ir.Memory{Name: name, Kind: kind, Size: size, Alias: ir.NoMem}
	}
	alias := mem("alias", ir.Scratch, 8)
	alias.Alias = 5
	g := &ir.Graph{
		Memories: []ir.Memory{mem("w", ir.Weight, 1), mem("x", ir.Input, 10), mem("y", ir.Output, 100), mem("k", ir.State, 1000), mem("l", ir.State, 1000), mem("s", ir.Scratch, 10000), alias},
		Kernels:  []ir.Kernel{{Name: "a", Function: "f"}, {Name: "b", Function: "f"}, {Name: "c", Function: "g"}, {Name: "never", Function: "h"}},
		Nodes: []ir.Node{
			&ir.Barrier{}, // an epoch holds a command
			&ir.GroupBegin{},
			&ir.Dispatch{Kernel: 0, Op: "add", Effects: &ir.Effects{Complete: true}},
			&ir.Dispatch{Kernel: 1, Op: "add", Effects: &ir.Effects{}},
			&ir.GroupEnd{},
			&ir.Copy{},
			&ir.Barrier{}, &ir.Barrier{},
			&ir.Fill{},
			&ir.Commit{},
			&ir.Dispatch{Kernel: 2},
		},
	}
	require.Equal(t, ir.Stats{
		Dispatches: 3, Copies: 1, Fills: 1, Barriers: 3, Commits: 1, Epochs: 3, Largest: 3, Unannotated: 2,
		Kernels: map[string]int{"f": 2, "g": 1},
		Ops:     map[string]int{"add": 2, "": 1},
		Bytes:   ir.MemoryBytes{Weight: 1, Input: 10, Output: 100, State: 2000, Scratch: 10000},
	}, g.Stats())
	require.Equal(t, ir.Stats{Kernels: map[string]int{}, Ops: map[string]int{}}, (&ir.Graph{}).Stats())
}

func TestStatsAddUp(t *testing.T) {
	sum := func(m map[string]int) (n int) {
		for _, v := range m {
			n += v
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, g := range irtest.Module(t).Graphs {
			s := g.Stats()
			commands := 0
			for _, n := range g.Nodes {
				if _, ok := n.(ir.Command); ok {
					commands++
				}
			}
			if s.Dispatches+s.Copies+s.Fills+s.Carries+s.Joins != commands || sum(s.Kernels) != s.Dispatches || sum(s.Ops) != s.Dispatches || s.Unannotated > s.Dispatches {
				t.Fatalf("%+v of %d commands", s, commands)
			}
			switch g.Ordering {
			case ir.Serial:
				require.Equal(t, commands, s.Epochs)
				continue
			case ir.ByEdges:
				require.Equal(t, len(g.Edges), s.Edges)
				commands -= s.Joins
				require.LessOrEqual(t, s.Epochs, commands)
				require.GreaterOrEqual(t, s.Epochs*s.Largest, commands)
				continue
			}
			if s.Epochs > s.Barriers+s.Commits+1 || s.Largest > commands || (s.Largest == 0) != (commands == 0) || s.Epochs*s.Largest < commands {
				t.Fatalf("%+v of %d commands", s, commands)
			}
		}
	})
}
