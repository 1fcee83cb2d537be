package mlxfn

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// batched returns matrices with at most one dimension of batches in place of more than two.
func (c *call) batched(t record.Tensor) record.Tensor {
	n := t.Rank()
	if n <= 4 {
		return t
	}
	shape := numbers(t)
	joined := []int64{product(shape[:n-2]), shape[n-2], shape[n-1]}
	if strides, ok := restride(t, joined); ok {
		return strided(t, joined, strides)
	}
	return flat(c.packed(t), joined...)
}

func (c *call) product() (record.Tensor, error) {
	if err := c.floats(); err != nil {
		return record.Tensor{}, err
	}
	a, b := c.in[0].shape, c.in[1].shape
	if len(a) < 2 || len(b) < 2 || a[len(a)-1] != b[len(b)-2] {
		return record.Tensor{}, fmt.Errorf("%v times %v", a, b)
	}
	r := c.m.AddMM(c.batched(c.tensor(c.in[0])), c.batched(c.tensor(c.in[1])), record.Tensor{}, 1, 0)
	return flat(c.packed(r), c.out[0].shape...), nil
}

func matmul(c *call) error {
	if err := c.operands(2); err != nil {
		return err
	}
	t, err := c.product()
	if err != nil {
		return err
	}
	return c.give(t)
}

func addMM(c *call) error {
	if err := c.operands(3); err != nil {
		return err
	}
	t, err := c.product()
	if err != nil {
		return err
	}
	shape := c.out[0].shape
	alpha := value{shape: shape, typ: ir.F32, uniform: true, number: float64(c.float(0))}
	beta := value{shape: shape, typ: ir.F32, uniform: true, number: float64(c.float(1))}
	return c.give(c.compute(shape, c.out[0].typ, "round(T, $0 * $1 + $2 * $3)", alpha, c.part(t, shape...), beta, c.wide(c.in[2], shape)))
}

// wide broadcasts a value to a shape.
func (c *call) wide(v value, shape []int64) value {
	other := *c
	other.in, other.out = []value{v}, []value{{shape: shape, typ: v.typ}}
	broadcast(&other)
	out := other.out[0]
	out.shape, out.typ, out.round = shape, v.typ, c.round
	return out
}

// matrix returns an affine matrix of three operands.
func (c *call) matrix(first int, transposed bool) (m record.AffineMatrix, err error) {
	if c.int(2) != 0 {
		return m, fmt.Errorf("in %s, of which there are no kernels", []string{"affine", "mxfp4", "mxfp8", "nvfp4", "other"}[min(max(c.int(2), 0), 4)])
	}
	if len(c.in) < first+3 {
		return m, fmt.Errorf("it has %d operands", len(c.in))
	}
	return record.AffineMatrix{
		Codes: c.dense(c.in[first]), Scales: c.dense(c.in[first+1]), Biases: c.dense(c.in[first+2]), Group: c.int(0), Bits: c.int(1), Transposed: transposed,
	}, nil
}

func quantizedMatmul(c *call) error {
	w, err := c.matrix(1, c.flag(3))
	if err != nil {
		return err
	}
	x := c.tensor(c.in[0])
	if x.Rank() == 1 {
		x = flat(c.packed(x), 1, x.Shape[0].Const)
	}
	shape := numbers(x)
	if w.Transposed {
		shape[len(shape)-1] = w.Codes.Shape[w.Codes.Rank()-2].Const
	} else {
		shape[len(shape)-1] = w.Codes.Shape[w.Codes.Rank()-1].Const * 32 / w.Bits
	}
	var o []record.Option
	if w.Codes.Rank() == 2 { // no batch is broadcast
		o = c.into(x.DType, shape)
	}
	return c.give(flat(c.packed(c.m.QuantizedMatmul(x, w, o...)), sizes(c.out[0].shape)...))
}

func gatherQMM(c *call) error {
	w, err := c.matrix(1, c.flag(3))
	if err != nil {
		return err
	}
	if err := c.operands(6); err != nil {
		return err
	}
	return c.give(flat(c.packed(c.m.GatherQMM(c.tensor(c.in[0]), w, c.tensor(c.in[4]), c.tensor(c.in[5]), false)), sizes(c.out[0].shape)...))
}

func gatherMM(c *call) error {
	if err := c.operands(4); err != nil {
		return err
	}
	return c.give(flat(c.packed(c.m.GatherMM(c.tensor(c.in[0]), c.tensor(c.in[1]), c.tensor(c.in[2]), c.tensor(c.in[3]), false)), sizes(c.out[0].shape)...))
}

func quantize(c *call) error {
	if c.flag(3) {
		w, err := c.matrix(0, true)
		if err != nil {
			return err
		}
		shape := numbers(w.Scales)
		k := shape[len(shape)-1]
		rows := product(shape) / k
		w.Codes, w.Scales, w.Biases = flat(w.Codes, rows, product(numbers(w.Codes))/rows), flat(w.Scales, rows, k), flat(w.Biases, rows, k)
		return c.give(flat(c.packed(c.m.Dequantize(w)), c.out[0].shape...))
	}
	if c.int(2) != 0 || len(c.out) != 3 {
		return errors.New("to other than affine codes")
	}
	if err := c.floats(); err != nil {
		return err
	}
	x := c.dense(c.in[0])
	k := x.Shape[x.Rank()-1].Const
	q := c.m.Quantize(flat(x, product(c.in[0].shape)/k, k), c.int(1), c.int(0))
	for i, t := range []record.Tensor{q.Codes, q.Scales, q.Biases} {
		c.out[i].t, c.out[i].has = flat(t, c.out[i].shape...), true
	}
	return nil
}

func rope(c *call) error {
	if len(c.in) != 2 && len(c.in) != 3 {
		return fmt.Errorf("it has %d operands", len(c.in))
	}
	offset := c.in[1]
	if !whole(offset.typ) {
		return fmt.Errorf("from positions of %s", offset.typ)
	}
	at := flat(c.dense(offset), product(offset.shape))
	at.DType = ir.I32
	var table record.Tensor
	if len(c.in) == 3 {
		table = c.dense(c.in[2])
	}
	r := record.Rope{Dims: c.int(0), Traditional: c.flag(1), Base: c.float(2), Scale: c.float(3), Backward: !c.flag(4)}
	return c.give(c.packed(c.m.Rope(c.tensor(c.in[0]), at, table, r)))
}

func attention(c *call) error {
	if len(c.in) < 3 {
		return fmt.Errorf("it has %d operands", len(c.in))
	}
	causal, hasSinks := c.flag(1), c.flag(2)
	if c.flag(3) || len(c.out) != 1 {
		return errors.New("with logarithms of sums for a gradient")
	}
	var mask, sinks record.Tensor
	rest := c.in[3:]
	if hasSinks {
		if len(rest) == 0 {
			return errors.New("sinks are missing")
		}
		sinks, rest = c.dense(rest[len(rest)-1]), rest[:len(rest)-1]
	}
	switch len(rest) {
	case 0:
	case 1:
		mask = c.tensor(rest[0])
	default:
		return fmt.Errorf("it has %d operands", len(c.in))
	}
	q, k, v := c.tensor(c.in[0]), c.tensor(c.in[1]), c.tensor(c.in[2])
	return c.give(c.packed(c.m.Attention(q, k, v, mask, sinks, c.float(0), causal)))
}
