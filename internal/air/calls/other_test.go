package calls

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestAtomics holds what an atomic function returns and leaves in memory against plain
// arithmetic, with each memory order.
func TestAtomics(t *testing.T) {
	type meaning func(was, x uint64) uint64
	f32 := func(f func(a, b float32) float32) meaning {
		return func(was, x uint64) uint64 {
			return uint64(math.Float32bits(f(math.Float32frombits(uint32(was)), math.Float32frombits(uint32(x)))))
		}
	}
	updates := map[string]meaning{
		"add": func(a, b uint64) uint64 { return a + b }, "sub": func(a, b uint64) uint64 { return a - b },
		"and": func(a, b uint64) uint64 { return a & b }, "or": func(a, b uint64) uint64 { return a | b },
		"xor": func(a, b uint64) uint64 { return a ^ b }, "xchg": func(a, b uint64) uint64 { return b },
		"min.u": func(a, b uint64) uint64 { return min(a, b) }, "max.u": func(a, b uint64) uint64 { return max(a, b) },
		"add.f32": f32(func(a, b float32) float32 { return a + b }), "sub.f32": f32(func(a, b float32) float32 { return a - b }),
		"xchg.f32": func(a, b uint64) uint64 { return b },
	}
	for width := range map[int]bool{32: true, 64: true} {
		sign := func(v uint64) int64 { return int64(v<<(64-width)) >> (64 - width) }
		updates[fmt.Sprintf("min.s%d", width)] = func(a, b uint64) uint64 { return uint64(min(sign(a), sign(b))) }
		updates[fmt.Sprintf("max.s%d", width)] = func(a, b uint64) uint64 { return uint64(max(sign(a), sign(b))) }
	}
	var fs []Function
	for _, f := range families() {
		if strings.HasPrefix(f.Name, "air.atomic.global.") {
			fs = append(fs, f)
		}
	}
	require.Greater(t, len(fs), 30)
	p := start(t, fs)
	r := rand.New(rand.NewPCG(11, 12))
	for _, f := range fs {
		n, err := parseName(f.Name)
		require.NoError(t, err)
		const count = 400
		var was, desired, expected []uint64
		mask := ^uint64(0) >> (64 - n.t.bits())
		for range count {
			if n.t.float() {
				was = append(was, uint64(math.Float32bits(r.Float32()*8-4)))
				desired = append(desired, uint64(math.Float32bits(r.Float32()*8-4)))
			} else {
				was = append(was, r.Uint64()&mask>>r.IntN(n.t.bits()))
				desired = append(desired, r.Uint64()&mask)
			}
			expected = append(expected, []uint64{was[len(was)-1], desired[len(desired)-1]}[r.IntN(2)])
		}
		var args [][]byte
		pointers := 0
		for j, param := range f.Params {
			ty := element(t, f, j)
			switch {
			case strings.HasPrefix(param, "ptr") && pointers == 0:
				args = append(args, pack(was, ty))
				pointers++
			case strings.HasPrefix(param, "ptr"):
				args = append(args, pack(expected, ty))
				pointers++
			case j < len(f.Params)-3+strings.Count(f.Name, "load")-strings.Count(f.Name, "cmpxchg"):
				args = append(args, pack(desired, ty))
			default:
				var order []uint64
				for i := range count {
					order = append(order, []uint64{0, 0, 5}[i%3]&(1<<(ty.bits()-1)))
				}
				args = append(args, pack(order, ty))
			}
		}
		out := p.run(t, f.Name, count, false, args...)
		size := n.t.bits() / 8 * count
		var returned []uint64
		if f.Result != "void" {
			returned, out = unpack(out[:size], n.t), out[size:]
		}
		memory := unpack(out[:size], n.t)
		for i := range count {
			what := fmt.Sprintf("%s of 0x%x and 0x%x", f.Name, was[i], desired[i])
			if f.Result != "void" {
				require.Equal(t, was[i], returned[i], what)
			}
			switch n.what {
			case "load":
				require.Equal(t, was[i], memory[i], what)
			case "store":
				require.Equal(t, desired[i], memory[i], what)
			case "cmpxchg.weak":
				want := was[i]
				if expected[i] == was[i] {
					want = desired[i]
				}
				require.Equal(t, want, memory[i], what)
				require.Equal(t, was[i], unpack(out[size:], n.t)[i], what)
			default:
				m := updates[n.what]
				if n.t.float() {
					m = updates[n.what+".f32"]
				} else if n.what == "min" || n.what == "max" {
					m = updates[n.what+".u"]
					if n.sign == 's' {
						m = updates[fmt.Sprintf("%s.s%d", n.what, n.t.bits())]
					}
				}
				require.Equal(t, m(was[i], desired[i])&mask, memory[i], what)
			}
		}
	}
}

