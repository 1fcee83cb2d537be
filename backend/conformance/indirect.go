package conformance

import (
	"context"

	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
)

// indirectTests test dispatches that take their grid, or offsets of their views, from
// memory.
var indirectTests = map[string]func(*T){
	// The number of rows comes from the host, or from a copy within the same replay.
	"grid/in_memory": func(t *T) {
		for _, copied := range []bool{false, true} {
			const rows, k = 8, 64
			p := newProgram("g")
			x, w, s := p.memory("x", ir.Input, rows*k), p.memory("w", ir.Input, k), p.state("s", rows*k, 5)
			counts := p.Memory(ir.Memory{Name: "counts", Kind: ir.Input, Size: 16})
			at := ir.ViewOf(counts, 4, 12)
			if copied {
				scratch := p.Memory(ir.Memory{Name: "c", Kind: ir.Scratch, Size: 12})
				p.Copy(ir.ViewOf(scratch, 0, 12), at, "")
				p.Barrier()
				at = ir.ViewOf(scratch, 0, 12)
			}
			p.rms(s, x, w, ir.Ext(rows), rows, k, 32).Indirect = &ir.Indirect{Grid: &at}
			p.Barrier()
			g := t.plan(p)
			t.fillInput(g, "x", 2)
			t.fillInput(g, "w", 7)
			for _, n := range []uint32{0, 3, 8, 1} {
				t.fillState(g, "s", 5)
				require.NoError(t, g.SetInput("counts", ir.ValueBytes(uint32(0), n, uint32(1), uint32(1))))
				t.run(g)
				got := get(t.bytes(g.State("s")))
				require.Equal(t, repeated(7, int(n)*k), got[:n*k], "%d rows", n)
				require.Equal(t, repeated(5, (rows-int(n))*k), got[n*k:], "%d rows", n)
			}
			require.NoError(t, g.SetInput("counts", ir.ValueBytes(uint32(0), uint32(rows+1))))
			_, err := g.Run(context.Background())
			require.ErrorContains(t, err, "9 threadgroups stand in dimension 0: the graph says at most 8")
		}
	},

	"params/offset_in_memory": func(t *T) {
		p := newProgram("g")
		pos := p.Param("pos", 0, 7)
		x, s := p.memory("x", ir.Input, 4), p.state("s", 32, 0)
		args := p.Memory(ir.Memory{Name: "args", Kind: ir.Argument, Size: 64, Init: ir.Init{Kind: ir.InitValues, Values: []ir.Value{{Off: 32, Type: ir.U64, Expr: param(pos, 16)}}}})
		row := ir.View{Mem: s, Off: param(pos, 16), Len: ir.Const(16)}
		d := p.binary("Add", row, floats(x, 0, 4), floats(x, 0, 4), ir.Const(4))
		d.Indirect = &ir.Indirect{Offsets: []ir.OffsetAt{{Slot: 2, At: ir.ViewOf(args, 32, 8)}}}
		p.Barrier()
		g := t.plan(p)
		want := repeated(0, 32)
		for _, pos := range []int{0, 5, 7, 2} {
			t.putInput(g, "x", 1, 2, float32(pos), 4)
			t.run(g, "pos", pos)
			copy(want[4*pos:], []float32{2, 4, 2 * float32(pos), 8})
			require.Equal(t, want, get(t.bytes(g.State("s"))))
		}
	},
}
