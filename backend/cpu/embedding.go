package cpu

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	Register(
		embedding("embed_float32", 2, floatType{}, func(c *Call, dst []float32, id int) {
			k := len(dst)
			copy(dst, c.F32(1)[id*k:(id+1)*k])
		}),
		embedding("embed_float16", 2, floatType{}, func(c *Call, dst []float32, id int) {
			k := len(dst)
			simd.HalfTo(dst, c.U16(1)[id*k:(id+1)*k])
		}),
	)
	for _, t := range narrows {
		Register(embedding(fmt.Sprintf("embed_%v_%v", t, t), 2, floatType{narrow: &t}, func(c *Call, dst []float32, id int) {
			k := len(dst)
			t.from(dst, c.U16(1)[id*k:(id+1)*k])
		}))
	}
	for _, q := range affines {
		params := fmt.Sprintf("gs_%d_b_%d", q.group, q.bits)
		Register(embedding("affine_embed_float_"+params, 4, floatType{}, func(c *Call, dst []float32, id int) {
			r := q.rows(c, 1, id, id+1, len(dst))
			q.decode(dst, r.w, r.scales, r.biases)
		}))
		for _, t := range narrows {
			Register(embeddingNarrow(fmt.Sprintf("affine_embed_%v_t_%s", t, params), q, t))
		}
	}
}

// embedding looks up rows of a table of V rows of K elements: out[t] is row
// ids[t]. An id outside [0, V) makes a row of NaN and reads nothing.
//
// Arguments: 0 ids i32[n]; from 1 on the table; then, from slot out on, out
// [n, K] of the type, K i32, V i32. The threads are (K, n, 1). A unit is a row.
func embedding(name string, out int, typ floatType, row func(c *Call, dst []float32, id int)) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return c.Threads[1] },
		Run: func(c *Call, w *Worker, lo, hi int) {
			k, v := c.Int(out+1), c.Int(out+2)
			ids, y := c.I32(0), c.F32(out)
			if typ.narrow != nil {
				y = w.Scratch(k) // one row
			}
			for t := lo; t < hi; t++ {
				dst := y[:k]
				if typ.narrow == nil {
					dst = y[t*k : (t+1)*k]
				}
				if id := int(ids[t]); id >= 0 && id < v {
					row(c, dst, id)
				} else {
					fill(dst, nan32)
				}
				if typ.narrow != nil {
					typ.store(c, out, t*k, dst)
				} else {
					canonical(dst) // for NaNs of the table too: a row is a computed result, not a copy
				}
			}
		},
		Cost: func(c *Call) float64 { return 20 + 0.8*float64(c.Int(out+1)) },
	}
}

// embeddingNarrow is embedding of a quantized table whose scales and biases are f16 or bf16, as is out.
func embeddingNarrow(name string, q affine, t narrow) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return c.Threads[1] },
		Run: func(c *Call, w *Worker, lo, hi int) {
			k, v := c.Int(5), c.Int(6)
			bytes, groups := k/8*q.bits, k/q.group
			buf := w.Scratch(k + 2*groups)
			row, scales, biases := buf[:k], buf[k:k+groups], buf[k+groups:]
			for i := lo; i < hi; i++ {
				if id := int(c.I32(0)[i]); id >= 0 && id < v {
					t.from(scales, c.U16(2)[id*groups:(id+1)*groups])
					t.from(biases, c.U16(3)[id*groups:(id+1)*groups])
					q.decode(row, c.Bytes(1)[id*bytes:(id+1)*bytes], scales, biases)
				} else {
					fill(row, nan32)
				}
				t.to(c.U16(4)[i*k:(i+1)*k], row)
			}
		},
		Cost: func(c *Call) float64 { return 20 + 0.9*float64(c.Int(5)) },
	}
}

// decode makes dst of the codes of a row, dst[e] = scale*q(e) + bias, the product rounded before the sum.
func (a affine) decode(dst []float32, codes []byte, scales, biases []float32) {
	size := a.group / 8 * a.bits // bytes of a group
	var room [128]byte
	for g, scale := range scales {
		d, w, bias := dst[g*a.group:(g+1)*a.group], codes[g*size:(g+1)*size], biases[g]
		if a.isPacked() {
			bytes := room[:a.group]
			a.unpack(bytes, w)
			w = bytes
		}
		if a.bits != 4 {
			for e, q := range w {
				d[e] = float32(scale*float32(q)) + bias
			}
			continue
		}
		for e, q := range w {
			d[2*e] = float32(scale*float32(q&15)) + bias
			d[2*e+1] = float32(scale*float32(q>>4)) + bias
		}
	}
}
