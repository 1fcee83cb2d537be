package decl_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// effectsOf binds a kernel with one argument `y TYPE[SHAPE] ACCESS` whose shape
// names p and q, and returns what it touches.
func effectsOf(f *fixture, elem, shape, access string, view ir.View, p, q ir.Affine) (*ir.Effects, error) {
	lines := []string{"kernel k", "arg 0 y device " + elem + "[" + shape + "] " + access, "arg 1 p constant i32", "arg 2 q constant i32", "groups 1, 1, 1", "nondeterministic", "group _, _, _"}
	if access == "write" {
		lines[1], lines[5] = "arg 0 y device "+elem+"["+shape+"] update", "nondeterministic"
	}
	read, err := decl.Parse("f.metal", source(lines...))
	ds := read.Decls
	if err != nil {
		return nil, err
	}
	d := ds[0]
	if access == "write" {
		d.Args[0].Mode = decl.Write // its term does not matter here
	}
	scalar := func(slot uint8, a ir.Affine) ir.Binding {
		if a.IsConst() {
			return value(slot, int32(a.Const))
		}
		return ir.ScalarArg(slot, ir.I32, a)
	}
	in, err := f.bind(d, f.dispatch(d, ir.Threadgroups, [3]int64{1, 1, 1}, one, ir.BufferArg(0, view), scalar(1, p), scalar(2, q)))
	if err != nil {
		return nil, err
	}
	return in.Effects()
}

// TestRegions: the canonical form, by example. p is 3 and q is 4, or params.
func TestRegions(t *testing.T) {
	f := newFixture()
	n, pos := f.affine(0, f.n, 1), f.affine(0, f.pos, 1)
	three, four := ir.Const(3), ir.Const(4)
	for _, c := range []struct {
		elem, shape string
		p, q        ir.Affine
		want        string // or the error
	}{
		// Contiguous.
		{"f32", "p", three, four, "%m[256:268]"},
		{"f32", "p, q", three, four, "%m[256:304]"},
		{"f16", "p, q", three, four, "%m[256:280]"},
		{"f32", "p, 1, q, 1", three, four, "%m[256:304]"},
		{"f32", "1", three, four, "%m[256:260]"},
		{"f32", "p, q", n, four, "%m[256:16*$n + 256]"},
		{"f32", "n1, p, q", n, four, "error"},
		{"f32", "p, q : q, 1", three, four, "%m[256:304]"},
		{"f32", "p, q : 99, 1", ir.Const(1), four, "%m[256:272]"}, // a stride of one element says nothing
		// Strided.
		{"f32", "p, q : 5, 1", three, four, "%m[256:272; 3 x 20]"},
		{"f32", "p, q : 8, 2", three, four, "%m[256:260; 12 x 8]"}, // two dimensions that are one
		{"f32", "p, q : 9, 2", three, four, "%m[256:260; 3 x 36; 4 x 8]"},
		{"f32", "2, p, q : 30, 10, 1", three, four, "%m[256:272; 6 x 40]"},
		{"f32", "2, p, q : 31, 10, 1", three, four, "%m[256:272; 2 x 124; 3 x 40]"},
		{"f32", "p, q : 1, p", three, four, "%m[256:304]"},                // a transpose is contiguous bytes
		{"f32", "2, p, q : q, 8, 1", three, four, "%m[256:352]"},          // heads and positions swapped
		{"f32", "2, p, q : q, 8, 1", n, four, "%m[256:32*$n + 256]"},      // … for any number of positions
		{"f32", "2, p, q : q, 9, 1", n, four, "%m[256:288; $n x 36]"},     //
		{"f32", "p, q : 64, 1", three, n, "%m[256:4*$n + 256; 3 x 256]"},  //
		{"f32", "p, q : 1, 64", three, n, "%m[256:268; $n x 256]"},        //
		{"f32", "p, q : 2, 1", three, four, "%m[256:272; 3 x 8]"},         // windows that overlap
		{"f32", "p, q : 1, 1", three, four, "%m[256:272; 3 x 4]"},         //
		{"f32", "p, q : 50, 1", n, pos, "%m[256:4*$pos + 256; $n x 200]"}, //
		{"f32", "p, q, 2, 2, 2 : 64, 12, 6, 3, 1", three, four, "%m[256:264; 3 x 256; 16 x 12]"},
		// Broadcast.
		{"f32", "p, q : 0, 1", three, four, "%m[256:272]"},
		{"f32", "p, q : 0, 0", three, four, "%m[256:260]"},
		{"f32", "p, q : 1, 0", three, four, "%m[256:268]"},
		{"f32", "p, q : 0, 1", n, four, "%m[256:272; $n x 0]"}, // n may be 0
		{"f32", "p, q : 0, 1", n.AddConst(1), four, "%m[256:272]"},
		// Empty.
		{"f32", "p, q", ir.Const(0), four, ""},
		{"f32", "p, q : 4, 1", four, ir.Const(0), ""},
		{"f32", "p, q : 5, 1", ir.Const(0), n, ""},
		{"f32", "p, q : 0, 1", ir.Const(0), four, ""},
		// Packed codes.
		{"u32 as u4", "p, 2*q", three, four, "%m[256:268]"},
		{"u32 as u4", "p, 5", four, four, "%m[256:266]"},
		{"u32 as u4", "p, 5", three, four, "error"},
		{"u32 as u3", "p, 8", three, four, "%m[256:265]"},
		{"u32 as u4", "p, 2*q", n, four, "%m[256:4*$n + 256]"},
		{"u32 as u8", "p, q", three, four, "%m[256:268]"},
		{"u32 as u3", "p, 8 : 16, 1", three, four, "%m[256:259; 3 x 6]"},
	} {
		e, err := effectsOf(f, c.elem, c.shape, "read", ir.ViewOf(f.mem, 256, 60000), c.p, c.q)
		switch {
		case c.want == "error":
			assert.Error(t, err, c.shape)
		case !assert.NoError(t, err, c.shape):
		case c.want == "":
			assert.Empty(t, e.Reads, c.shape)
		default:
			assert.Equal(t, c.want, f.b.Unfinished().FormatRegion(e.Reads[0]), "%s[%s]", c.elem, c.shape)
		}
	}
}

