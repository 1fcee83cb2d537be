package record

import (
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// maxPlaced is how many dimensions kernels of slices have whose place memory says.
const maxPlaced = 4

// SliceAt copies a slice of x that begins where memory says: start, i32 [len(axes)], has the first index along each of the
// axes; along others it is 0. Where the slice would reach beyond x, it begins as far before as it must to lie in x. x is of u32
// or f16, whose bits are copied, and may be strided.
func (r *Session) SliceAt(x, start Tensor, axes []int, shape []int64, o ...Option) Tensor {
	const op = "slice_at"
	p, ok := r.placed(op, x, start, axes, shape)
	if !ok {
		return r.broken(x.DType, len(shape))
	}
	y := r.result(op, o, x.DType, Dims(shape...))
	r.dispatch(call{op: op, function: op + "_" + p.name, kind: ir.Threads, grid: p.grid, group: p.group}, o,
		buf(0, x), buf(1, start), buf(2, y), val(3, p.shape...), val(4, p.limit...), val(5, p.axis...), val(6, p.strides(x)...), val(7, int32(len(axes))))
	return y
}

// UpdateAt writes a slice into x, in the place that SliceAt would read. x, of more than one element in each dimension that is
// stepped over, is row-contiguous; the slice may be strided.
func (r *Session) UpdateAt(x, slice, start Tensor, axes []int, o ...Option) {
	const op = "update_at"
	if r.err == nil && (slice.DType != x.DType || !x.contiguous()) {
		r.fail("%s: %s%s into %s%s with strides %v: want one type, and row-contiguous memory to write into", op, slice.DType, r.format(slice.Shape), x.DType, r.format(x.Shape), x.Strides)
	}
	shape := make([]int64, len(slice.Shape))
	for i, d := range slice.Shape {
		shape[i] = d.Const
	}
	p, ok := r.placed(op, x, start, axes, shape)
	if !ok {
		return
	}
	to := x
	to.Strides, _ = contiguous(x.Shape)
	r.dispatch(call{op: op, function: op + "_" + p.name, kind: ir.Threads, grid: p.grid, group: p.group}, o,
		buf(0, slice), buf(1, start), buf(2, to), val(3, p.shape...), val(4, p.limit...), val(5, p.axis...), val(6, p.strides(slice)...), val(7, p.strides(to)...), val(8, int32(len(axes))))
}

// placement is a slice as kernels take it, of four dimensions.
type placement struct {
	name               string
	shape, limit, axis []any
	grid               [3]ir.Extent
	group              [3]uint32
}

// strides returns those of t, of four dimensions; the first ones have one element each.
func (p placement) strides(t Tensor) []any {
	out := make([]any, maxPlaced)
	outer := int64(1)
	if t.Rank() > 0 {
		outer = t.Shape[0].Const * t.Strides[0]
	}
	for i := range out {
		out[i] = outer
		if at := i - (maxPlaced - t.Rank()); at >= 0 {
			out[i] = t.Strides[at]
		}
	}
	return out
}

func (r *Session) placed(op string, x, start Tensor, axes []int, shape []int64) (p placement, ok bool) {
	for _, t := range []Tensor{x, start} {
		if r.err == nil && t.bad != nil {
			r.fail("%s: %s", op, *t.bad)
		}
	}
	constant := !slices.ContainsFunc(x.Shape, func(d ir.Affine) bool { return !d.IsConst() || d.Const > math.MaxInt32 })
	switch {
	case r.err != nil:
		return p, false
	case x.DType != ir.U32 && x.DType != ir.F16:
		r.fail("%s takes u32 or f16, not %s%s", op, x.DType, r.format(x.Shape))
	case x.Rank() < 1 || x.Rank() > maxPlaced || len(shape) != x.Rank() || !constant:
		r.fail("%s: a slice %v of %s: want one to %d dimensions, as many in both, of constant size", op, shape, r.format(x.Shape), maxPlaced)
	case start.DType != ir.I32 || !start.contiguous() || !start.Elements().Equal(ir.Const(int64(len(axes)))) || len(axes) == 0:
		r.fail("%s begins at %s%s along the axes %v: want an i32 for each, and at least one", op, start.DType, r.format(start.Shape), axes)
	}
	if r.err != nil {
		return p, false
	}
	p.name = map[ir.DType]string{ir.U32: "uint32", ir.F16: "float16"}[x.DType]
	var n [maxPlaced]int64
	for d := range maxPlaced {
		n[d] = 1
		limit, axis := int32(0), int32(0)
		if at := d - (maxPlaced - x.Rank()); at >= 0 {
			n[d] = shape[at]
			if shape[at] < 1 || shape[at] > x.Shape[at].Const {
				r.fail("%s: a slice %v of %s", op, shape, r.format(x.Shape))
				return p, false
			}
			if i := slices.Index(axes, at); i >= 0 {
				limit, axis = int32(x.Shape[at].Const-shape[at]), int32(i)
			}
		}
		p.shape, p.limit, p.axis = append(p.shape, int32(n[d])), append(p.limit, limit), append(p.axis, axis)
	}
	for i, a := range axes {
		if a < 0 || a >= x.Rank() || slices.Contains(axes[:i], a) {
			r.fail("%s: %s has no axes %v", op, r.format(x.Shape), axes)
			return p, false
		}
	}
	p.grid = [3]ir.Extent{ir.Ext(n[3]), ir.Ext(n[2]), ir.Ext(n[0] * n[1])}
	p.group = [3]uint32{uint32(min(n[3], 256)), 1, 1}
	return p, true
}
