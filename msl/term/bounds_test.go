package term_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// sloppy evaluates terms in f32 as freely as their meaning allows: sums in a
// random order and tree, with or without fma, functions up to 4 ulp off. It
// shares nothing with Interp but the tree.
type sloppy struct {
	r    *rand.Rand
	in   *term.Interp
	sums int // how many sums were evaluated
}

func (s *sloppy) int(e *term.Expr, vars []int64) int64 {
	v, err := s.in.Eval(e, vars)
	if err != nil {
		panic(err)
	}
	return v.I
}

func (s *sloppy) float(e *term.Expr, vars []int64) float32 {
	if e.Kind == term.Int {
		return float32(s.int(e, vars))
	}
	arg := func(i int) float32 { return s.float(e.Args[i], vars) }
	switch e.Op {
	case term.Real:
		return float32(e.Val)
	case term.Symbol:
		return float32(s.in.Symbols[e.Index].F)
	case term.Load:
		idx := make([]int64, len(e.Args))
		for i, a := range e.Args {
			idx[i] = s.int(a, vars)
		}
		v, err := s.in.Load(e.Index, idx)
		if err != nil {
			panic(err)
		}
		return float32(v.F)
	case term.Call:
		idx := make([]int64, len(e.Args))
		for i, a := range e.Args {
			idx[i] = s.int(a, vars)
		}
		return s.float(s.in.Abbrevs[e.Index].Body, idx)
	case term.Neg:
		return -arg(0)
	case term.Abs:
		return float32(math.Abs(float64(arg(0))))
	case term.ToF32:
		return arg(0)
	case term.AsF16:
		return float32(term.F16Value(uint16(s.int(e.Args[0], vars))))
	case term.AsF32:
		return math.Float32frombits(uint32(s.int(e.Args[0], vars)))
	case term.Add:
		return arg(0) + arg(1)
	case term.Sub:
		return arg(0) - arg(1)
	case term.Mul:
		return float32(arg(0) * arg(1))
	case term.Div:
		return arg(0) / arg(1)
	case term.Min:
		return min(arg(0), arg(1))
	case term.Max:
		return max(arg(0), arg(1))
	case term.Sqrt:
		return float32(math.Sqrt(float64(arg(0))))
	case term.Round:
		switch x := float64(arg(0)); e.Type {
		case ir.F16:
			return float32(term.F16Round(x))
		case ir.BF16:
			return float32(term.BF16Round(x))
		default:
			return float32(x)
		}
	case term.Select:
		if s.int(e.Args[0], vars) != 0 {
			return arg(1)
		}
		return arg(2)
	case term.MaxOver:
		best := float32(math.Inf(-1))
		s.each(e, vars, func(v []int64) {
			if x := s.float(e.Args[1], v); e.Class != "" || x == x { // without a class NaN is less than everything
				best = max(best, x)
			}
		})
		return best
	case term.Sum:
		return s.sum(e, vars)
	}
	f := map[term.Op]func(float64) float64{
		term.Exp: math.Exp, term.Exp2: math.Exp2, term.Log: math.Log, term.Sin: math.Sin, term.Cos: math.Cos,
		term.Tanh: math.Tanh, term.Erf: math.Erf, term.Rsqrt: func(x float64) float64 { return 1 / math.Sqrt(x) },
	}[e.Op]
	y := float32(f(float64(arg(0))))
	towards := float32(math.Inf(1 - 2*s.r.IntN(2)))
	for range s.r.IntN(5) {
		if !math.IsInf(float64(y), 0) {
			y = math.Nextafter32(y, towards)
		}
	}
	return y
}

func (s *sloppy) each(e *term.Expr, vars []int64, f func(vars []int64)) {
	for _, i := range s.r.Perm(int(max(0, s.int(e.Args[0], vars)))) {
		f(append(append([]int64(nil), vars[:e.Index]...), int64(i)))
	}
}

