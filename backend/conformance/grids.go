package conformance

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// builtin returns the kernel of a library function.
func builtin(function string) ir.Kernel { return msl.Declarations(function)[0].Kernel(function) }

// gridTests test that a grid runs each of its threads once, whether it is given in threads or
// in threadgroups of any size, and that a grid without threads does nothing.
var gridTests = map[string]func(*T){
	"grid/empty": func(t *T) {
		p := newProgram("g")
		s := p.state("s", 16, 3)
		p.binary("Add", floats(s, 0, 4), floats(s, 4, 4), floats(s, 8, 4), ir.Const(0))
		g := t.plan(p)
		t.run(g)
		require.Equal(t, repeated(3, 16), get(t.bytes(g.State("s"))))
	},

	// One graph runs with n = 0, like a prefill of no tokens, and then with more.
	"grid/empty_by_param": func(t *T) {
		p := newProgram("g")
		n := p.Param("n", 0, 40)
		const k = 64
		x, w, s := p.memory("x", ir.Input, 40*k), p.memory("w", ir.Input, k), p.state("s", 40*k, 5)
		p.rms(s, x, w, ir.Extent{Num: param(n, 1), Div: 1}, 40, k, 32)
		g := t.plan(p)
		t.fillInput(g, "x", 2)
		t.fillInput(g, "w", 7)
		for _, n := range []int{0, 3, 0, 40} {
			t.fillState(g, "s", 5)
			t.run(g, "n", n)
			got := get(t.bytes(g.State("s")))
			require.Equal(t, repeated(7, n*k), got[:n*k], "n = %d", n)
			require.Equal(t, repeated(5, (40-n)*k), got[n*k:], "n = %d", n)
		}
	},

	// The result does not depend on the size of threadgroups nor on the unit of the
	// grid, for grids of one threadgroup and of many.
	"grid/threadgroups": func(t *T) {
		for _, n := range []int64{1, 31, 32, 33, 1000, 4096, 50000} {
			for _, size := range []uint32{1, 3, 32, 256, 1024} {
				for _, kind := range []ir.GridKind{ir.Threads, ir.Threadgroups} {
					if kind == ir.Threadgroups && n%int64(size) != 0 || n/int64(size) > 20000 {
						continue
					}
					p := newProgram("g")
					x, s := p.memory("x", ir.Input, n), p.state("s", n+8, 0)
					d := p.binary("Add", floats(s, 0, n), floats(x, 0, n), floats(x, 0, n), ir.Const(n))
					d.GridKind, d.Threadgroup = kind, [3]uint32{size, 1, 1}
					if kind == ir.Threadgroups {
						d.Grid[0] = ir.Ext(n / int64(size))
					}
					g := t.plan(p)
					t.putInput(g, "x", counting(0, int(n))...)
					t.run(g)
					what := fmt.Sprintf("%d elements in %s of %d", n, kind, size)
					for i, v := range get(t.bytes(g.State("s"))) {
						want := 2 * float32(i)
						if int64(i) >= n {
							want = 0
						}
						if v != want {
							t.Errorf("%s: s[%d] = %v, want %v", what, i, v, want)
							return
						}
					}
				}
			}
		}
	},

	// Each threadgroup computes some rows: together they compute each row once.
	"grid/rows": func(t *T) {
		for _, rows := range []int64{1, 2, 7, 300} {
			p := newProgram("g")
			const k = 130
			x, w, y := p.memory("x", ir.Input, rows*k), p.memory("w", ir.Input, k), p.memory("y", ir.Output, rows*k)
			p.rms(y, x, w, ir.Ext(rows), rows, k, 64)
			g := t.plan(p)
			data := make([]byte, 4*rows*k)
			for r := range int(rows) {
				fill(data[4*r*k:4*(r+1)*k], float32(r+1))
			}
			require.NoError(t, g.SetInput("x", data))
			t.fillInput(g, "w", 3)
			t.run(g)
			for i, v := range get(t.bytes(g.Output("y"))) {
				require.InDelta(t, 3, v, 1e-5, "%d rows, element %d", rows, i)
			}
		}
	},
}
