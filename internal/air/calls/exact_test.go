package calls

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// exactMeaning are the functions whose result Go's float64 has exactly, or rounded so that a
// second rounding to a shorter type does not show. Predicates give 0 and 1.
var exactMeaning = map[string]func(x []float64) float64{
	"floor":    func(x []float64) float64 { return math.Floor(x[0]) },
	"ceil":     func(x []float64) float64 { return math.Ceil(x[0]) },
	"trunc":    func(x []float64) float64 { return math.Trunc(x[0]) },
	"rint":     func(x []float64) float64 { return math.RoundToEven(x[0]) },
	"round":    func(x []float64) float64 { return math.Round(x[0]) },
	"fabs":     func(x []float64) float64 { return math.Abs(x[0]) },
	"copysign": func(x []float64) float64 { return math.Copysign(x[0], x[1]) },
	"fmin":     func(x []float64) float64 { return among(x, 0) },
	"fmax":     func(x []float64) float64 { return among(x, 1) },
	"fmin3":    func(x []float64) float64 { return among(x, 0) },
	"fmax3":    func(x []float64) float64 { return among(x, 1) },
	"clamp":    func(x []float64) float64 { return among([]float64{among(x[:2], 1), x[2]}, 0) },
	"saturate": func(x []float64) float64 { return among([]float64{among([]float64{x[0], 0}, 1), 1}, 0) },
	"sqrt":     func(x []float64) float64 { return math.Sqrt(x[0]) },
	"divide":   func(x []float64) float64 { return x[0] / x[1] },
	"fdim": func(x []float64) float64 {
		if x[0] <= x[1] {
			return 0
		}
		return x[0] - x[1]
	},
	"sign": func(x []float64) float64 {
		switch {
		case math.IsNaN(x[0]):
			return 0
		case x[0] == 0:
			return x[0]
		}
		return math.Copysign(1, x[0])
	},
	"step": func(x []float64) float64 {
		if x[1] < x[0] {
			return 0
		}
		return 1
	},
	"isnan":       func(x []float64) float64 { return truth(math.IsNaN(x[0])) },
	"isinf":       func(x []float64) float64 { return truth(math.IsInf(x[0], 0)) },
	"isfinite":    func(x []float64) float64 { return truth(!math.IsInf(x[0], 0) && !math.IsNaN(x[0])) },
	"isordered":   func(x []float64) float64 { return truth(!math.IsNaN(x[0]) && !math.IsNaN(x[1])) },
	"isunordered": func(x []float64) float64 { return truth(math.IsNaN(x[0]) || math.IsNaN(x[1])) },
	"signbit":     func(x []float64) float64 { return truth(math.Signbit(x[0])) },
	"fmedian3": func(x []float64) float64 {
		lo, hi := among(x[:2], 0), among(x[:2], 1)
		return among([]float64{lo, among([]float64{hi, x[2]}, 0)}, 1)
	},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// among is the least (0) or the greatest (1) of the numbers that are no NaNs. Of zeros, -0 is
// less.
func among(x []float64, greatest int) float64 {
	best := math.NaN()
	for _, v := range x {
		switch {
		case math.IsNaN(v):
		case math.IsNaN(best), greatest == 0 && (v < best || v == best && math.Signbit(v)), greatest == 1 && (v > best || v == best && !math.Signbit(v)):
			best = v
		}
	}
	return best
}

func numberOf(x float64) number {
	switch {
	case math.IsNaN(x):
		return number{not: "nan"}
	case math.IsInf(x, 1):
		return number{not: "+inf"}
	case math.IsInf(x, -1):
		return number{not: "-inf"}
	}
	return number{v: new(big.Float).SetFloat64(x)}
}

func (n number) float64() float64 {
	switch n.not {
	case "nan":
		return math.NaN()
	case "+inf":
		return math.Inf(1)
	case "-inf":
		return math.Inf(-1)
	}
	x, _ := n.v.Float64()
	return x
}

// edges are bits of floats that matter: zeros, denormals, ties, infinities, NaNs.
func edges(f format) []uint64 {
	var x []uint64
	for _, v := range []float64{
		0, 1, 0.5, 1.5, 2.5, 0.49999997, 2, 3, 7.5, 1e-45, 0x1p-126, 0x1p-24, 0x1p-14, 0x1p-15, 8388607.5, 8388608, 1e10, 65504, math.MaxFloat32, math.Inf(1), math.NaN(), 0.99999994,
	} {
		for _, s := range []float64{v, -v} {
			x = append(x, f.encode(numberOf(s)))
		}
	}
	return x
}

func floatFormats() []format { return formats[9:] }

// TestExact holds functions whose result is exact, or rounded once, against Go's.
func TestExact(t *testing.T) {
	sample.Long(t)
	var fs []Function
	for i, op := range slices.Sorted(maps.Keys(exactMeaning)) {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		for _, f := range floatFormats() {
			n := &name{t: f.t}
			fs = append(fs, Function{"air." + op + "." + f.t.suffix(), n.letter(floatFunctions[op].signature[0]).String(), slices.Repeat([]string{f.t.String()}, len(floatFunctions[op].signature)-1)})
		}
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(5, 6))
	for i, f := range fs {
		in := floatFormats()[i%3]
		out := in
		if f.Result == "i1" {
			out = formats[0]
		}
		n, _ := parseName(f.Name)
		args := make([][]uint64, len(f.Params))
		e := edges(in)
		switch {
		case len(args) == 1 && in.t.bits() == 16:
			args[0] = in.samples(r)
		case len(args) == 1:
			args[0] = append(append(args[0], e...), in.samples(r)...)
		default:
			for range 8000 {
				for j := range args {
					v := r.Uint64() >> (64 - in.t.bits())
					if r.IntN(2) == 0 {
						v = e[r.IntN(len(e))]
					}
					args[j] = append(args[j], v)
				}
			}
		}
		var arrays [][]byte
		for _, a := range args {
			arrays = append(arrays, pack(a, in.t))
		}
		got := unpack(p.run(t, f.Name, len(args[0]), false, arrays...), out.t)
		for k := range got {
			var x []float64
			var shown []string
			for _, a := range args {
				x = append(x, in.decode(a[k]).float64())
				shown = append(shown, fmt.Sprintf("0x%x", a[k]))
			}
			if (n.op == "copysign" || n.op == "signbit") && math.IsNaN(x[len(x)-1]) {
				continue // Go's NaNs have no sign to tell
			}
			want := exactMeaning[n.op](x)
			if math.IsNaN(want) && out.kind == 'f' && out.decode(got[k]).not == "nan" {
				continue
			}
			require.Equalf(t, out.encode(numberOf(want)), got[k], "%s%v is 0x%x", f.Name, shown, got[k])
		}
	}
}

// pack lays bits of one type behind each other.
func pack(x []uint64, t typ) []byte {
	var b []byte
	for _, v := range x {
		for k := 0; k < max(1, t.bits()/8); k++ {
			b = append(b, byte(v>>(8*k)))
		}
	}
	return b
}

func unpack(b []byte, t typ) []uint64 {
	size := max(1, t.bits()/8)
	x := make([]uint64, len(b)/size)
	for i := range x {
		for k := range size {
			x[i] |= uint64(b[i*size+k]) << (8 * k)
		}
	}
	return x
}

// TestFma holds fma against exact products and sums.
func TestFma(t *testing.T) {
	var fs []Function
	for _, f := range floatFormats() {
		fs = append(fs, Function{"air.fma." + f.t.suffix(), f.t.String(), slices.Repeat([]string{f.t.String()}, 3)})
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(7, 8))
	for i, f := range fs {
		in := floatFormats()[i]
		args := make([][]uint64, 3)
		e := edges(in)
		for range 60000 {
			for j := range args {
				v := r.Uint64() >> (64 - in.t.bits())
				switch r.IntN(4) {
				case 0:
					v = e[r.IntN(len(e))]
				case 1: // sizes that meet
					v = in.encode(numberOf(math.Ldexp(r.Float64()-0.5, r.IntN(30)-15)))
				}
				args[j] = append(args[j], v)
			}
		}
		got := unpack(p.run(t, f.Name, len(args[0]), false, pack(args[0], in.t), pack(args[1], in.t), pack(args[2], in.t)), in.t)
		for k := range got {
			a, b, c := in.decode(args[0][k]), in.decode(args[1][k]), in.decode(args[2][k])
			want := numberOf(math.FMA(a.float64(), b.float64(), c.float64()))
			if a.not == "" && b.not == "" && c.not == "" {
				s := new(big.Float).SetPrec(900).Mul(a.v, b.v)
				want = number{v: s.Add(s, c.v)}
			}
			if want.not == "nan" && in.decode(got[k]).not == "nan" {
				continue
			}
			require.Equalf(t, in.encode(want), got[k], "%s(0x%x, 0x%x, 0x%x)", f.Name, args[0][k], args[1][k], args[2][k])
		}
	}
}

// TestParts holds the functions that take floats apart, or put them together, against Go's.
func TestParts(t *testing.T) {
	sample.Seldom(t)
	var fs []Function
	for _, f := range floatFormats() {
		e, s := f.t.String(), f.t.suffix()
		fs = append(fs, Function{"air.frexp." + s, e, []string{e, "ptr"}}, Function{"air.modf." + s, e, []string{e, "ptr"}},
			Function{"air.ldexp." + s, e, []string{e, "i32"}}, Function{"air.ilogb." + s, "i32", []string{e}},
			Function{"air.nextafter." + s, e, []string{e, e}}, Function{"air.isnormal." + s, "i1", []string{e}},
			Function{"air.fract." + s, e, []string{e}}, Function{"air.sincos." + s, e, []string{e, "ptr"}},
			Function{"air.sin." + s, e, []string{e}}, Function{"air.cos." + s, e, []string{e}})
	}
	p := start(t, fs)
	r := rand.New(rand.NewPCG(9, 10))
	for _, f := range floatFormats() {
		x := append(edges(f), f.samples(r)...)
		n, s := len(x), f.t.suffix()
		in := pack(x, f.t)
		same := func(name string, i int, want float64, got uint64) {
			t.Helper()
			if math.IsNaN(want) && f.decode(got).not == "nan" {
				return
			}
			require.Equalf(t, f.encode(numberOf(want)), got, "%s of 0x%x", name, x[i])
		}
		// frexp, ilogb: an infinity and a NaN are their own fraction.
		out := p.run(t, "air.frexp."+s, n, false, in, make([]byte, 4*n))
		fraction, exponent := unpack(out[:len(in)], f.t), unpack(out[len(in):], int32s)
		logb := unpack(p.run(t, "air.ilogb."+s, n, false, in), int32s)
		parts := p.run(t, "air.modf."+s, n, false, in, make([]byte, len(in)))
		rest, whole := unpack(parts[:len(in)], f.t), unpack(parts[len(in):], f.t)
		fract := unpack(p.run(t, "air.fract."+s, n, false, in), f.t)
		normal := p.run(t, "air.isnormal."+s, n, false, in)
		sc := p.run(t, "air.sincos."+s, n, false, in, make([]byte, len(in)))
		assert.Equal(t, p.run(t, "air.sin."+s, n, false, in), sc[:len(in)])
		assert.Equal(t, p.run(t, "air.cos."+s, n, false, in), sc[len(in):])
		least := map[string]float64{"half": 0x1p-14, "bfloat": 0x1p-126, "float": 0x1p-126}[f.t.elem]
		below := map[string]float64{"half": 0x1.ffcp-1, "bfloat": 0x1.fep-1, "float": 0x1.fffffep-1}[f.t.elem]
		for i := range x {
			v := f.decode(x[i]).float64()
			fr, e := math.Frexp(v)
			same("frexp", i, fr, fraction[i])
			require.Equal(t, e, int(int32(exponent[i])), "frexp's exponent of 0x%x", x[i])
			switch {
			case v == 0 || math.IsNaN(v):
				e = math.MinInt32
			case math.IsInf(v, 0):
				e = math.MaxInt32
			default:
				e--
			}
			require.Equal(t, e, int(int32(logb[i])), "ilogb of 0x%x", x[i])
			w, fl := math.Trunc(v), math.Copysign(v-math.Trunc(v), v)
			if math.IsInf(v, 0) {
				fl = math.Copysign(0, v)
			}
			same("modf", i, fl, rest[i])
			same("modf's integer", i, w, whole[i])
			d := math.Min(v-math.Floor(v), below)
			if math.IsInf(v, 0) {
				d = math.Copysign(0, v)
			}
			same("fract", i, d, fract[i])
			require.Equal(t, truth(math.Abs(v) >= least && !math.IsInf(v, 0)), float64(normal[i]), "isnormal of 0x%x", x[i])
		}
		// ldexp over all exponents, nextafter against the values in order.
		m := 60000
		var a, b, e []uint64
		for range m {
			a = append(a, x[r.IntN(n)])
			b = append(b, x[r.IntN(n)])
			e = append(e, uint64(uint32(r.IntN(700)-350)))
		}
		e[0], e[1] = uint64(uint32(math.MaxInt32)), uint64(uint32(1<<31))
		a[2] = b[2]
		scaled := unpack(p.run(t, "air.ldexp."+s, m, false, pack(a, f.t), pack(e, int32s)), f.t)
		next := unpack(p.run(t, "air.nextafter."+s, m, false, pack(a, f.t), pack(b, f.t)), f.t)
		for i := range m {
			v, w := f.decode(a[i]).float64(), f.decode(b[i]).float64()
			want := math.Ldexp(v, int(int32(e[i])))
			if !math.IsNaN(want) || f.decode(scaled[i]).not != "nan" {
				require.Equalf(t, f.encode(numberOf(want)), scaled[i], "ldexp(0x%x, %d)", a[i], int32(e[i]))
			}
			wantBits := a[i] + 1
			switch sign := uint64(1) << (f.t.bits() - 1); {
			case math.IsNaN(v) || math.IsNaN(w):
				require.Equal(t, "nan", f.decode(next[i]).not)
				continue
			case v == w:
				wantBits = b[i]
			case v == 0:
				wantBits = b[i]&sign | 1
			case (v > w) == (v > 0):
				wantBits = a[i] - 1
			}
			require.Equalf(t, wantBits, next[i], "nextafter(0x%x, 0x%x)", a[i], b[i])
		}
	}
}
