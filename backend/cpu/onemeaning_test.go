package cpu

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// A function of the language of terms has the same bits everywhere: the builtin kernel and the generated kernel of
// the same term agree on every argument. No generated kernel exists for the term of GeluErf.
var sameTerm = func() map[string]string {
	out := map[string]string{
		"v_Silufloat32float32":    "out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])))",
		"v_Sigmoidfloat32float32": "out0[i] = round(f32, select(in0[i] < 0.0, 1.0 / (1.0 + exp(abs(in0[i]))), 1.0 - 1.0 / (1.0 + exp(abs(in0[i])))))",
		"v_Gelufloat32float32":    "out0[i] = round(f32, 0.5 * in0[i] * (1.0 + tanh(0.7978846 * in0[i] * (1.0 + 0.044715 * in0[i] * in0[i]))))",
		"v_Softcapfloat32float32": "out0[i] = round(f32, s0 * tanh(in0[i] / s0))",
		"v_copyfloat32float32":    "out0[i] = in0[i]",
		"v_Sigmoidfloat16float16": "out0[i] = round(f16, select(in0_f16[i] < 0.0, 1.0 / (1.0 + exp(abs(in0_f16[i]))), 1.0 - 1.0 / (1.0 + exp(abs(in0_f16[i])))))",
		"v_Silufloat16float16":    "out0[i] = round(f16, in0_f16[i] * round(f16, select(in0_f16[i] < 0.0, 1.0 / (1.0 + exp(abs(in0_f16[i]))), 1.0 - 1.0 / (1.0 + exp(abs(in0_f16[i]))))))",
		"v_Silubfloat16bfloat16": "v0[i] = round(bf16, 1.0 / round(bf16, 1.0 + round(bf16, exp(abs(in0_bf16[i]))))); " +
			"out0[i] = round(bf16, in0_bf16[i] * round(bf16, select(in0_bf16[i] < 0.0, v0[i], 1.0 - v0[i])))",
		"v_Sigmoidbfloat16bfloat16": "v0[i] = round(bf16, 1.0 / round(bf16, 1.0 + round(bf16, exp(abs(in0_bf16[i]))))); " +
			"out0[i] = round(bf16, select(in0_bf16[i] < 0.0, v0[i], 1.0 - v0[i]))",
		"v_copyuint32uint32": "", "v_copyfloat32int32": "", "v_copyfloat32uint32": "", "v_copyint32float32": "", "v_copyuint32float32": "", "v_GeluErffloat32float32": "", "v_GeluErffloat16float16": "", "v_GeluErfbfloat16bfloat16": "",
	}
	for name, text := range map[string]string{
		"v_GeluTT": "round(T, round(T, 0.5 * in0_T[i]) * round(T, 1.0 + round(T, tanh(round(T, " +
			"round(T, 0.7978846) * round(T, in0_T[i] + round(T, round(T, 0.044715) * round(T, in0_T[i] * in0_T[i] * in0_T[i]))))))))",
		"v_SoftcapTT": "round(T, round(T, s0) * round(T, tanh(round(T, in0_T[i] / round(T, s0)))))",
		"v_copyTT":    "in0_T[i]",
	} {
		out[strings.ReplaceAll(name, "T", "float16")] = "out0[i] = " + strings.ReplaceAll(text, "T", "f16")
		out[strings.ReplaceAll(name, "T", "bfloat16")] = "out0[i] = " + strings.ReplaceAll(text, "T", "bf16")
	}
	for word, sign := range map[string]string{"Add": "+", "Subtract": "-", "Multiply": "*"} {
		if word != "Subtract" {
			out["vv_"+word+"float32"] = "out0[i] = round(f32, in0[i] " + sign + " in1[i])"
		}
		out["vv_"+word+"float16"] = "out0[i] = round(f16, in0_f16[i] " + sign + " in1_f16[i])"
		out["vv_"+word+"bfloat16"] = "out0[i] = round(bf16, in0_bf16[i] " + sign + " in1_bf16[i])"
	}
	return out
}()

