package routes

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// operations sends the operation of a case, and returns its results.
var operations = map[string]func(*Encoder, *capture) []Array{
	"decoder": decoder,
	"quantize": func(e *Encoder, c *capture) []Array {
		m := e.Quantize(c.array("w"), Affine{c.Bits, c.Group})
		return []Array{m.Codes, m.Scales, m.Biases}
	},
	"rms_norm_vjp": func(e *Encoder, c *capture) []Array {
		x, w := e.RMSNormVJP(c.array("x"), c.array("w"), c.array("g"), c.Eps)
		return present(x, w)
	},
	"layer_norm_vjp": func(e *Encoder, c *capture) []Array {
		x, w, b := e.LayerNormVJP(c.array("x"), c.array("w"), c.array("b"), c.array("g"), c.Eps)
		return present(x, w, b)
	},
}

// present returns the arrays that are there.
func present(arrays ...Array) []Array {
	return slices.DeleteFunc(arrays, func(a Array) bool { return !a.Present() })
}

// single are operations of one result.
var single = map[string]func(*Encoder, *capture) Array{
	"quantized_matmul": func(e *Encoder, c *capture) Array {
		return e.QuantizedMatmul(c.array("x"), c.matrix())
	},
	"gather_qmm": func(e *Encoder, c *capture) Array {
		return e.GatherQMM(c.array("x"), c.matrix(), c.array("lhs"), c.array("rhs"), c.Sorted)
	},
	"dequantize": func(e *Encoder, c *capture) Array { return e.Dequantize(c.matrix()) },
	"rms_norm":   func(e *Encoder, c *capture) Array { return e.RMSNorm(c.array("x"), c.array("w"), c.Eps) },
	"layer_norm": func(e *Encoder, c *capture) Array {
		return e.LayerNorm(c.array("x"), c.array("w"), c.array("b"), c.Eps)
	},
	"matmul": func(e *Encoder, c *capture) Array { return e.Matmul(c.array("a"), c.array("b")) },
	"addmm":  func(e *Encoder, c *capture) Array { return e.AddMM(c.array("a"), c.array("b"), c.array("c"), 1, 1) },
	"gather_mm": func(e *Encoder, c *capture) Array {
		return e.GatherMM(c.array("a"), c.array("b"), c.array("lhs"), c.array("rhs"), c.Sorted)
	},
	"reciprocal": func(e *Encoder, c *capture) Array {
		x := c.array("x")
		return e.Elementwise("divide", e.temporary(x.Type), x)
	},
	"isnan": func(e *Encoder, c *capture) Array { return e.Elementwise("not_equal", c.array("x"), c.array("x")) },
	"floor_divide": func(e *Encoder, c *capture) Array {
		a := c.array("a")
		q := e.Binary("Divide", a, c.array("b"), a.Type)
		if q.Spare = true; a.Type.Float() {
			q = e.Elementwise("floor", q)
		}
		return q
	},
	"astype": func(e *Encoder, c *capture) Array {
		t, err := ir.ParseDType(c.To)
		if err != nil {
			panic(err)
		}
		return e.AsType(c.array("x"), t)
	},
	"contiguous":  func(e *Encoder, c *capture) Array { return e.Contiguous(c.array("x")) },
	"concatenate": func(e *Encoder, c *capture) Array { return e.Concatenate(1, c.array("a"), c.array("b")) },
	"full":        func(e *Encoder, c *capture) Array { return e.Full(c.array("v"), sizes(64, 576)) },
	"arange": func(e *Encoder, c *capture) Array {
		t, one := ir.F32, int64(0x3f800000)
		if c.Type == "f16" {
			t, one = ir.F16, 0x3c00
		}
		return e.Arange(t, ir.Const(1000), ir.Const(0), ir.Const(one))
	},
	"slice_update": func(e *Encoder, c *capture) Array {
		return e.SliceUpdate(c.array("a"), c.array("b"), sizes(0, 0, 17, 0))
	},
	"slice_update_dynamic": func(e *Encoder, c *capture) Array {
		return e.DynamicSliceUpdate(c.array("a"), c.array("b"), c.array("start"), []int{2})
	},
	"slice_dynamic": func(e *Encoder, c *capture) Array {
		return e.DynamicSlice(c.array("a"), c.array("start"), []int{2}, sizes(1, 3, 16, 64))
	},
	"take":            func(e *Encoder, c *capture) Array { return e.Take(c.array("table"), c.array("ids")) },
	"take_along_axis": func(e *Encoder, c *capture) Array { return e.TakeAlongAxis(c.array("a"), c.array("ids"), 1) },
	"put_along_axis": func(e *Encoder, c *capture) Array {
		return e.PutAlongAxis(c.array("a"), c.array("ids"), c.array("values"), 1)
	},
	"scatter_add": func(e *Encoder, c *capture) Array {
		return e.ScatterAdd(c.array("a"), c.array("ids"), c.array("updates"))
	},
	"cumsum":    func(e *Encoder, c *capture) Array { return e.Scan(c.array("x"), c.axis(), c.Reverse, c.Inclusive) },
	"sort":      func(e *Encoder, c *capture) Array { return e.Sort(c.array("x"), c.axis(), false) },
	"argsort":   func(e *Encoder, c *capture) Array { return e.Sort(c.array("x"), c.axis(), true) },
	"where":     func(e *Encoder, c *capture) Array { return e.Select(c.array("condition"), c.array("a"), c.array("b")) },
	"softmax":   func(e *Encoder, c *capture) Array { return e.Softmax(c.array("x"), c.Precise) },
	"logsumexp": func(e *Encoder, c *capture) Array { return e.LogSumExp(c.array("x")) },
	"rope": func(e *Encoder, c *capture) Array {
		r := Rope{Dims: c.Dims, Traditional: c.Traditional, Base: 10000, Scale: 1}
		offset := c.array("offset")
		if !offset.Present() {
			offset = e.temporary(ir.I32)
		}
		if c.How == 2 {
			r.Scale = 0.5
		}
		return e.Rope(c.array("x"), offset, c.array("freqs"), r)
	},
	"scaled_dot_product_attention": func(e *Encoder, c *capture) Array {
		o := Attention{Scale: 0.125, Causal: c.How == 1, Mask: c.array("mask"), Sinks: c.array("sinks")}
		return e.Attention(c.array("q"), c.array("k"), c.array("v"), o)
	},
}

