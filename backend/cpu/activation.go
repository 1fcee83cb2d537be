package cpu

import (
	"fmt"
	"math"
)

func init() {
	cost := func(c *Call) float64 { return 10 + 14*float64(min(chunk, c.Threads[0])) }
	units := func(c *Call) int { return chunks(c.Threads[0]) }
	Register(
		unary("v_Gelufloat32float32", geluTo, 14),
		unary("v_GeluErffloat32float32", geluErfTo, 14),
		&Kernel{
			Name: "v_Softcapfloat32float32", Units: units, Cost: cost,
			Run: func(c *Call, _ *Worker, lo, hi int) {
				in, out := c.F32(0), c.F32(1)
				eachChunk(c.Threads[0], lo, hi, func(i, j int) {
					softcapTo(out[i:j], in[i:j], c.Float(3))
					canonical(out[i:j])
				})
			},
		},
	)
	for _, t := range narrows {
		softcap := &Kernel{
			Name: fmt.Sprintf("v_Softcap%v%v", t, t), Units: units, Cost: cost,
			Run: func(c *Call, w *Worker, lo, hi int) {
				in, out, buf := c.U16(0), c.U16(1), w.Scratch(chunk)
				eachChunk(c.Threads[0], lo, hi, func(i, j int) {
					t.from(buf[:j-i], in[i:j])
					t.softcap(buf[:j-i], c.Float(3))
					t.to(out[i:j], buf[:j-i])
				})
			},
		}
		Register(unaryNarrow(fmt.Sprintf("v_Gelu%v%v", t, t), t, t.gelu), unaryNarrow(fmt.Sprintf("v_GeluErf%v%v", t, t), t, t.geluErf), softcap)
	}
}

// geluTo sets dst to 0.5·x·(1 + tanh(√(2/π)·x·(1 + 0.044715·x²))). It rounds
// where the term does, so that a generated kernel that computes the same has the
// same bits: a conversion keeps Go from contracting.
func geluTo(dst, x []float32) {
	for i, v := range x {
		inner := 1 + float32(float32(0.044715*v)*v)
		u := float32(float32(0.7978845608028654*v) * inner)
		dst[i] = float32(0.5*v) * (1 + tanh32(u))
	}
}

// geluErfTo sets dst to x·(1 + erf(x/√2)) / 2.
func geluErfTo(dst, x []float32) {
	for i, v := range x {
		e := erf32(v / math.Sqrt2)
		dst[i] = float32(v*(1+e)) / 2
	}
}

// softcapTo sets dst to limit·tanh(x/limit).
func softcapTo(dst, x []float32, limit float32) {
	for i, v := range x {
		dst[i] = limit * tanh32(v/limit)
	}
}

// The functions below replace each element by a function of it, whose operations round to the type, as do its numbers;
// the last rounding is that of the store.

func (n narrow) number(v float32) float32 {
	x := [1]float32{v}
	n.round(x[:])
	return x[0]
}

// steps computes the operations one after another, each for all elements of y, and rounds what each makes.
func (n narrow) steps(y []float32, operations ...func(i int, v float32) float32) {
	for _, f := range operations {
		for i, v := range y {
			y[i] = f(i, v)
		}
		n.round(y)
	}
}

// gelu is MLX's nn.gelu_approx: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
func (n narrow) gelu(x []float32) {
	var buf [chunk]float32
	y := buf[:len(x)]
	copy(y, x)
	third, root := n.number(0.044715), n.number(0.7978845608028654)
	n.steps(y,
		func(_ int, v float32) float32 { return float32(v*v) * v },
		func(_ int, v float32) float32 { return third * v },
		func(i int, v float32) float32 { return x[i] + v },
		func(_ int, v float32) float32 { return root * v },
		func(_ int, v float32) float32 { return tanh32(v) },
		func(_ int, v float32) float32 { return 1 + v },
	)
	n.steps(x, func(_ int, v float32) float32 { return 0.5 * v })
	for i, v := range y {
		x[i] *= v
	}
}

// geluErf is MLX's nn.gelu: x·(1 + erf(x/√2)) / 2.
func (n narrow) geluErf(x []float32) {
	var buf [chunk]float32
	y := buf[:len(x)]
	copy(y, x)
	root := n.number(math.Sqrt2)
	n.steps(y,
		func(_ int, v float32) float32 { return v / root },
		func(_ int, v float32) float32 { return erf32(v) },
		func(_ int, v float32) float32 { return 1 + v },
		func(i int, v float32) float32 { return x[i] * v },
	)
	for i, v := range y {
		x[i] = v / 2
	}
}

// softcap is limit·tanh(x/limit).
func (n narrow) softcap(x []float32, limit float32) {
	limit = n.number(limit)
	n.steps(x,
		func(_ int, v float32) float32 { return v / limit },
		func(_ int, v float32) float32 { return tanh32(v) },
	)
	for i, v := range x {
		x[i] = limit * v
	}
}