func TestEffectErrors(t *testing.T) {
	for _, c := range []struct{ elem, shape, access, want string }{
		{"f32", "64, 257", "read", "#0 k: y: the kernel touches %m[0:65792], 256 bytes past the bound view %m[0:65536]"},
		{"f32", "p, 65", "write", "#0 k: y: the kernel touches %m[0:260*$n + 65000], 1544 bytes past the bound view %m[0:65536]"},
		{"u32 as u4", "3, 5", "read", "#0 k: y: a row of 60 bits is no whole number of bytes"},
		{"u32 as u3", "3, 8 : 9, 1", "read", "#0 k: y: a stride of 27 bits is no whole number of bytes"},
		{"f32", "3, 5 : 0, 1", "write", "#0 k: y: dimension 0 is written with stride 0"},
		{"f32", "3, 5 : q, 1", "read", "#0 k: strides of y: q depends on params or is negative"},
		{"f32", "3, 5 : -1, 1", "read", "#0 k: strides of y: -1 depends on params or is negative"},
		{"f32", "3, q", "read", ""},
		{"f32", "3, q, 2", "read", "#0 k: shape of y: only the outermost dimension may depend on params"},
		{"f32", "2, 2, 2, 2, 2, 2 : 200, 90, 40, 16, 5, 2", "read", "#0 k: y: more than 4 strided dimensions"},
		{"f32", "2, 2 : 1099511627776 * 2048, 1", "read", "#0 k: y: dimension 0 of up to 2 elements 2251799813685248 apart is absurd"},
		{"f32", "1073741824, 1073741824", "read", "#0 k: shape of y: it has 2^52 elements or more"},
		{"f32", "2, 1073741824 : 0, 33554432", "read", "#0 k: y: dimension 1 of up to 1073741824 elements 33554432 apart is absurd"},
	} {
		f := newFixture()
		_, err := effectsOf(f, c.elem, c.shape, c.access, ir.ViewOf(f.mem, 0, 1<<16), f.affine(250, f.n, 1), f.affine(0, f.pos, 1))
		if c.want == "" {
			assert.Error(t, err)
			continue
		}
		assert.EqualError(t, err, c.want)
	}
}

