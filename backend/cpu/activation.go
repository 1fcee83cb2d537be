package cpu

import "math"

func init() {
	Register(
		unary("v_Gelufloat32float32", geluTo, 14),
		unary("v_GeluErffloat32float32", geluErfTo, 14),
		&Kernel{
			Name:  "v_Softcapfloat32float32",
			Units: func(c *Call) int { return chunks(c.Threads[0]) },
			Run: func(c *Call, _ *Worker, lo, hi int) {
				in, out := c.F32(0), c.F32(1)
				eachChunk(c.Threads[0], lo, hi, func(i, j int) {
					softcapTo(out[i:j], in[i:j], c.Float(3))
					canonical(out[i:j])
				})
			},
			Cost: func(c *Call) float64 { return 10 + 14*float64(min(chunk, c.Threads[0])) },
		},
	)
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