// stepwise holds terms that a pass may cut at any place: the whole term, and the same as steps, kernels of one
// operation each whose results are stored in between. The operands of a step are the result so far and, if it has two,
// the argument; in a step that begins with
// "swapped " they are exchanged.
var stepwise = map[string][]string{
	"out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])))": {
		"out0[i] = round(f32, -in0[i])", "out0[i] = round(f32, exp(in0[i]))", "out0[i] = round(f32, 1.0 + in0[i])", "swapped out0[i] = round(f32, in0[i] / in1[i])",
	},
	"out0[i] = round(f32, 1.0 / (1.0 + exp(-in0[i])))": {
		"out0[i] = round(f32, -in0[i])", "out0[i] = round(f32, exp(in0[i]))", "out0[i] = round(f32, 1.0 + in0[i])", "out0[i] = round(f32, 1.0 / in0[i])",
	},
	"out0[i] = round(f32, min(abs(in0[i]) * 2.0, in0[i]))": {
		"out0[i] = round(f32, abs(in0[i]))", "out0[i] = round(f32, in0[i] * 2.0)", "out0[i] = round(f32, min(in0[i], in1[i]))",
	},
	"out0[i] = round(f32, sqrt(rsqrt(in0[i]) - in0[i]))": {
		"out0[i] = round(f32, rsqrt(in0[i]))", "out0[i] = round(f32, in0[i] - in1[i])", "out0[i] = round(f32, sqrt(in0[i]))",
	},
}

// arguments calls f with all f16 values and three million f32 values of all exponents, including NaNs with payloads and
// subnormals, in slices whose lengths leave tails.
func arguments(f func(x []float32)) {
	const size, step = 1<<15 + 7, 1289
	x := make([]float32, 0, size)
	add := func(v float32) {
		if x = append(x, v); len(x) == size {
			f(x)
			x = x[:0]
		}
	}
	var v [1]float32
	for h := range 1 << 16 {
		simd.HalfTo(v[:], []uint16{uint16(h)})
		add(v[0])
	}
	for b := uint64(0); b < 1<<32; b += step {
		add(math.Float32frombits(uint32(b)))
	}
	f(x)
}

func sameFloatBits(t *testing.T, x, want, got []float32, what string) {
	t.Helper()
	for i := range want {
		if a, b := math.Float32bits(want[i]), math.Float32bits(got[i]); a != b {
			t.Fatalf("%s of %v (%#x): %v (%#x) and %v (%#x)", what, x[i], math.Float32bits(x[i]), want[i], a, got[i], b)
		}
		if got[i] != got[i] && math.Float32bits(got[i]) != nanBits && !strings.Contains(what, "copy") {
			t.Fatalf("%s of %v stores the NaN %#x", what, x[i], math.Float32bits(got[i]))
		}
	}
}

func TestOneMeaning(t *testing.T) {
	for _, name := range Names() {
		if _, ok := sameTerm[name]; !ok && (strings.HasPrefix(name, "v_") || strings.HasPrefix(name, "vv_")) {
			t.Errorf("%s: write down its term", name)
		}
	}
	y, z := make([]float32, 1<<16), make([]float32, 1<<16)
	forEachImpl(t, func(t *testing.T) {
		for name, text := range sameTerm {
			if !strings.HasPrefix(name, "v_") || text == "" {
				continue
			}
			k := generate(t, text)
			var constants []any
			if strings.Contains(text, "s0") {
				constants = []any{float32(30)}
			}
			if strings.Contains(name, "16") {
				x, want, got := make([]uint16, 1<<16), make([]uint16, 1<<16), make([]uint16, 1<<16)
				for h := range x {
					x[h] = uint16(h)
				}
				n := [3]int{len(x), 1, 1}
				runKernel(t, name, n, n, append([]any{x, want, uint32(len(x))}, constants...)...)
				runGenerated(k, n, append([]any{x, got}, constants...)...)
				require.Equal(t, want, got, name)
				continue
			}
			arguments(func(x []float32) {
				n := [3]int{len(x), 1, 1}
				want, got := y[:len(x)], z[:len(x)]
				runKernel(t, name, n, n, append([]any{x, want, uint32(len(x))}, constants...)...)
				runGenerated(k, n, append([]any{x, got}, constants...)...)
				sameFloatBits(t, x, want, got, name)
			})
		}
	})
}

func TestOneMeaningOfSteps(t *testing.T) {
	forEachImpl(t, func(t *testing.T) {
		for whole, steps := range stepwise {
			k := generate(t, whole)
			var ks []*Kernel
			for _, s := range steps {
				ks = append(ks, generate(t, strings.TrimPrefix(s, "swapped ")))
			}
			y, z := make([]float32, 1<<16), make([]float32, 1<<16)
			arguments(func(x []float32) {
				n := [3]int{len(x), 1, 1}
				got, want := y[:len(x)], z[:len(x)]
				runGenerated(k, n, x, got)
				copy(want, x)
				for i, s := range steps {
					switch {
					case strings.HasPrefix(s, "swapped "):
						runGenerated(ks[i], n, x, want, want)
					case strings.Contains(s, "in1"):
						runGenerated(ks[i], n, want, x, want)
					default:
						runGenerated(ks[i], n, want, want)
					}
				}
				sameFloatBits(t, x, want, got, whole)
			})
		}
	})
}