// TestAccesses: what each access becomes.
func TestAccesses(t *testing.T) {
	f := newFixture()
	for access, want := range map[string]string{
		"read": "r", "write": "w must", "update": "w", "atomic": "w atomic",
	} {
		e, err := effectsOf(f, "u32", "p", access, ir.ViewOf(f.mem, 0, 64), ir.Const(3), ir.Const(1))
		require.NoError(t, err)
		got := ""
		for range e.Reads {
			got += "r"
		}
		for _, w := range e.Writes {
			got += "w"
			if w.Must {
				got += " must"
			}
			if w.Atomic {
				got += " atomic"
			}
		}
		assert.Equal(t, want, got)
		assert.True(t, e.Known())
	}
}

// TestInlineReads: an inline device argument is nobody's memory, and as long as
// the kernel reads.
func TestInlineReads(t *testing.T) {
	d := parse(t, "kernel k", "arg 0 x device i32[n] read", "arg 1 y device i32[n] write", "threads n, 1, 1", "term y[i] = x[i]")
	f := newFixture()
	effects := func(n int64, x ir.Binding) (*ir.Effects, error) {
		in, err := f.bind(d, f.dispatch(d, ir.Threads, [3]int64{n, 1, 1}, one, x, f.view(1, 0, 64)))
		require.NoError(t, err)
		require.NoError(t, in.CheckAliasing())
		return in.Effects()
	}
	e, err := effects(2, value(0, int32(1), int32(2)))
	require.NoError(t, err)
	assert.Empty(t, e.Reads)
	assert.Len(t, e.Writes, 1)
	_, err = effects(3, value(0, int32(1), int32(2)))
	assert.EqualError(t, err, "#1 k: x: the kernel touches 4 bytes past its 8 inline bytes")
	_, err = effects(1, ir.ScalarArg(0, ir.I32, f.affine(0, f.n, 1)))
	assert.NoError(t, err)
	_, err = effects(2, ir.ScalarArg(0, ir.I32, f.affine(0, f.n, 1)))
	assert.EqualError(t, err, "#3 k: x: the kernel touches 4 bytes past its 4 inline bytes")
}

