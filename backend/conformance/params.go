package conformance

import (
	"context"
	"math"

	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// paramTests test that params reach offsets, lengths, grids and scalars, that these are computed
// exactly, and that a replay has the values at the time when it was submitted.
var paramTests = map[string]func(*T){
	"param/offset": func(t *T) {
		p := newProgram("g")
		pos := p.Param("pos", 0, 7)
		x, cache := p.memory("x", ir.Input, 4), p.state("cache", 32, 0)
		p.binary("Add", ir.View{Mem: cache, Off: param(pos, 16), Len: ir.Const(16)}, floats(x, 0, 4), floats(x, 0, 4), ir.Const(4))
		g := t.plan(p)
		want := make([]float32, 32)
		for i, at := range []int{3, 0, 7} {
			t.fillInput(g, "x", float32(i+1))
			t.run(g, "pos", at)
			copy(want[4*at:], repeated(2*float32(i+1), 4))
			require.Equal(t, want, get(t.bytes(g.State("cache"))))
		}
	},

	"param/length_of_copy_and_fill": func(t *T) {
		p := newProgram("g")
		n := p.Param("n", 0, 8)
		x, s := p.memory("x", ir.Input, 8), p.state("s", 8, 9)
		p.Fill(ir.View{Mem: s, Off: ir.Const(0), Len: param(n, 4)}, 0, "")
		p.Barrier()
		p.Copy(ir.View{Mem: s, Off: param(n, 2), Len: param(n, 2)}, ir.View{Mem: x, Off: ir.Const(0), Len: param(n, 2)}, "")
		g := t.plan(p)
		t.putInput(g, "x", counting(1, 8)...)
		for _, c := range []struct {
			n    int
			want []float32
		}{{2, []float32{0, 1, 9, 9, 9, 9, 9, 9}}, {0, repeated(9, 8)}, {8, []float32{0, 0, 0, 0, 1, 2, 3, 4}}, {4, []float32{0, 0, 1, 2, 9, 9, 9, 9}}} {
			t.fillState(g, "s", 9)
			t.run(g, "n", c.n)
			require.Equal(t, c.want, get(t.bytes(g.State("s"))), "n = %d", c.n)
		}
	},

	"param/grid": func(t *T) {
		p := newProgram("g")
		n := p.Param("n", 1, 1000)
		x, s := p.memory("x", ir.Input, 1000), p.state("s", 1000, 0)
		p.binary("Add", floats(s, 0, 1000), floats(x, 0, 1000), floats(x, 0, 1000), param(n, 1))
		g := t.plan(p)
		t.putInput(g, "x", counting(1, 1000)...)
		for _, n := range []int{1, 7, 8, 9, 500, 1000} {
			t.fillState(g, "s", -1)
			t.run(g, "n", n)
			for i, v := range get(t.bytes(g.State("s"))) {
				want := float32(-1)
				if i < n {
					want = 2 * float32(i+1)
				}
				if v != want {
					t.Errorf("n = %d: s[%d] = %v, want %v", n, i, v, want)
					return
				}
			}
		}
	},

	// ⌈n/32⌉ threadgroups and a scalar n, both of the same param.
	"param/ceil_grid_and_scalar": func(t *T) {
		p := newProgram("g")
		n := p.Param("rows", 1, 70)
		x, w, s := p.memory("x", ir.Input, 70*2), p.memory("w", ir.Input, 3*2), p.state("s", 70*3, 0)
		p.Dispatch(ir.Dispatch{
			Kernel: p.kernel("gemm_nt_float32"), Grid: [3]ir.Extent{ir.Ext(1), {Num: param(n, 1), Div: 32}, ir.Ext(1)}, Threadgroup: [3]uint32{32, 2, 2},
			Bindings: []ir.Binding{
				ir.BufferArg(0, floats(x, 0, 140)), ir.BufferArg(1, floats(w, 0, 6)), ir.BufferArg(2, floats(s, 0, 210)),
				ir.BytesArg(3, ir.ValueBytes(int32(2))), ir.BytesArg(4, ir.ValueBytes(int32(3))), ir.ScalarArg(5, ir.I32, param(n, 1)),
			},
		})
		g := t.plan(p)
		t.putInput(g, "x", counting(0, 140)...)
		t.putInput(g, "w", 1, 0, 0, 1, 1, 1)
		for _, n := range []int{1, 31, 32, 33, 70} {
			t.fillState(g, "s", -1)
			t.run(g, "rows", n)
			got := get(t.bytes(g.State("s")))
			for i := range 70 {
				want := []float32{-1, -1, -1}
				if i < n {
					want = []float32{float32(2 * i), float32(2*i + 1), float32(4*i + 1)}
				}
				require.Equal(t, want, got[3*i:3*i+3], "rows = %d, row %d", n, i)
			}
		}
	},

	"param/f32": func(t *T) {
		p := newProgram("g")
		eps := p.ParamF32("eps", 0, 100)
		x, w, y := p.memory("x", ir.Input, 4), p.memory("w", ir.Input, 4), p.memory("y", ir.Output, 4)
		p.rms(y, x, w, ir.Ext(1), 1, 4, 32).Bindings[3] = ir.ScalarArg(3, ir.F32, param(eps, 1))
		g := t.plan(p)
		t.fillInput(g, "x", 1)
		t.fillInput(g, "w", 2)
		for _, eps := range []int{0, 3, 99} {
			t.run(g, "eps", eps)
			require.InDelta(t, 2/math.Sqrt(1+float64(eps)), get(t.bytes(g.Output("y")))[2], 1e-6, "eps = %d", eps)
		}
	},

	"param/several": func(t *T) {
		p := newProgram("g")
		a, b := p.Param("a", 0, 5), p.Param("b", 0, 5)
		p.Require(param(a, 1).Add(param(b, 1)), 7)
		x, s := p.memory("x", ir.Input, 1), p.state("s", 32, 0)
		p.Copy(ir.View{Mem: s, Off: param(a, 4).Add(param(b, 12)).AddConst(4), Len: ir.Const(4)}, floats(x, 0, 1), "")
		g := t.plan(p)
		want := make([]float32, 32)
		for i, c := range [][2]int{{0, 0}, {5, 2}, {2, 5}, {3, 3}} {
			t.fillInput(g, "x", float32(i+1))
			t.run(g, "a", c[0], "b", c[1])
			want[c[0]+3*c[1]+1] = float32(i + 1)
			require.Equal(t, want, get(t.bytes(g.State("s"))))
		}
	},

	// Parts of an offset are too large for 32 bits, though their sum is not.
	"param/no_wrap": func(t *T) {
		p := newProgram("g")
		a, b := p.Param("a", 0, 1<<31), p.Param("b", 0, 1<<31)
		p.Require(param(a, 1).Sub(param(b, 1)), 3)
		p.Require(param(b, 1).Sub(param(a, 1)), 0)
		x, s := p.memory("x", ir.Input, 1), p.state("s", 8, 0)
		p.Copy(ir.View{Mem: s, Off: param(a, 4).Sub(param(b, 4)), Len: ir.Const(4)}, floats(x, 0, 1), "")
		g := t.plan(p)
		t.fillInput(g, "x", 5)
		t.run(g, "a", 1<<31, "b", 1<<31-2)
		t.run(g, "a", 1<<30, "b", 1<<30)
		require.Equal(t, []float32{5, 0, 5, 0, 0, 0, 0, 0}, get(t.bytes(g.State("s"))))
	},

	// The host may change params as soon as Submit returns.
	"param/taken_at_submit": func(t *T) {
		p := newProgram("g")
		pos := p.Param("pos", 0, 3)
		x, s := p.memory("x", ir.Input, 1), p.state("s", 4, 0)
		p.Copy(ir.View{Mem: s, Off: param(pos, 4), Len: ir.Const(4)}, floats(x, 0, 1), "")
		g := t.plan(p)
		t.fillInput(g, "x", 5)
		require.NoError(t, g.SetParam("pos", 2))
		pending, err := g.Submit(context.Background())
		require.NoError(t, err)
		require.NoError(t, g.SetParam("pos", 0))
		_, err = pending.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, []float32{0, 0, 5, 0}, get(t.bytes(g.State("s"))))
	},

	// Package replay refuses values that break bounds before anything is submitted.
	"param/refused": func(t *T) {
		p := newProgram("g")
		a, b := p.Param("a", 1, 5), p.Param("b", 0, 5)
		p.Require(param(a, 1).Add(param(b, 1)), 7)
		s := p.state("s", 4, 1)
		p.Fill(ir.ViewOf(s, 0, 16), 0, "")
		g := t.plan(p)
		require.Error(t, g.SetParam("a", 0))
		require.Error(t, g.SetParam("a", 6))
		require.Error(t, g.SetParam("a", 1.5))
		require.Error(t, g.SetParam("c", 1))
		require.NoError(t, g.SetParam("a", 5))
		_, err := g.Run(context.Background())
		require.ErrorContains(t, err, "$b has no value")
		require.NoError(t, g.SetParam("b", 3))
		_, err = g.Run(context.Background())
		require.ErrorContains(t, err, "<= 7")
		require.Equal(t, repeated(1, 4), get(t.bytes(g.State("s"))), "nothing ran")
		t.run(g, "b", 2)
		require.Equal(t, repeated(0, 4), get(t.bytes(g.State("s"))))
	},

	"param/fixed_by_its_bound": func(t *T) {
		p := newProgram("g")
		pos := p.Param("pos", 2, 2)
		s := p.state("s", 4, 0)
		p.Fill(ir.View{Mem: s, Off: param(pos, 4), Len: ir.Const(4)}, 0x3f, "")
		g := t.planned(t.open(replay.Options{}, t.graph(p)), "g")
		t.run(g)
		require.Equal(t, uint32(0x3f3f3f3f), math.Float32bits(get(t.bytes(g.State("s")))[2]))
		require.Zero(t, get(t.bytes(g.State("s")))[3])
	},
}