// sum keeps a few accumulators, adds terms to random ones, now and then merges
// two, and multiplies into an accumulator with one rounding where it can.
func (s *sloppy) sum(e *term.Expr, vars []int64) float32 {
	s.sums++
	acc := make([]float32, 1+s.r.IntN(5))
	fma := s.r.IntN(2) == 1
	s.each(e, vars, func(v []int64) {
		i := s.r.IntN(len(acc))
		if b := e.Args[1]; fma && b.Op == term.Mul {
			x, y := s.float(b.Args[0], v), s.float(b.Args[1], v)
			acc[i] = float32(math.FMA(float64(x), float64(y), float64(acc[i]))) // exact but for one rounding, or two of 53 and 24 bits
		} else {
			acc[i] += s.float(b, v)
		}
		if len(acc) > 1 && s.r.IntN(8) == 0 {
			acc[0] += acc[len(acc)-1]
			acc = acc[:len(acc)-1]
		}
	})
	total := acc[0]
	for _, a := range acc[1:] {
		total += a
	}
	return total
}

// data is a set of arguments of any shape: element i, j of argument a is a
// hash, in [-scale, scale], positive for argument v.
func data(seed uint64, scale float64) func(arg int, index []int64) (term.Value, error) {
	return func(arg int, index []int64) (term.Value, error) {
		h := seed ^ uint64(arg+1)*0x9e3779b97f4a7c15
		for _, i := range index {
			h = (h ^ uint64(i)) * 0xbf58476d1ce4e5b9
			h ^= h >> 29
		}
		if arg == 3 {
			return integer(int64(h % 16)), nil
		}
		x := (float64(h>>11)/(1<<53)*2 - 1) * scale
		if arg == 2 {
			x = math.Abs(x)
		}
		return term.Value{F: float64(float32(x))}, nil
	}
}

// TestBoundsOfKernels: whatever order, fma and error of functions an executor
// takes, its result of a kernel's term stays within the bound, and the bound is
// not so wide that it says nothing.
func TestBoundsOfKernels(t *testing.T) {
	abbrev := func(src string, vars ...string) term.Abbrev {
		return term.Abbrev{Params: len(vars), Body: parse(t, src, vars...)}
	}
	for name, c := range map[string]struct {
		body  string
		where []term.Abbrev // inv, at, big
		scale float64
		loose float64 // the max relative bound that is no surprise …
		floor float64 // … for values of this size and more
	}{
		"norm":      {body: "round(f32, v[i] * round(f32, x[r,i] * inv[r]))", where: []term.Abbrev{abbrev("rsqrt(sum[rms](k < 96, x[r,k] * x[r,k]) / f32(96) + 1e-5)", "r")}, scale: 3, loose: 2e-5},
		"halfnorm":  {body: "round(f16, v[i] * round(f16, x[r,i] * inv[r]))", where: []term.Abbrev{abbrev("rsqrt(sum[rms](k < 96, x[r,k] * x[r,k]) / f32(96) + 1e-5)", "r")}, scale: 3, loose: 4e-3, floor: 1e-3},
		"softmax":   {body: "sum[s](k < 40, exp(x[r,k] - inv[r]) * y[k,i]) / sum[s](k < 40, exp(x[r,k] - inv[r]))", where: []term.Abbrev{abbrev("max[s](k < 40, x[r,k])", "r")}, scale: 5, loose: 1e9},
		"scores":    {body: "exp(sum[d](k < 64, 0.125 * x[r,k] * y[i,k]) - 1.0)", scale: 1, loose: 1e-4},
		"quantized": {body: "sum[q](c < 4, x[r,c] * sum[q](k < 32, y[i,c*32 + k] * f32(id[c*32 + k])) + v[c] * sum[q](k < 32, y[i,c*32 + k]))", scale: 1, loose: 1e9},
		"silu":      {body: "round(f32, x[r,i] / (1.0 + exp(-x[r,i])))", scale: 90, loose: 1e-4, floor: 1e-32},
		"sigmoid":   {body: "select(r < 3, 1.0 / (1.0 + exp(abs(x[r,i]))), 1.0 - 1.0 / (1.0 + exp(abs(x[r,i]))))", scale: 100, loose: 1e9},
		"rope":      {body: "x[r,i] * cos(inv[i]) - x[r,i+8] * sin(inv[i])", where: []term.Abbrev{abbrev("f32(900) * exp2(-(f32(i) / 32.0) * 13.3)", "i")}, scale: 2, loose: 1e9},
		"logs":      {body: "log(v[i] + 0.01) + sqrt(v[i]) * tanh(x[r,i]) + erf(x[i,r])", scale: 3, loose: 1e9},
	} {
		t.Run(name, func(t *testing.T) {
			e := parse(t, c.body, "r", "i")
			rapid.Check(t, func(t *rapid.T) {
				in := operands()
				in.Abbrevs = c.where
				in.Load = data(rapid.Uint64().Draw(t, "seed"), c.scale)
				s := &sloppy{r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1)), in: in}
				for r := range int64(3) {
					for i := range int64(3) {
						v := eval(t, in, e, r, i)
						got := s.float(e, []int64{r, i})
						require.True(t, v.Allows(float64(got)), "[%d,%d]: %v, allowed %v ± %v", r, i, got, v.F, v.Err)
						require.LessOrEqual(t, v.Err, c.loose*(math.Abs(v.F)+c.floor)+term.Tiny*4, "[%d,%d]: %v ± %v", r, i, v.F, v.Err)
					}
				}
			})
		})
	}
}