func init() {
	for name := range Operations {
		single[name] = func(e *Encoder, c *capture) Array {
			if x := c.array("x"); x.Present() {
				return e.Elementwise(name, x)
			}
			return e.Elementwise(name, c.array("a"), c.array("b"))
		}
	}
	for name, op := range map[string]ReduceOp{"sum": sum, "prod": prod, "max": most, "min": least, "all": and, "any": or} {
		single[name] = func(e *Encoder, c *capture) Array { return e.Reduce(op, c.array("x"), c.axes()) }
	}
	for _, name := range []string{"argmin", "argmax"} {
		single[name] = func(e *Encoder, c *capture) Array { return e.ArgReduce(name, c.array("x"), c.axis()) }
	}
	for name, send := range single {
		operations[name] = func(e *Encoder, c *capture) []Array { return []Array{send(e, c)} }
	}
}

// axis is the axis of an arg-reduction, a scan or a sort, which a case does not say: the table of shapes of
// testdata/gen/mlxhost/cases.cpp does.
func (c *capture) axis() int {
	return map[string]int{"[49152]": 0, "[3 1000]": 1, "[64 576]": 0, "[2 3 4]": 1}[fmt.Sprint(c.In["x"].shape)]
}

// axes are the axes of a reduction, which a case does not say: those that its result lacks. No two dimensions of
// a shape are equal in these cases.
func (c *capture) axes() []int {
	var result []int64
	for _, s := range c.Sent {
		if err := json.Unmarshal(s.Out[0], &[]any{new(string), new(string), &result}); err != nil {
			panic(err)
		}
	}
	axes, next := []int{}, 0
	for i, d := range c.In["x"].shape {
		if next < len(result) && result[next] == d {
			next++
		} else {
			axes = append(axes, i)
		}
	}
	return axes
}

func (c *capture) matrix() Matrix {
	return Matrix{
		Codes: c.array("w"), Scales: c.array("scales"), Biases: c.array("biases"),
		Affine: Affine{c.Bits, c.Group}, Transposed: c.Transpose,
	}
}
