package cpu

import "math"

func init() {
	for _, t := range floatTypes() {
		name := "kv_write_q8_0_float32"
		if t.narrow != nil {
			name = "kv_write_q8_0_" + t.narrow.String()
		}
		Register(kvWriteQ80(t, name))
	}
}

// kvWriteQ80 makes codes and scales of keys and values, by ggml's rule for q8_0 (q8_0_cache.metal).
//
// Arguments: 0 keys and 1 values of type t [l, n]; 2 codes of keys i8[l, n], 3 scales of keys f16[l, n/32], 4 and 5 those of
// values. The grid is (n, l, 2). A unit is a row of either.
func kvWriteQ80(t floatType, name string) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return 2 * c.Threads[1] },
		Run: func(c *Call, w *Worker, lo, hi int) {
			n := c.Threads[0]
			room := w.Scratch(n + n/32)
			x, scales := room[:n], room[n:]
			for unit := lo; unit < hi; unit++ {
				of, row := unit/c.Threads[1], unit%c.Threads[1]
				t.load(c, x, of, row*n)
				codes := c.Bytes(2 + 2*of)[row*n:][:n]
				for g := range scales {
					scales[g] = quantizeQ80((*[32]byte)(codes[32*g:]), (*[32]float32)(x[32*g:]))
				}
				halfType.to(c.U16(3 + 2*of)[row*n/32:][:n/32], scales)
			}
		},
		Cost: func(c *Call) float64 { return 2 * float64(c.Threads[0]) },
	}
}

// quantizeQ80 sets the codes of a group of x, and returns its scale.
func quantizeQ80(codes *[32]byte, x *[32]float32) float32 {
	var bits uint32 // of the greatest magnitude: they are in its order, and NaN is above infinity
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&0x7fffffff)
	}
	top := math.Float32frombits(min(bits, 0x7f800000))
	scale := top / 127
	if !(top >= 0x1p-60 && top <= math.MaxFloat32) {
		clear(codes[:])
		return scale
	}
	inverse := 1 / scale
	for i, v := range x {
		codes[i] = byte(int8(roundAway(v * inverse)))
	}
	return scale
}