// Pairs of operands in both orders: ±0, infinities, extremes, subnormals and NaNs of all kinds against each other, and
// random bits.
func TestOneMeaningOfPairs(t *testing.T) {
	var special []uint32
	for _, b := range []uint32{0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fc12345, 0x7fffffff} {
		special = append(special, b, b|1<<31)
	}
	var a, b []float32
	for _, p := range special {
		for _, q := range special {
			a, b = append(a, math.Float32frombits(p)), append(b, math.Float32frombits(q))
		}
	}
	r := rand.New(rand.NewPCG(31, 32))
	for range 1 << 20 {
		a, b = append(a, math.Float32frombits(r.Uint32())), append(b, math.Float32frombits(r.Uint32()))
	}
	n := [3]int{len(a), 1, 1}
	forEachImpl(t, func(t *testing.T) {
		y, z := make([]float32, len(a)), make([]float32, len(a))
		for _, op := range []string{"in0[i] + in1[i]", "in0[i] * in1[i]", "min(in0[i], in1[i])", "max(in0[i], in1[i])"} {
			k := generate(t, "out0[i] = round(f32, "+op+")")
			runGenerated(k, n, a, b, y)
			runGenerated(k, n, b, a, z)
			sameFloatBits(t, a, y, z, op)
			if name := map[byte]string{'+': "vv_Addfloat32", '*': "vv_Multiplyfloat32"}[op[7]]; name != "" {
				runKernel(t, name, n, n, a, b, z)
				sameFloatBits(t, a, y, z, name)
				m := [3]int{len(a) / 4, 4, 1}
				runKernel(t, "g2"+name[2:], m, m, a[:m[0]*4], b[:m[0]*4], z[:m[0]*4], []int64{int64(m[0]), 1}, []int64{int64(m[0]), 1})
				sameFloatBits(t, a, y[:m[0]*4], z[:m[0]*4], "g2"+name[2:])
			}
		}
	})
	// Each value of 16 bits with special values, and with some other value.
	for _, of := range []struct {
		word    string
		special [8]uint16
	}{{"float16", [8]uint16{0, 0x8000, 0x7c00, 0xfc00, 0x7c01, 0xfe00, 0x7bff, 1}}, {"bfloat16", [8]uint16{0, 0x8000, 0x7f80, 0xff80, 0x7f81, 0xffc0, 0x7f7f, 1}}} {
		var p, q []uint16
		for h := range 1 << 16 {
			p, q = append(p, uint16(h), uint16(h)), append(q, uint16(r.Uint32()), of.special[h%8])
		}
		n[0] = len(p)
		for _, op := range []string{"Add", "Subtract", "Multiply"} {
			name := "vv_" + op + of.word
			k := generate(t, sameTerm[name])
			x, y, z := make([]uint16, len(p)), make([]uint16, len(p)), make([]uint16, len(p))
			runGenerated(k, n, p, q, x)
			runKernel(t, name, n, n, p, q, z)
			require.Equal(t, x, z, name)
			if op != "Subtract" {
				runGenerated(k, n, q, p, y)
				require.Equal(t, x, y, name)
			}
		}
	}
}

// min and max of zeros and NaNs give what docs/terms.md says.
func TestMinMaxOfZerosAndNaNs(t *testing.T) {
	nan, minus := float32(math.NaN()), float32(math.Copysign(0, -1))
	a := []float32{0, minus, nan, 1, minus, nan, 0, -1}
	b := []float32{minus, 0, 1, nan, minus, nan, 0, nan}
	got := make([]float32, len(a))
	bits := func() (out []uint32) {
		for _, v := range got {
			out = append(out, math.Float32bits(v))
		}
		return out
	}
	const one = 0x3f800000
	runGenerated(generate(t, "out0[i] = round(f32, min(in0[i], in1[i]))"), [3]int{len(a), 1, 1}, a, b, got)
	require.Equal(t, []uint32{1 << 31, 1 << 31, one, one, 1 << 31, nanBits, 0, one | 1<<31}, bits())
	runGenerated(generate(t, "out0[i] = round(f32, max(in0[i], in1[i]))"), [3]int{len(a), 1, 1}, a, b, got)
	require.Equal(t, []uint32{0, 0, one, one, 1 << 31, nanBits, 0, one | 1<<31}, bits())
}