// TestRegionIsItsIndices: for any shape, strides, element type and values of the
// params, the bytes of the region are those of every index tuple, and the hull
// ends where the last one does.
func TestRegionIsItsIndices(t *testing.T) {
	seen := map[int]int{}
	property := func(t *rapid.T) {
		f := newFixture()
		pick := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		params := []uint32{uint32(pick("n", 0, 8)), uint32(pick("pos", 0, 92)), 0}
		dims := pick("dims", 1, 4)
		elem := rapid.SampledFrom([]string{"f32", "f16", "u8", "u32 as u4", "u32 as u2"}).Draw(t, "elem")
		bits := map[string]int{"f32": 32, "f16": 16, "u8": 8, "u32 as u4": 4, "u32 as u2": 2}[elem]
		packed := bits < 8
		// p and q are numbers, or depend on n.
		p, q := ir.Const(int64(pick("p", 0, 4))), ir.Const(int64(pick("q", 1, 4)))
		if pick("param", 0, 2) == 0 {
			p = f.affine(int64(pick("p0", 0, 2)), f.n, pick("p1", 1, 2))
		}
		names := map[string]int64{"p": p.Eval(params), "q": q.Eval(params), "1": 1, "2": 2, "3": 3, "8": 8}
		shape, strides, text := make([]int64, dims), make([]int64, dims), ""
		for i := range shape {
			name := rapid.SampledFrom([]string{"p", "q", "1", "2", "3", "8"}).Draw(t, "dim")
			if !p.IsConst() && name == "p" && i > 0 {
				name = "q"
			}
			shape[i] = names[name]
			if i > 0 {
				text += ", "
			}
			text += name
		}
		step := int64(1)
		for i := dims - 1; i >= 0; i-- {
			strides[i] = step
			step *= shape[i]
		}
		if !packed && pick("strided", 0, 2) > 0 {
			text += " : "
			permuted := rapid.Permutation([]int64{1, 2, 3, 5, 6, 12, 24, 60, 0}).Draw(t, "strides")
			for i := range strides {
				if pick("keep", 0, 2) > 0 && p.IsConst() {
					permuted[i] = strides[i] // contiguous in part
				}
				strides[i] = permuted[i]
				if i > 0 {
					text += ", "
				}
				text += fmt.Sprint(strides[i])
			}
		}
		off := f.affine(int64(4*pick("offset", 0, 10)), f.pos, 4)
		e, err := effectsOf(f, elem, text, "read", ir.View{Mem: f.mem, Off: off, Len: ir.Const(60000)}, p, q)
		if err != nil && packed {
			seen[-1]++
			return // rows of broken bytes
		}
		require.NoError(t, err, "%s[%s]", elem, text)

		want := map[int64]bool{}
		end := int64(0)
		index := make([]int64, dims)
		var walk func(j int)
		walk = func(j int) {
			if j == dims {
				at := int64(0)
				for i := range index {
					at += index[i] * strides[i]
				}
				for b := at * int64(bits) / 8; b <= ((at+1)*int64(bits)-1)/8; b++ {
					want[off.Eval(params)+b] = true
					end = max(end, off.Eval(params)+b+1)
				}
				return
			}
			for index[j] = 0; index[j] < shape[j]; index[j]++ {
				walk(j + 1)
			}
		}
		walk(0)
		got := map[int64]bool{}
		for _, r := range e.Reads {
			require.LessOrEqual(t, len(r.Dims), 4)
			for i, d := range r.Dims { // canonical
				require.False(t, d.Count.IsConst() && d.Count.Const <= 1, "%v", r)
				require.True(t, i == 0 || r.Dims[i-1].Stride >= d.Stride || r.Dims[i-1].Stride == 0, "%v", r)
			}
			r.Runs(params, func(lo, hi int64) bool {
				for b := lo; b < hi; b++ {
					got[b] = true
				}
				return true
			})
			if len(want) > 0 {
				lo, hullEnd := r.Hull()
				require.Equal(t, off.Eval(params), lo.Eval(params))
				require.Equal(t, end, hullEnd.Eval(params))
			}
			seen[len(r.Dims)]++
		}
		require.Equal(t, want, got, "%s[%s] of shape %v, strides %v", elem, text, shape, strides)
	}
	// One round of random cases nearly always has every number of strided dimensions.
	unseen := func() bool {
		return slices.ContainsFunc([]int{-1, 0, 1, 2, 3}, func(dims int) bool { return seen[dims] == 0 })
	}
	for round := 0; round < 40 && unseen(); round++ {
		rapid.Check(t, property)
	}
	for dims := -1; dims <= 3; dims++ {
		assert.Positive(t, seen[dims], "no case had %d strided dimensions", dims)
	}
}

