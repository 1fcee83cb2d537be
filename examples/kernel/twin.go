package main

import (
	"math"

	"github.com/mlxc/mlxc/backend/cpu"
)

func init() {
	cpu.Register(&cpu.Kernel{
		Name:  "add_l2_norm_float32",
		Units: func(c *cpu.Call) int { return c.Groups[0] },
		Run:   addL2Norm,
		Cost:  func(c *cpu.Call) float64 { return 20 + float64(c.Uint(5)) },
	})
}

// addL2Norm adds two matrices and divides each row of the sum by its length, or by eps if that is
// larger. A unit of work is a row. Arguments: 0 a, 1 b, 2 residual and 3 out f32[rows, axis_size],
// 4 eps f32, 5 axis_size u32.
//
// It calls the library's twin for the norm. On one device, sums of one class are equal to the bit,
// so their order must be the same.
func addL2Norm(c *cpu.Call, w *cpu.Worker, lo, hi int) {
	n := c.Uint(5)
	a, b, residual := c.F32(0), c.F32(1), c.F32(2)
	for i := lo * n; i < hi*n; i++ {
		v := a[i] + b[i]
		if v != v {
			v = math.Float32frombits(0x7fc00000) // the only NaN that a store leaves
		}
		residual[i] = v
	}
	norm := *c
	norm.Device[0], norm.Device[1] = c.Device[2], c.Device[3]
	norm.Constant[2], norm.Constant[3] = c.Constant[4], c.Constant[5]
	cpu.Lookup("l2_norm_float32").Run(&norm, w, lo, hi)
}