// TestBoundsOfAnything is the same law for random terms. They have no conditions or indices
// that depend on an inexact value, because their results jump.
func TestBoundsOfAnything(t *testing.T) {
	const terms = 4000
	var bounded, exact, sums int
	for i := range terms {
		e := smooth(rapid.Custom(func(t *rapid.T) *term.Expr {
			return (&generator{t: t, vars: []string{"r", "i"}}).float(3)
		}).Example(i))
		in := operands()
		in.Abbrevs = []term.Abbrev{{Params: 1, Body: parse(t, "exp(x[r, r + 1] / 4)", "r")}, {Params: 1, Body: parse(t, "r / 2 + 1", "r")}, {Params: 1, Body: parse(t, "r % 3 == 0", "r")}}
		in.Load = data(uint64(i), 4)
		v, err := in.Eval(e, []int64{1, 2})
		if err != nil || math.Abs(v.F) > 1e30 || math.IsNaN(v.F) || math.IsInf(v.Err, 0) {
			continue
		}
		switch {
		case v.Err == 0:
			exact++
		case v.Err < math.Abs(v.F):
			bounded++
		}
		s := &sloppy{r: rand.New(rand.NewPCG(uint64(i), 2)), in: in}
		for range 4 {
			if got := s.float(e, []int64{1, 2}); !overflows(got) {
				require.True(t, v.Allows(float64(got)), "%s: %v, allowed %v ± %v", e, got, v.F, v.Err)
			}
		}
		sums += s.sums
	}
	// The law says nothing about terms that fail, overflow or are unbounded. Most terms
	// must not be so.
	assert.Greater(t, bounded, terms/4)
	assert.Greater(t, exact, terms/20)
	assert.Greater(t, sums, terms/5)
}

func overflows(x float32) bool { return math.IsNaN(float64(x)) || math.Abs(float64(x)) > 1e30 }

// smooth bounds every reduction to 6 elements, and replaces comparisons of
// floats and argmax, whose results jump.
func smooth(e *term.Expr) *term.Expr {
	out := *e
	out.Args = nil
	for _, a := range e.Args {
		out.Args = append(out.Args, smooth(a))
	}
	isFloat := len(e.Args) == 2 && (e.Args[0].Kind == term.Float || e.Args[1].Kind == term.Float)
	switch {
	case e.Op == term.Sum || e.Op == term.MaxOver:
		out.Args[0] = &term.Expr{Op: term.Mod, Args: []*term.Expr{out.Args[0], {Op: term.Number, Num: 7}}}
	case e.Op == term.ArgMax:
		return &term.Expr{Op: term.Number, Num: 3}
	case e.Op.Comparison() && isFloat:
		return &term.Expr{Op: term.Pow2, Kind: term.Bool, Args: []*term.Expr{{Op: term.Number, Num: 4}}}
	}
	return &out
}

