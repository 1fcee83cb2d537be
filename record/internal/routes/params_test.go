package routes

import (
	"testing"

	"github.com/mlxc/mlxc/ir"
)

// varied sends an operation on operands of which one length is given.
type varied struct {
	name string
	send func(e *Encoder, n Size) []Array
	most int64
	// differs says for which lengths MLX itself would take another kernel than the one that serves all.
	differs func(c Chip, n int64) bool
}

// operandOf returns a row-contiguous operand.
func operandOf(name string, t ir.DType, shape ...Size) Array {
	return Array{Buffer: &Buffer{Name: name}, Type: t, Shape: shape, Strides: rowStrides(shape)}
}

func quantizedOf(rows, width int64) Matrix {
	q := Affine{Bits: 4, Group: 64}
	return Matrix{
		Codes:  operandOf("w", ir.U32, sizes(rows, width*q.Bits/32)...),
		Scales: operandOf("scales", ir.F16, sizes(rows, width/q.Group)...),
		Biases: operandOf("biases", ir.F16, sizes(rows, width/q.Group)...),
		Affine: q, Transposed: true,
	}
}

var lengths = []varied{
	{
		name: "quantized_matmul", most: 300,
		send: func(e *Encoder, n Size) []Array {
			return []Array{e.QuantizedMatmul(operandOf("x", ir.F16, n, ir.Const(576)), quantizedOf(1536, 576))}
		},
		// Up to the limit a matrix-vector kernel; then rows that are split along K, which a param is not, as their
		// number of parts would depend on it.
		differs: func(_ Chip, n int64) bool { return n <= 96 },
	},
	{
		name: "quantized_matmul, few rows", most: 5,
		send: func(e *Encoder, n Size) []Array {
			return []Array{e.QuantizedMatmul(operandOf("x", ir.F16, n, ir.Const(576)), quantizedOf(1536, 576))}
		},
		// A tile of qmv_wide is as high as there are rows.
		differs: func(c Chip, n int64) bool { return c.Generation >= wideFrom && n < 5 },
	},
	{
		name: "rms_norm", most: 600,
		send: func(e *Encoder, n Size) []Array {
			return []Array{e.RMSNorm(operandOf("x", ir.F16, n, ir.Const(576)), operandOf("w", ir.F16, ir.Const(576)), 1e-5)}
		},
	},
	{
		name: "softmax", most: 600,
		send: func(e *Encoder, n Size) []Array {
			return []Array{e.Softmax(operandOf("x", ir.F16, n, ir.Const(64)), true)}
		},
	},
	{
		name: "rope", most: 600,
		send: func(e *Encoder, n Size) []Array {
			x := operandOf("x", ir.F16, ir.Const(1), n, ir.Const(9), ir.Const(64)).transposed(0, 2, 1, 3)
			return []Array{e.Rope(x, operandOf("offset", ir.I32), Array{}, Rope{Dims: 64, Base: 10000, Scale: 1})}
		},
		differs: func(_ Chip, n int64) bool { return n == 1 },
	},
	{
		name: "scaled_dot_product_attention of one query", most: 1000,
		send: func(e *Encoder, n Size) []Array {
			keys := operandOf("k", ir.F16, sizes(1, 3, 2048, 64)...)
			keys.Shape = []Size{ir.Const(1), ir.Const(3), n, ir.Const(64)}
			q := operandOf("q", ir.F16, sizes(1, 9, 1, 64)...)
			return []Array{e.Attention(q, keys, keys, Attention{Scale: 0.125})}
		},
	},
	{
		name: "multiply", most: 600,
		send: func(e *Encoder, n Size) []Array {
			x := operandOf("x", ir.F32, n, ir.Const(64))
			return []Array{e.Elementwise("multiply", x, x)}
		},
	},
	{
		name: "take", most: 600,
		send: func(e *Encoder, n Size) []Array {
			return []Array{e.Take(operandOf("table", ir.F16, sizes(1000, 576)...), operandOf("ids", ir.U32, n))}
		},
	},
	{
		name: "slice_update", most: 255,
		send: func(e *Encoder, n Size) []Array {
			cache := operandOf("cache", ir.F16, sizes(1, 3, 256, 64)...)
			at := []Size{ir.Const(0), ir.Const(0), n, ir.Const(0)}
			return []Array{e.SliceUpdate(cache, operandOf("row", ir.F16, sizes(1, 3, 1, 64)...), at)}
		},
	},
}

// One kernel serves the whole range of a param: what is sent for a param is, for each of its values, what is sent for
// that number, except where MLX takes another kernel for a small one. Threadgroups are those of the greatest value.
func TestParams(t *testing.T) {
	for _, v := range lengths {
		t.Run(v.name, func(t *testing.T) {
			for _, c := range []string{"g13g", "g15s", "g17d"} {
				all := &Encoder{Chip: chip(c), Most: []uint32{uint32(v.most)}}
				results := v.send(all, ir.Linear(0, ir.Term{Param: 0, Coeff: 1}))
				if all.Err != nil {
					t.Fatal(all.Err)
				}
				same := 0
				for n := int64(1); n <= v.most; n++ {
					one := &Encoder{Chip: chip(c)}
					want := v.send(one, ir.Const(n))
					if one.Err != nil {
						t.Fatal(one.Err)
					}
					if v.differs != nil && v.differs(all.Chip, n) {
						continue
					}
					same++
					for i := range min(len(one.Sent), len(all.Sent)) {
						one.Sent[i].Group = all.Sent[i].Group
					}
					got := text(all.Sent, results, []uint32{uint32(n)}, sent{})
					if w := text(one.Sent, want, nil, sent{}); got != w {
						t.Fatalf("%s, %d: %s", c, n, difference(got, w))
					}
				}
				if same == 0 {
					t.Error("no length was compared")
				}
			}
		})
	}
}

// A step of a decoder at a position that is a param is at each position what it is at that number.
func TestDecoderAtAPosition(t *testing.T) {
	for _, c := range read(t) {
		if c.Op != "decoder" || c.Length != 1 {
			continue
		}
		for chips := range c.Sent {
			name := chips[:4]
			all := &Encoder{Chip: chip(name), Most: []uint32{255}}
			results := decoderAt(all, &c, ir.Linear(0, ir.Term{Param: 0, Coeff: 1}))
			if all.Err != nil {
				t.Fatal(all.Err)
			}
			got, want := text(all.Sent, results, []uint32{uint32(c.Cache)}, c.Sent[chips]), c.Sent[chips].text()
			if got != want {
				t.Errorf("%s: %s", name, difference(got, want))
			}
		}
	}
}

// What a route needs as a number is an error if it depends on a param, and what is not affine in the params too.
func TestNotAffine(t *testing.T) {
	p := ir.Linear(0, ir.Term{Param: 0, Coeff: 1})
	for name, send := range map[string]func(e *Encoder){
		"width of a row": func(e *Encoder) { e.Softmax(operandOf("x", ir.F32, ir.Const(3), p), false) },
		"square":         func(e *Encoder) { e.Elementwise("exp", operandOf("x", ir.F32, p, p)) },
		"full attention": func(e *Encoder) {
			x := operandOf("x", ir.F32, ir.Const(1), ir.Const(4), p, ir.Const(64))
			e.Attention(x, x, x, Attention{})
		},
	} {
		e := &Encoder{Chip: chip("g13g"), Most: []uint32{100}}
		send(e)
		if e.Err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