func TestAliasing(t *testing.T) {
	d := parse(t, "kernel k", "arg 0 x device f32[m, n : sx, 1] read", "arg 1 w device u32[m, n] read", "arg 2 y device f32[m, n : sy, 1] write", "arg 3 z device f32[m, n] write",
		"arg 4 sx constant i32", "arg 5 sy constant i32", "threads n, m, 1", "inplace y x", "inplace z w", "inplace z x", "term y[r, i] = x[r, i]", "term z[r, i] = round(f32, w[r, i])")
	check := func(x, w, y, z ir.View, sx, sy, m, n int64, f *fixture) error {
		in, err := f.bind(d, f.dispatch(d, ir.Threads, [3]int64{n, m, 1}, one, ir.BufferArg(0, x), ir.BufferArg(1, w), ir.BufferArg(2, y), ir.BufferArg(3, z), value(4, int32(sx)), value(5, int32(sy))))
		require.NoError(t, err)
		return in.CheckAliasing()
	}
	f := newFixture()
	at := func(off int64) ir.View { return ir.ViewOf(f.mem, off, 4096) }
	alias := f.b.Alias("alias", f.mem, 1024, 8192)
	other := f.b.Memory(ir.Memory{Name: "other", Kind: ir.State, Size: 4096})
	param := ir.View{Mem: f.mem, Off: f.affine(0, f.n, 4), Len: ir.Const(4096)}
	for _, c := range []struct {
		name         string
		x, w, y, z   ir.View
		sx, sy, m, n int64
		want         string
	}{
		{"apart", at(0), at(4096), at(8192), at(12288), 8, 8, 4, 8, ""},
		{"views overlap, bytes do not", at(0), at(128), at(256), at(384), 8, 8, 4, 8, ""},
		{"inputs may overlap", at(0), at(4), at(8192), at(12288), 8, 8, 4, 8, ""},
		{"in place", at(0), at(4096), at(0), at(12288), 9, 9, 4, 8, ""},
		{"in place by another name", at(1024), at(4096), ir.ViewOf(alias, 0, 4096), at(12288), 9, 9, 4, 8, ""},
		{"in place, other strides of one row", at(0), at(4096), at(0), at(12288), 9, 8, 1, 8, ""},
		{"in place, other types of one size", at(0), at(4096), at(8192), at(4096), 8, 8, 4, 8, ""},
		{"a byte more", at(0), at(4096), at(4), at(12288), 8, 8, 4, 8,
			"#0 k: y %m[4:132] overlaps x %m[0:128]: it may only be the same view: offset, shape, strides and element size"},
		{"other strides", at(0), at(4096), at(0), at(12288), 9, 8, 4, 8,
			"#0 k: y %m[0:128] overlaps x %m[0:32; 4 x 36]: it may only be the same view: offset, shape, strides and element size"},
		{"not declared", at(0), at(4096), at(4096), at(12288), 8, 8, 4, 8, "#0 k: y %m[4096:4224] overlaps w %m[4096:4224]: it may not overlap"},
		{"two results", at(0), at(4096), at(8192), at(8192), 8, 8, 4, 8, "#0 k: y %m[8192:8320] overlaps z %m[8192:8320]: it may not overlap"},
		{"through an alias", at(1028), at(4096), ir.ViewOf(alias, 0, 4096), at(12288), 8, 8, 4, 8,
			"#0 k: y %alias[0:128] overlaps x %m[1028:1156]: it may only be the same view: offset, shape, strides and element size"},
		{"another memory", at(0), at(4096), ir.ViewOf(other, 0, 4096), at(12288), 8, 8, 4, 8, ""},
		{"empty", at(0), at(4096), at(0), at(0), 8, 8, 0, 8, ""},
		{"for some value of a param", at(60), at(4096), param, at(12288), 8, 8, 1, 8,
			"#0 k: y %m[4*$n:4*$n + 32] overlaps x %m[60:92]: it may only be the same view: offset, shape, strides and element size"},
		{"for no value of a param", at(64), at(4096), param, at(12288), 8, 8, 1, 8, ""},
		{"columns of one matrix", at(0), at(4096), at(32), at(12288), 16, 16, 4, 8, ""},
		{"columns that touch", at(0), at(4096), at(28), at(12288), 16, 16, 4, 8,
			"#0 k: y %m[28:60; 4 x 64] overlaps x %m[0:32; 4 x 64]: it may only be the same view: offset, shape, strides and element size"},
		{"columns, one with the greater stride", at(0), at(4096), at(32), at(12288), 32, 16, 4, 8, ""},
		{"columns of other widths", at(0), at(4096), at(32), at(12288), 16, 12, 4, 8,
			"#0 k: y %m[32:64; 4 x 48] overlaps x %m[0:32; 4 x 64]: it may only be the same view: offset, shape, strides and element size"},
		{"in place at a param", param, at(4096), param, at(12288), 8, 8, 4, 8, ""},
	} {
		err := check(c.x, c.w, c.y, c.z, c.sx, c.sy, c.m, c.n, f)
		if c.want == "" {
			assert.NoError(t, err, c.name)
		} else {
			assert.ErrorContains(t, err, c.want[2:], c.name) // the number of the dispatch differs
		}
	}
}

