package calls

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestRuntime checks that a module with these definitions needs no library, on the oldest
// machines too, and that what they are made of rounds as it should.
func TestRuntime(t *testing.T) {
	sample.Long(t)
	c := compiler(t)
	native := `
define bfloat @a(float %x) {
  %r = fptrunc float %x to bfloat
  ret bfloat %r
}
define bfloat @b(double %x) {
  %r = fptrunc double %x to bfloat
  ret bfloat %r
}
define half @c(float %x) {
  %r = fptrunc float %x to half
  ret half %r
}
define half @d(double %x) {
  %r = fptrunc double %x to half
  ret half %r
}
define float @e(half %x) {
  %r = fpext half %x to float
  ret float %r
}
define float @f(float %x, float %y, float %z) {
  %r = call float @llvm.fma.f32(float %x, float %y, float %z)
  ret float %r
}
declare float @llvm.fma.f32(float, float, float)
`
	without := external(t, compiles(t, c, native, "--target=x86_64-unknown-linux-gnu", "-O2", "-c"))
	assert.ElementsMatch(t, []string{"__truncsfbf2", "__truncdfbf2", "__truncsfhf2", "__truncdfhf2", "__extendhfsf2", "fmaf"}, without)
	for _, arch := range []string{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"} {
		assert.Empty(t, external(t, compiles(t, c, native+Runtime(), "--target=x86_64-unknown-linux-gnu", "-march="+arch, "-O2", "-c")), arch)
	}
	assert.Empty(t, external(t, compiles(t, c, native+Runtime(), "--target=aarch64-unknown-linux-gnu", "-O2", "-c")))

	half, bfloat, single := formats[9], formats[10], formats[11]
	p := start(t, []Function{
		{"air.math.half_of_float", "i16", []string{"float"}}, {"air.math.float_of_half", "float", []string{"i16"}},
		{"air.math.odd_of_double", "float", []string{"i64"}}, {"air.math.fma_f", "float", []string{"float", "float", "float"}},
	})
	r := rand.New(rand.NewPCG(21, 22))
	x := append(edges(single), single.samples(r)...)
	for i := range 0x7c00 { // halves, the middles between them, and the floats around these
		v, w := half.decode(uint64(i)).float64(), half.decode(uint64(i+1)).float64()
		if math.IsInf(w, 0) {
			w = 65536
		}
		m := uint64(math.Float32bits(float32((v + w) / 2)))
		x = append(x, m, m+1, m-1, m|1<<31, uint64(math.Float32bits(float32(v))))
	}
	got := unpack(p.run(t, "air.math.half_of_float", len(x), false, pack(x, single.t)), half.t)
	for i, v := range x {
		n := single.decode(v)
		if n.not == "nan" {
			require.Equal(t, "nan", half.decode(got[i]).not)
			continue
		}
		require.Equalf(t, half.encode(n), got[i], "half of 0x%x", v)
	}
	all := half.samples(r)
	back := unpack(p.run(t, "air.math.float_of_half", len(all), false, pack(all, half.t)), single.t)
	for i, v := range all {
		n := half.decode(v)
		if n.not == "nan" {
			require.Equal(t, "nan", single.decode(back[i]).not)
			continue
		}
		require.Equalf(t, single.encode(n), back[i], "float of half 0x%x", v)
	}
	// Doubles near halves and bfloats, and near the middles between those.
	var d []uint64
	for range 100000 {
		f := []format{half, bfloat}[r.IntN(2)]
		v := f.decode(uint64(r.IntN(0x7bff))).float64() * (1 + math.Ldexp(float64(r.IntN(5)), -12+4*r.IntN(2)))
		d = append(d, math.Float64bits(v)+uint64(r.IntN(3))-1)
	}
	odd := unpack(p.run(t, "air.math.odd_of_double", len(d), false, pack(d, typ{elem: "i64"})), single.t)
	for i, v := range d {
		n := numberOf(math.Float64frombits(v))
		if n.not == "nan" {
			continue
		}
		for _, f := range []format{half, bfloat} {
			require.Equalf(t, f.encode(n), f.encode(single.decode(odd[i])), "%s of 0x%x", f, v)
		}
	}
	var abc [3][]uint64
	for range 60000 {
		for j := range abc {
			v := r.Uint64() >> 32
			if r.IntN(2) == 0 {
				v = uint64(math.Float32bits(float32(math.Ldexp(r.Float64()-0.5, r.IntN(60)-30))))
			}
			abc[j] = append(abc[j], v)
		}
	}
	fused := unpack(p.run(t, "air.math.fma_f", len(abc[0]), false, pack(abc[0], single.t), pack(abc[1], single.t), pack(abc[2], single.t)), single.t)
	for i := range fused {
		a, b, c := single.decode(abc[0][i]), single.decode(abc[1][i]), single.decode(abc[2][i])
		if a.not != "" || b.not != "" || c.not != "" {
			continue
		}
		s := new(big.Float).SetPrec(900).Mul(a.v, b.v)
		require.Equalf(t, single.encode(number{v: s.Add(s, c.v)}), fused[i], "fma(0x%x, 0x%x, 0x%x)", abc[0][i], abc[1][i], abc[2][i])
	}
}
