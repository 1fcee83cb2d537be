package routes

import (
	"strconv"

	"github.com/mlxc/mlxc/ir"
)

// decoder sends a step of a decoder as testdata/gen/mlxhost/cases.cpp writes it, in the order in which MLX
// evaluates it: what is deeper in its graph first, and of what is as deep the last operand.
func decoder(e *Encoder, c *capture) []Array { return decoderAt(e, c, ir.Const(c.Cache)) }

func decoderAt(e *Encoder, c *capture, at Size) []Array {
	const dim = 64
	length := ir.Const(c.Length)
	matrix := func(name string) Matrix {
		return Matrix{
			Codes: c.array(name + ".w"), Scales: c.array(name + ".scales"), Biases: c.array(name + ".biases"),
			Affine: Affine{c.Bits, c.Group}, Transposed: true,
		}
	}
	ids := c.array("ids")
	embedding := matrix("embedding")
	rows := embedding
	rows.Biases = e.Take(embedding.Biases, ids)
	rows.Scales = e.Take(embedding.Scales, ids)
	rows.Codes = e.Take(embedding.Codes, ids)
	x := e.Dequantize(rows)
	caches := []Array{}
	for i := range c.Layers {
		layer := "l" + strconv.FormatInt(i, 10) + "."
		heads := func(a Array) Array {
			n := divide(a.Dim(-1), dim)
			return e.Last(e.Reshape(a, []Size{ir.Const(1), length, n, ir.Const(dim)}).transposed(0, 2, 1, 3))
		}
		rope := func(a Array) Array {
			return e.Rope(a, e.temporary(ir.I32), Array{}, Rope{Dims: dim, Base: 10000, Scale: 1})
		}
		cache := func(name string, a Array) Array {
			a = e.SliceUpdate(c.array(layer+name), a, []Size{ir.Const(0), ir.Const(0), at, ir.Const(0)})
			caches = append(caches, a)
			a.Shape = []Size{a.Shape[0], a.Shape[1], at.Add(length), a.Shape[3]}
			return a
		}
		n := e.RMSNorm(x, c.array(layer+"norm"), 1e-5)
		k := heads(e.QuantizedMatmul(n, matrix(layer+"k")))
		v := heads(e.QuantizedMatmul(n, matrix(layer+"v")))
		q := heads(e.QuantizedMatmul(n, matrix(layer+"q")))
		k = rope(k)
		values := cache("values", v)
		keys := cache("keys", k)
		a := e.Attention(rope(q), keys, values, Attention{Scale: 0.125, Causal: c.Length > 1})
		a = e.Reshape(a.transposed(0, 2, 1, 3), []Size{ir.Const(1), length, x.Dim(-1)})
		x = e.Elementwise("add", e.Last(x), e.Last(e.QuantizedMatmul(a, matrix(layer+"o"))))
		n = e.RMSNorm(x, c.array(layer+"norm2"), 1e-5)
		gate := e.QuantizedMatmul(n, matrix(layer+"gate"))
		active := e.Last(e.Elementwise("sigmoid", gate))
		up := e.QuantizedMatmul(n, matrix(layer+"up"))
		active = e.Last(e.Elementwise("multiply", e.Last(gate), active))
		active = e.Elementwise("multiply", active, e.Last(up))
		x = e.Elementwise("add", e.Last(x), e.Last(e.QuantizedMatmul(active, matrix(layer+"down"))))
	}
	logits := e.QuantizedMatmul(e.RMSNorm(e.Last(x), c.array("norm"), 1e-5), embedding)
	for i := 0; i < len(caches); i += 2 { // the values were written first, and are returned second
		caches[i], caches[i+1] = caches[i+1], caches[i]
	}
	return append([]Array{logits}, caches...)
}