// TestPacking unpacks every word of 8 and 16 bits and random ones of 32 and 64, and packs
// them again.
func TestPacking(t *testing.T) {
	sample.Seldom(t)
	var fs []Function
	for _, f := range families() {
		if strings.HasPrefix(f.Name, "air.pack.") || strings.HasPrefix(f.Name, "air.unpack.") {
			fs = append(fs, f)
		}
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(13, 14))
	for format, k := range packings {
		word, _ := parseType(k.word)
		var x []uint64
		for i := range 65536 {
			x = append(x, uint64(i)&(1<<min(word.bits(), 16)-1))
			if word.bits() > 16 {
				x[i] = r.Uint64() >> (64 - word.bits())
			}
		}
		lanes := len(k.fields)
		n := typ{elem: "float"}
		if lanes > 1 {
			n.lanes = lanes
		}
		out := p.run(t, "air.unpack."+format+"."+n.suffix(), len(x), false, pack(x, word))
		got := bytesFloat(out)
		for i, v := range x {
			for j, f := range k.fields {
				bits := v >> f.offset & (1<<f.width - 1)
				want := float64(bits) / float64(uint64(1)<<f.width-1)
				if k.signed {
					top := float64(int64(1)<<(f.width-1) - 1)
					want = max(-1, float64(int64(bits<<(64-f.width))>>(64-f.width))/top)
				}
				if k.srgb && j < 3 {
					if want <= 0.04045 {
						want /= 12.92
					} else {
						want = math.Pow((want+0.055)/1.055, 2.4)
					}
					require.InEpsilon(t, want+1, got[lanes*i+j]+1, 1e-7)
					continue
				}
				require.Equal(t, float32(want), got[lanes*i+j], "%s of 0x%x", format, v)
			}
		}
		back := unpack(p.run(t, "air.pack."+format+"."+n.suffix(), len(x), false, out), word)
		for i, v := range x {
			want := v
			for _, f := range k.fields {
				// The least signed value stands for -1, as the one after it does.
				if least := uint64(1) << (f.width - 1); k.signed && v>>f.offset&(1<<f.width-1) == least {
					want += 1 << f.offset
				}
			}
			require.Equal(t, want, back[i], "%s of 0x%x", format, v)
		}
		// Beyond the range, and no number.
		for v, top := range map[float32]bool{2: true, float32(math.Inf(1)): true, float32(math.NaN()): false, -0.0: false} {
			args := floatBytes(slices.Repeat([]float32{v}, lanes)...)
			got := unpack(p.run(t, "air.pack."+format+"."+n.suffix(), 1, false, args), word)[0]
			for _, f := range k.fields {
				want := uint64(0)
				if top {
					want = uint64(k.top(f))
				}
				require.Equal(t, want, got>>f.offset&(1<<f.width-1), "%s of %v", format, v)
			}
		}
	}
}