// TestAliasingIsSound: where the check says nothing, no byte is shared.
func TestAliasingIsSound(t *testing.T) {
	d := parse(t, "kernel k", "arg 0 x device u8[a, b, c : s[0], s[1], 1] read", "arg 1 y device u8[a, b, c : s[2], s[3], 1] write",
		"arg 2 s constant i64[4]", "threads c, b, a", "term y[i, j, k] = x[i, j, k]")
	f := newFixture()
	same, hulls := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := [3]int64{rapid.Int64Range(1, 3).Draw(t, "c"), rapid.Int64Range(1, 3).Draw(t, "b"), rapid.Int64Range(1, 3).Draw(t, "a")}
		s := [4]int64{}
		for i := range s {
			s[i] = rapid.SampledFrom([]int64{1, 2, 3, 4, 6, 8, 12}).Draw(t, "stride")
		}
		at := func(what string) ir.View {
			off := ir.Const(rapid.Int64Range(0, 24).Draw(t, what))
			if rapid.Bool().Draw(t, "at a param") {
				off = off.Add(f.affine(0, f.n, rapid.SampledFrom([]int{1, 4, 12}).Draw(t, "coefficient")))
			}
			return ir.View{Mem: f.mem, Off: off, Len: ir.Const(100)}
		}
		x, y := at("x"), at("y")
		in, err := f.bind(d, f.dispatch(d, ir.Threads, n, one, ir.BufferArg(0, x), ir.BufferArg(1, y), value(2, s[0], s[1], s[2], s[3])))
		require.NoError(t, err)
		rx, err1 := in.Region(0)
		ry, err2 := in.Region(1)
		require.NoError(t, err1)
		require.NoError(t, err2)
		if in.CheckAliasing() != nil {
			same++
			return
		}
		for v := range uint32(8) {
			params := make([]uint32, len(f.b.Unfinished().Params))
			params[f.n] = v
			bytes := map[int64]bool{}
			lo, end := int64(1<<40), int64(0)
			rx.Runs(params, func(a, b int64) bool {
				lo, end = min(lo, a), max(end, b)
				for ; a < b; a++ {
					bytes[a] = true
				}
				return true
			})
			ylo, yend := int64(1<<40), int64(0)
			ry.Runs(params, func(a, b int64) bool {
				ylo, yend = min(ylo, a), max(yend, b)
				for ; a < b; a++ {
					require.False(t, bytes[a], "byte %d at n = %d", a, v)
				}
				return true
			})
			if lo < yend && ylo < end {
				hulls++
			}
		}
	})
	assert.Positive(t, same, "no case overlapped")
	if !testing.Short() { // of which rapid takes a fifth of the cases
		assert.Positive(t, hulls, "no case was interleaved")
	}
}

// TestTransposeIsNotInPlace: the bytes of a square matrix and of its transpose
// are the same, the elements under an index are not.
func TestTransposeIsNotInPlace(t *testing.T) {
	d := parse(t, "kernel k", "arg 0 x device f32[n, n : s[0], s[1]] read", "arg 1 y device f32[n, n] write", "arg 2 s constant i64[2]", "threads n, n, 1", "inplace y x", "term y[r, i] = x[r, i]")
	f := newFixture()
	check := func(s0, s1 int64) error {
		in, err := f.bind(d, f.dispatch(d, ir.Threads, [3]int64{8, 8, 1}, one, f.view(0, 0, 256), f.view(1, 0, 256), value(2, s0, s1)))
		require.NoError(t, err)
		return in.CheckAliasing()
	}
	assert.NoError(t, check(8, 1))
	assert.EqualError(t, check(1, 8), "#1 k: y %m[0:256] overlaps x %m[0:256]: it may only be the same view: offset, shape, strides and element size")
}
