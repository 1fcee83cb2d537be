package cpu

import (
	"fmt"
	"math"
)

// floatType is a type of floats as kernels of MLX are named by it.
type floatType struct {
	name   string
	narrow *narrow // nil: f32
}

func floatTypes() []floatType {
	half, bfloat := halfType, bfloatType
	return []floatType{{"float", nil}, {"float16_t", &half}, {"bfloat16_t", &bfloat}}
}

// size is the bytes of an element.
func (t floatType) size() int {
	if t.narrow == nil {
		return 4
	}
	return 2
}

// load widens the elements of device argument slot from the first one on.
func (t floatType) load(c *Call, dst []float32, slot, first int) {
	if t.narrow == nil {
		copy(dst, c.F32(slot)[first:first+len(dst)])
	} else {
		t.narrow.from(dst, c.U16(slot)[first:first+len(dst)])
	}
}

// store rounds x to the elements of device argument slot from the first one on.
func (t floatType) store(c *Call, slot, first int, x []float32) {
	if t.narrow == nil {
		to := c.F32(slot)[first : first+len(x)]
		copy(to, x)
		canonical(to)
	} else {
		t.narrow.to(c.U16(slot)[first:first+len(x)], x)
	}
}

// round rounds x to the type.
func (t floatType) round(x []float32) {
	if t.narrow != nil {
		t.narrow.round(x)
	}
}

func init() {
	for _, a := range affines {
		for _, t := range floatTypes() {
			params := fmt.Sprintf("%s_gs_%d_b_%d", t.name, a.group, a.bits)
			Register(quantize(a, t, "affine_quantize_"+params), dequantize(a, t, "affine_dequantize_"+params))
		}
	}
}

// quantize makes codes, scales and biases of groups of consecutive elements, by MLX's rule (quantize.metal).
//
// Arguments: 0 w [n, group], 1 codes of bits, 2 scales [n], 3 biases [n]. The grid has 32 threads a group. A unit is a
// group.
func quantize(a affine, t floatType, name string) *Kernel {
	most := float32(math.MaxFloat32)
	if t.narrow != nil {
		most = map[narrow]float32{halfType: 65504, bfloatType: math.Float32frombits(0x7f7f0000)}[*t.narrow]
	}
	last := float32(int(1)<<a.bits - 1)
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return c.Threads[0] * c.Threads[1] / 32 },
		Run: func(c *Call, w *Worker, lo, hi int) {
			x := w.Scratch(a.group)
			for unit := lo; unit < hi; unit++ {
				t.load(c, x, 0, unit*a.group)
				low, high := most, float32(0)
				for _, v := range x {
					if v < low {
						low = v
					}
					if v > high {
						high = v
					}
				}
				step, edge := max((high-low)/last, 1e-7), low
				if abs32(low) <= abs32(high) {
					step, edge = -step, high
				}
				bias := edge
				if steps := roundAway(edge / step); steps == 0 {
					bias = 0
				} else {
					step = edge / steps
				}
				t.store(c, 2, unit, []float32{step})
				t.store(c, 3, unit, []float32{bias})
				codes := c.Bytes(1)[unit*a.group*a.bits/8:][:a.group*a.bits/8]
				clear(codes)
				for i, v := range x {
					q := last
					if r := roundAway((v - bias) / step); r < last {
						q = r
					}
					bits := uint32(q) << (i * a.bits % 8)
					codes[i*a.bits/8] |= byte(bits)
					if bits > 0xff {
						codes[i*a.bits/8+1] |= byte(bits >> 8)
					}
				}
			}
		},
		Cost: func(*Call) float64 { return 10 * float64(a.group) },
	}
}

// roundAway rounds to the nearest integer, and away from 0 if there are two.
func roundAway(v float32) float32 { return float32(math.Round(float64(v))) }

// dequantize makes the elements of consecutive codes: round(scale·q) + bias.
//
// Arguments: 0 codes, 1 scales, 2 biases, 3 elements. A thread of the grid makes the elements of as few whole bytes as
// there are, and a unit is a group.
func dequantize(a affine, t floatType, name string) *Kernel {
	each := 1
	for each*a.bits%8 != 0 {
		each++
	}
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return c.Threads[0] * c.Threads[1] * each / a.group },
		Run: func(c *Call, w *Worker, lo, hi int) {
			x := w.Scratch(a.group + 2)
			x, of := x[:a.group], x[a.group:]
			var room [128]byte
			for unit := lo; unit < hi; unit++ {
				t.load(c, of[:1], 1, unit)
				t.load(c, of[1:], 2, unit)
				size := a.group / 8 * a.bits
				codes := room[:a.group]
				a.unpack(codes, c.Bytes(0)[unit*size:(unit+1)*size])
				for i, q := range codes {
					x[i] = of[0] * float32(q)
				}
				t.round(x)
				for i := range x {
					x[i] += of[1]
				}
				t.store(c, 3, unit*a.group, x)
			}
		},
		Cost: func(*Call) float64 { return 5 * float64(a.group) },
	}
}