// TestUnboundedOperands: where an operand's error reaches a pole, nothing can
// be said, and the bound says so.
func TestUnboundedOperands(t *testing.T) {
	in := operands()
	in.Load = func(_ int, i []int64) (term.Value, error) { return term.Value{F: float64(i[0]), Err: 1.5}, nil }
	for src, infinite := range map[string]bool{
		"1.0 / v[1]": true, "1.0 / v[2]": false, "log(v[1])": true, "log(v[2])": false, "rsqrt(v[0])": true, "rsqrt(v[2])": false,
		"sqrt(v[0])": false, "exp(v[1])": false, "v[1] / v[0]": true, "sin(v[0])": false, "0.0 * (1.0 / v[0])": true, "v[3] * v[2]": false,
	} {
		assert.Equal(t, infinite, eval(t, in, parse(t, src)).Allows(1e9), src)
	}
	// Of an operand of which nothing is known nothing follows, though it is an infinity or NaN here: elsewhere it may be a number.
	for _, unknown := range []float64{1, math.Inf(1), math.Inf(-1), math.NaN()} {
		in.Load = func(int, []int64) (term.Value, error) { return term.Value{F: unknown, Err: math.Inf(1)}, nil }
		for _, src := range []string{
			"-v[0]", "abs(v[0])", "1.0 + v[0]", "v[0] - 1.0", "2.0 * v[0]", "v[0] * v[0]", "v[0] * exp(1.5)", "v[0] / 2.0", "v[0] / exp(1.5)", "1.0 / v[0]", "exp(v[0])", "exp2(v[0])", "log(v[0])",
			"sqrt(v[0])", "rsqrt(v[0])", "sin(v[0])", "tanh(v[0])", "min(v[0], 1.0)", "round(f16, v[0])", "v[0] / (1.0 + exp(-v[0]))",
		} {
			for _, x := range []float64{-3, 540, math.NaN()} {
				assert.True(t, eval(t, in, parse(t, src)).Allows(x), "%s of %v allows %v", src, unknown, x)
			}
		}
	}
	in.Load = func(_ int, i []int64) (term.Value, error) { return term.Value{F: float64(i[0]), Err: 1.5}, nil }
	assert.InDelta(t, math.Sqrt(1.5), eval(t, in, parse(t, "sqrt(v[0])")).Err, 1e-6)
	assert.InDelta(t, math.Exp(2.5)-math.E, eval(t, in, parse(t, "exp(v[1])")).Err, 1e-5)
}

func TestAllows(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		v    term.Value
		x    float64
		want bool
	}{
		{term.Value{F: 1}, 1, true}, {term.Value{F: 1}, math.Nextafter(1, 2), false}, {term.Value{F: 0}, math.Copysign(0, -1), false},
		{term.Value{F: nan}, nan, true}, {term.Value{F: nan}, 0, false}, {term.Value{F: 1}, nan, false}, {term.Value{F: inf}, inf, true}, {term.Value{F: inf}, -inf, false},
		{term.Value{F: 1, Err: 0.5}, 1.5, true}, {term.Value{F: 1, Err: 0.5}, 1.6, false}, {term.Value{F: 1, Err: 0.5}, nan, false}, {term.Value{F: 1, Err: 0.5}, inf, false},
		{term.Value{F: inf, Err: term.Tiny}, math.MaxFloat32, true}, {term.Value{F: inf, Err: term.Tiny}, -inf, false}, {term.Value{F: inf, Err: term.Tiny}, 1e30, false},
		{term.Value{F: inf, Err: inf}, -3, true}, {term.Value{F: nan, Err: term.Tiny}, inf, true}, {term.Value{F: nan, Err: term.Tiny}, 1, false}, {term.Value{F: 0, Err: term.Tiny}, -1e-40, true},
	} {
		assert.Equal(t, c.want, c.v.Allows(c.x), "%s allows %v", fmt.Sprint(c.v), c.x)
	}
}
