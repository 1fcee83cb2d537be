package cpu

import (
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	"github.com/mlxc/mlxc/msl/term"
)

// operation is how generated kernels compute an operation of a term.
type operation struct {
	ns  float64 // the time of an element
	run loop
}

// loop computes dst = op(x…), element by element; dst may be an operand. A condition is 1 or 0. Every result is rounded
// to f32 when it is stored, so that nothing is contracted on any architecture.
type loop func(dst []float32, x [3][]float32)

// Operations that stand for several steps of a term. Package simd computes each in one function, with the
// same bits as the steps.
const (
	opSilu    = term.Op(200 + iota) // x / (1 + exp(-x))
	opSigmoid                       // y = 1 / (1 + exp(|x|)); x < 0 ? y : 1 - y
)

// operations are all operations that a generated kernel may have, other than numbers and elements.
var operations = map[term.Op]operation{
	term.Neg:  {0.6, negate},
	term.Abs:  {0.6, each(abs32)},
	term.Sqrt: {0.6, each(sqrt32)},

	term.Rsqrt: {0.6, each(rsqrt32)},
	term.Exp:   {0.35, unaryLoop(simd.ExpTo)},
	term.Exp2:  {12, each(powerOf2)},
	term.Log:   {12, each(log32)},
	term.Sin:   {12, each(sin32)},
	term.Cos:   {12, each(cos32)},
	term.Tanh:  {12, each(tanh32)},
	term.Round: {3, rounding(halfType)}, // and to bf16
	opSilu:     {0.35, unaryLoop(simd.SiluTo)},
	opSigmoid:  {0.35, unaryLoop(simd.SigmoidTo)},

	term.Add: {0.06, binaryLoop(simd.AddTo)},
	term.Mul: {0.06, binaryLoop(simd.MulTo)},
	term.Sub: {0.6, binaryLoop(subtract)},
	term.Div: {0.6, binaryLoop(quotients)},
	term.Min: {0.6, binaryLoop(minima)},
	term.Max: {0.6, binaryLoop(maxima)},

	term.Eq: {0.6, compare(func(x, y float32) bool { return x == y })},
	term.Ne: {0.6, compare(func(x, y float32) bool { return x != y })},
	term.Lt: {0.6, compare(func(x, y float32) bool { return x < y })},
	term.Le: {0.6, compare(func(x, y float32) bool { return x <= y })},
	term.Gt: {0.6, compare(func(x, y float32) bool { return x > y })},
	term.Ge: {0.6, compare(func(x, y float32) bool { return x >= y })},

	term.And:    {0.6, compare(func(x, y float32) bool { return x != 0 && y != 0 })},
	term.Or:     {0.6, compare(func(x, y float32) bool { return x != 0 || y != 0 })},
	term.Not:    {0.6, invert},
	term.Select: {0.6, choose},
}

// rounding rounds to a type.
func rounding(t narrow) loop {
	return func(dst []float32, x [3][]float32) {
		copy(dst, x[0])
		t.round(dst)
	}
}

// each is the loop of a function of one number.
func each(f func(float32) float32) loop {
	return func(dst []float32, x [3][]float32) {
		for i, a := range x[0][:len(dst)] {
			dst[i] = f(a)
		}
	}
}

func unaryLoop(f func(dst, a []float32)) loop {
	return func(dst []float32, x [3][]float32) { f(dst, x[0][:len(dst)]) }
}

func binaryLoop(f func(dst, a, b []float32)) loop {
	return func(dst []float32, x [3][]float32) { f(dst, x[0][:len(dst)], x[1][:len(dst)]) }
}

func compare(f func(x, y float32) bool) loop {
	return func(dst []float32, x [3][]float32) {
		b := x[1][:len(dst)]
		for i, a := range x[0][:len(dst)] {
			v := float32(0)
			if f(a, b[i]) {
				v = 1
			}
			dst[i] = v
		}
	}
}

func negate(dst []float32, x [3][]float32) {
	for i, a := range x[0][:len(dst)] {
		dst[i] = -a
	}
}

func invert(dst []float32, x [3][]float32) {
	for i, a := range x[0][:len(dst)] {
		dst[i] = 1 - a
	}
}

func choose(dst []float32, x [3][]float32) {
	yes, no := x[1][:len(dst)], x[2][:len(dst)]
	for i, p := range x[0][:len(dst)] {
		if p != 0 {
			dst[i] = yes[i]
		} else {
			dst[i] = no[i]
		}
	}
}

func subtract(dst, a, b []float32) {
	for i, x := range a {
		dst[i] = x - b[i]
	}
}

func quotients(dst, a, b []float32) {
	for i, x := range a {
		dst[i] = x / b[i]
	}
}

func minima(dst, a, b []float32) {
	for i, x := range a {
		dst[i] = lesser(x, b[i])
	}
}

func maxima(dst, a, b []float32) {
	for i, x := range a {
		dst[i] = greater(x, b[i])
	}
}

// lesser is the min of docs/terms.md: the number if one operand is NaN, and -0 rather than
// +0, so that the order of operands does not matter.
func lesser(x, y float32) float32 {
	if x < y || y != y {
		return x
	}
	if y < x || x != x {
		return y
	}
	return math.Float32frombits(math.Float32bits(x) | math.Float32bits(y))
}

// greater is the max of docs/terms.md: the number if one operand is NaN, and +0 rather
// than -0.
func greater(x, y float32) float32 {
	if x > y || y != y {
		return x
	}
	if y > x || x != x {
		return y
	}
	return math.Float32frombits(math.Float32bits(x) & math.Float32bits(y))
}