// TestGeometry holds functions of vectors against float32 arithmetic in Go.
func TestGeometry(t *testing.T) {
	v3 := "<3 x float>"
	fs := []Function{
		{"air.dot.v4f16", "half", []string{"<4 x half>", "<4 x half>"}},
		{"air.dot.v3f32", "float", []string{v3, v3}},
		{"air.cross.v3f32", v3, []string{v3, v3}},
		{"air.normalize.v3f32", v3, []string{v3}},
		{"air.length.v3f32", "float", []string{v3}},
		{"air.distance.v3f32", "float", []string{v3, v3}},
		{"air.reflect.v3f32", v3, []string{v3, v3}},
		{"air.refract.v3f32", v3, []string{v3, v3, "float"}},
		{"air.faceforward.v3f32", v3, []string{v3, v3, v3}},
		{"air.smoothstep.v3f32", v3, []string{v3, v3, v3}},
		{"air.mix.v3f32", v3, []string{v3, v3, v3}},
		{"air.select.v3f32", v3, []string{v3, v3, "<3 x i1>"}},
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(15, 16))
	for range 200 {
		var a, b, c [3]float64
		for i := range a {
			a[i], b[i], c[i] = float64(float32(r.Float64()*4-2)), float64(float32(r.Float64()*4-2)), float64(float32(r.Float64()))
		}
		bytes := func(v [3]float64) []byte { return floatBytes(float32(v[0]), float32(v[1]), float32(v[2])) }
		dot := func(x, y [3]float64) float64 { return x[0]*y[0] + x[1]*y[1] + x[2]*y[2] }
		plus := func(x [3]float64, s float64, y [3]float64) [3]float64 {
			return [3]float64{x[0] + s*y[0], x[1] + s*y[1], x[2] + s*y[2]}
		}
		near := func(name string, want []float64, args ...[]byte) {
			t.Helper()
			got := bytesFloat(p.run(t, "air."+name+".v3f32", 1, false, args...))
			for i := range want {
				require.InDelta(t, want[i], got[i], 4e-6, name)
			}
		}
		near("dot", []float64{dot(a, b)}, bytes(a), bytes(b))
		x := [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
		near("cross", x[:], bytes(a), bytes(b))
		unit := plus([3]float64{}, 1/math.Sqrt(dot(a, a)), a)
		near("normalize", unit[:], bytes(a))
		near("length", []float64{math.Sqrt(dot(a, a))}, bytes(a))
		d := plus(a, -1, b)
		near("distance", []float64{math.Sqrt(dot(d, d))}, bytes(a), bytes(b))
		x = plus(a, -2*dot(b, a), b)
		near("reflect", x[:], bytes(a), bytes(b))
		in, eta := plus([3]float64{}, 1/math.Sqrt(dot(b, b)), b), c[0]*2
		nd := dot(unit, in)
		k := 1 - eta*eta*(1-nd*nd)
		x = [3]float64{}
		if k >= 0 {
			x = plus(plus([3]float64{}, eta, in), -(eta*nd + math.Sqrt(k)), unit)
		}
		if math.Abs(k) > 1e-3 {
			near("refract", x[:], bytes(in), bytes(unit), floatBytes(float32(eta)))
		}
		x = a
		if dot(c, b) >= 0 {
			x = plus([3]float64{}, -1, a)
		}
		near("faceforward", x[:], bytes(a), bytes(b), bytes(c))
		x = [3]float64{}
		for i := range x {
			s := max(0, min(1, (b[i]-c[i])/(c[i]+1-c[i])))
			x[i] = s * s * (3 - 2*s)
		}
		near("smoothstep", x[:], bytes(c), bytes([3]float64{c[0] + 1, c[1] + 1, c[2] + 1}), bytes(b))
		x = [3]float64{a[0] + (b[0]-a[0])*c[0], a[1] + (b[1]-a[1])*c[1], a[2] + (b[2]-a[2])*c[2]}
		near("mix", x[:], bytes(a), bytes(b), bytes(c))
		near("select", []float64{b[0], a[1], b[2]}, bytes(a), bytes(b), []byte{1, 0, 1})
	}
	// Of halves, products are exact and the sum is rounded at the end.
	h := format{'f', typ{elem: "half"}}
	put := func(x ...float64) (b []byte) {
		for _, v := range x {
			b = append(b, pack([]uint64{h.encode(numberOf(v))}, h.t)...)
		}
		return b
	}
	got := unpack(p.run(t, "air.dot.v4f16", 1, false, put(300, 300, -300, 1), put(300, 1, 300, 0.5)), h.t)
	assert.Equal(t, h.encode(numberOf(300.5)), got[0])
}

// TestConstants calls what asks the compiler, and what asks of truth values.
func TestConstants(t *testing.T) {
	fs := []Function{
		{"air.is_uniform.i32", "i1", []string{"i32"}},
		{"air.get_simdgroup_size.i16", "i16", []string{"i16"}},
		{"air.normalize_function_constant_predicate.i8", "i8", []string{"i8"}},
	}
	fs[1].Params = nil
	for target := Host; target <= PTX; target++ {
		d, err := Define(fs[0], target)
		require.NoError(t, err)
		assert.Contains(t, d.Text, "ret i1 true")
		d, err = Define(fs[1], target)
		require.NoError(t, err)
		assert.Contains(t, d.Text, "ret i16 32")
	}
	all, any := Function{"air.all.v2i1", "i1", []string{"<2 x i1>"}}, Function{"air.any.v2i1", "i1", []string{"<2 x i1>"}}
	p := start(t, []Function{fs[0], fs[2], all, any})
	assert.Equal(t, []byte{0, 0, 0, 1}, p.run(t, all.Name, 4, false, []byte{0, 0, 0, 1, 1, 0, 1, 1}))
	assert.Equal(t, []byte{0, 1, 1, 1}, p.run(t, any.Name, 4, false, []byte{0, 0, 0, 1, 1, 0, 1, 1}))
	assert.Equal(t, []byte{1, 1}, p.run(t, fs[0].Name, 2, false, make([]byte, 8)))
	assert.Equal(t, []byte{0, 1, 1, 1}, p.run(t, fs[2].Name, 4, false, []byte{0, 1, 2, 255}))
}
