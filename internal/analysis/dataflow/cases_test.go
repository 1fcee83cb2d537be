package dataflow_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
)

// cases is a graph with a scratch memory, an output and a state, and two params.
type cases struct {
	*ir.Builder
	s, y, st ir.MemID
	k        ir.KernelID
	pos, n   ir.Affine
}

func newCases() *cases {
	b := ir.NewBuilder("g")
	c := &cases{Builder: b}
	c.pos = ir.Linear(0, ir.Term{Param: b.Param("pos", 0, 15), Coeff: 1})
	c.n = ir.Linear(0, ir.Term{Param: b.Param("n", 1, 16), Coeff: 1})
	b.Require(c.pos.Add(c.n), 16)
	c.s = b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 4096})
	c.y = b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4096})
	c.st = b.Memory(ir.Memory{Name: "st", Kind: ir.State, Size: 4096})
	c.k = b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	return c
}

func (c *cases) run(e *ir.Effects) { c.Dispatch(ir.Dispatch{Kernel: c.k, Effects: e}) }

func at(m ir.MemID, off, run ir.Affine, dims ...ir.Dim) ir.Region {
	return ir.Region{Mem: m, Off: off, Run: run, Dims: dims}
}

func reads(rs ...ir.Region) *ir.Effects { return &ir.Effects{Complete: true, Reads: rs} }

func writes(must bool, rs ...ir.Region) *ir.Effects {
	e := &ir.Effects{Complete: true}
	for _, r := range rs {
		e.Writes = append(e.Writes, ir.Write{Region: r, Must: must})
	}
	return e
}

func print(f *dataflow.Flow, i, k int) string {
	u := f.Reads(i)[k]
	out := ""
	for _, s := range u.Sources {
		out += fmt.Sprintf("%d", s.Command)
		if s.Whole {
			out += "w"
		}
		out += " "
	}
	if u.Initial {
		out += "initial"
	}
	return out
}

// A cache. Rows before pos hold what they held before the replay, rows at pos come from
// their writer, and a second write of a row at the same expression hides the first.
func TestRowsOfACache(t *testing.T) {
	c, k := newCases(), ir.Const
	row := at(c.st, c.pos.Scale(64), c.n.Scale(64))
	c.run(writes(true, row))
	c.run(reads(at(c.st, k(0), c.pos.Scale(64))))
	c.run(reads(at(c.st, k(0), c.pos.Add(c.n).Scale(64))))
	c.run(writes(true, row))
	c.run(reads(at(c.st, k(0), c.pos.Add(c.n).Scale(64))))
	c.run(reads(row))
	f := dataflow.Build(context.Background(), c.Unfinished())
	require.Equal(t, "initial", print(f, 1, 0))
	require.Equal(t, "0 initial", print(f, 2, 0))
	require.Equal(t, "3 initial", print(f, 4, 0))
	require.Equal(t, "3w ", print(f, 5, 0))
	require.False(t, f.Writes(0)[0].Final)
	require.True(t, f.Writes(3)[0].Final)
	require.Equal(t, []dataflow.Reader{{Command: 2, Read: 0}}, f.Writes(0)[0].Readers)
	require.False(t, f.Live(0), "nobody who writes reads it")
	require.Empty(t, f.Undefined())
}

// A write that params move hides what it covers for every value of the params;
// elsewhere an older write may still be seen.
func TestPartlyCertain(t *testing.T) {
	c, k := newCases(), ir.Const
	c.run(writes(true, at(c.s, k(0), k(1024))))
	c.run(writes(true, at(c.s, k(0), c.n.Scale(64)))) // at least 64 bytes
	c.run(reads(at(c.s, k(0), k(64))))
	c.run(reads(at(c.s, k(0), k(128))))
	f := dataflow.Build(context.Background(), c.Unfinished())
	require.Equal(t, "1w ", print(f, 2, 0))
	require.Equal(t, "0w 1 ", print(f, 3, 0))
}

// Interleaved columns are told apart, and together they cover the rows.
func TestColumns(t *testing.T) {
	c, k := newCases(), ir.Const
	rows := ir.Dim{Count: k(8), Stride: 64}
	c.run(writes(true, at(c.s, k(0), k(32), rows)))
	c.run(writes(true, at(c.s, k(32), k(32), rows)))
	c.run(reads(at(c.s, k(32), k(32), rows)))
	c.run(reads(at(c.s, k(0), k(512))))
	many := ir.Dim{Count: k(63), Stride: 64}
	c.run(writes(true, at(c.y, k(0), k(32), many)))
	c.run(reads(at(c.y, k(32), k(32), many)))
	c.run(reads(at(c.y, k(0), k(16), many)))
	f := dataflow.Build(context.Background(), c.Unfinished())
	require.Equal(t, "1w ", print(f, 2, 0))
	require.Equal(t, "0 1 ", print(f, 3, 0))
	require.Equal(t, "initial", print(f, 5, 0))
	require.Equal(t, "4w ", print(f, 6, 0))
}

// A may-write passes on what it leaves alone: it hides the must-write from the read
// after it, reads the must-write itself, and both may be final.
func TestMayWritePassesOn(t *testing.T) {
	c, k := newCases(), ir.Const
	whole := at(c.y, k(0), k(64))
	c.run(writes(true, whole))
	c.run(writes(false, whole))
	c.run(&ir.Effects{Complete: true, Reads: []ir.Region{whole}, Writes: []ir.Write{{Region: at(c.st, k(0), k(64)), Must: true}}})
	c.run(writes(false, at(c.s, k(0), k(8))))
	c.run(&ir.Effects{Complete: true, Reads: []ir.Region{at(c.s, k(0), k(8))}, Writes: []ir.Write{{Region: at(c.st, k(64), k(64)), Must: true}}})
	f := dataflow.Build(context.Background(), c.Unfinished())
	require.Equal(t, "0w ", print(f, 1, 0))
	require.Equal(t, int32(0), f.Reads(1)[0].Update)
	require.Equal(t, "1w ", print(f, 2, 0))
	require.True(t, f.Writes(0)[0].Final)
	require.True(t, f.Writes(1)[0].Final)
	_, ok := f.Reads(1)[0].Single()
	require.True(t, ok)
	_, ok = f.Reads(2)[0].Single()
	require.False(t, ok, "what it sees is no must-write")
	u := f.Undefined()
	require.Len(t, u, 1, "the scatter into undefined scratch")
	require.Equal(t, int32(3), u[0].Command)
}

// An unknown command sees everything that is not overwritten, and everything after it
// may see the unknown command.
func TestUnknownCommand(t *testing.T) {
	c, k := newCases(), ir.Const
	whole := at(c.s, k(0), k(64))
	c.run(writes(true, whole))
	c.run(writes(true, whole))
	c.run(writes(true, at(c.y, k(0), k(64))))
	c.run(nil)
	c.run(reads(whole, at(c.st, k(0), k(64))))
	f := dataflow.Build(context.Background(), c.Unfinished())
	require.Equal(t, "1 2 initial", print(f, 3, 0))
	require.Equal(t, "3w ", print(f, 4, 0))
	require.Equal(t, "3w ", print(f, 4, 1))
	require.Equal(t, 3, f.Pillar())
	require.False(t, f.Live(0))
	require.True(t, f.Live(1))
	require.False(t, f.Writes(1)[0].Final, "scratch")
	require.True(t, f.Writes(2)[0].Final, "the output, where the unknown command left it alone")
	levels, depth := f.Levels()
	require.Equal(t, []int32{1, 1, 1, 2, 3}, levels)
	require.Equal(t, int32(3), depth)
}