// Terms without arithmetic (copies, conversions, constants, unused operands), for each type and index, alone and
// combined with others.
func TestTrivialTerms(t *testing.T) {
	const d0, d1 = 3, 1500
	const n = d0 * d1
	r := rand.New(rand.NewPCG(33, 34))
	f, h := make([]float32, n), make([]uint16, n)
	for i := range f {
		f[i], h[i] = math.Float32frombits(r.Uint32()), uint16(r.Uint32())
	}
	f[0], f[1], h[0], h[1] = math.Float32frombits(0x7f812345), math.Float32frombits(0xffc00001), 0x7c11, 0xfe01
	wide := make([]float32, n)
	simd.HalfTo(wide, h)
	type operandOf struct {
		name, index string
		at          func(i, j int) int
	}
	for _, flat := range []bool{true, false} {
		indices := []operandOf{
			{"row", "[j]", func(i, j int) int { return j }}, {"column", "[i]", func(i, j int) int { return i }},
			{"one", "[0]", func(i, j int) int { return 0 }}, {"full", "[i, j]", func(i, j int) int { return i*d1 + j }},
		}
		head, threads := "[i, j]", [3]int{d1, d0, 1}
		if flat {
			head, threads = "[i]", [3]int{n, 1, 1}
			indices = []operandOf{{"full", "[i]", func(i, j int) int { return i*d1 + j }}, {"one", "[0]", func(i, j int) int { return 0 }}}
		}
		for _, x := range indices {
			for _, c := range []struct {
				body string
				want func(k int) (bits uint32, half bool)
			}{
				{"in0" + x.index, func(k int) (uint32, bool) { return math.Float32bits(f[k]), false }},
				{"round(f32, in0" + x.index + ")", func(k int) (uint32, bool) { return math.Float32bits(stored(f[k])), false }},
				{"round(f16, in0" + x.index + ")", func(k int) (uint32, bool) {
					var o [1]uint16
					simd.ToHalf(o[:], f[k:k+1])
					return uint32(o[0]), true
				}},
				{"in0_f16" + x.index, func(k int) (uint32, bool) { return uint32(h[k]), true }},
				{"round(f32, in0_f16" + x.index + ")", func(k int) (uint32, bool) { return math.Float32bits(stored(wide[k])), false }},
				{"round(f16, in0_f16" + x.index + ")", func(k int) (uint32, bool) {
					if h[k]&0x7fff > 0x7c00 {
						return 0x7e00, true
					}
					return uint32(h[k]), true
				}},
				{"round(f32, 2.5)", func(int) (uint32, bool) { return math.Float32bits(2.5), false }},
				{"round(f16, 2.5)", func(int) (uint32, bool) { return 0x4100, true }},
				{"round(f32, inf - inf)", func(int) (uint32, bool) { return nanBits, false }},
				{"round(f32, -0.0)", func(int) (uint32, bool) { return 1 << 31, false }},
			} {
				var operand any = f
				if strings.Contains(c.body, "_f16") {
					operand = h
				}
				var args []any
				if strings.Contains(c.body, "in0") {
					args = append(args, operand)
				}
				check := func(out any, what string) {
					t.Helper()
					for k := range n {
						want, half := c.want(x.at(k/d1, k%d1))
						var got uint32
						if half {
							got = uint32(out.([]uint16)[k])
						} else {
							got = math.Float32bits(out.([]float32)[k])
						}
						if got != want {
							t.Fatalf("%s, element %d: %#x, want %#x", what, k, got, want)
						}
					}
				}
				fresh := func() any {
					if _, half := c.want(0); half {
						return make([]uint16, n)
					}
					return make([]float32, n)
				}
				text := "out0" + head + " = " + c.body
				out := fresh()
				runGenerated(generate(t, text), threads, append(args, out)...)
				check(out, text)
				text += "; out1" + head + " = " + c.body + "; out2" + head + " = round(f32, 1.0)"
				first, second := fresh(), fresh()
				runGenerated(generate(t, text), threads, append(args, first, second, make([]float32, n))...)
				check(first, text)
				check(second, text)
			}
		}
	}
}
