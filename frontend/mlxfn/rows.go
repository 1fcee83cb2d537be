package mlxfn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// part is a value that was made on the way.
func (l *lowering) part(t record.Tensor, shape ...int64) value {
	return value{shape: shape, typ: t.DType, t: flat(t, sizes(shape)...), has: true, round: l.round}
}

// lined returns memory with some axes behind all others, as rows.
func (l *lowering) lined(t record.Tensor, axes []int) record.Tensor {
	var shape, strides []int64
	rows, length := int64(1), int64(1)
	for i := range t.Shape {
		if !slices.Contains(axes, i) {
			shape, strides = append(shape, t.Shape[i].Const), append(strides, t.Strides[i])
			rows *= t.Shape[i].Const
		}
	}
	for _, i := range axes {
		shape, strides = append(shape, t.Shape[i].Const), append(strides, t.Strides[i])
		length *= t.Shape[i].Const
	}
	return flat(l.packed(strided(t, shape, strides)), rows, length)
}

func (c *call) axes(i int, rank int) ([]int, error) {
	var out []int
	for _, a := range c.ints(i) {
		axis, err := axisOf(a, rank)
		if err != nil {
			return nil, err
		}
		out = append(out, axis)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func reduce(c *call) error {
	op, t := c.int(0), c.in[0].typ
	names := []string{"and", "or", "sum", "prod", "min", "max"}
	axes, err := c.axes(1, len(c.in[0].shape))
	if err != nil {
		return err
	}
	if op < 0 || op >= int64(len(names)) {
		return fmt.Errorf("operation %d", op)
	}
	if len(axes) == 0 {
		return same(c)
	}
	name := names[op]
	if c.compiled && t != ir.Bool {
		return c.give(flat(c.packed(c.m.Reduce(name, c.tensor(c.in[0]), axes)), sizes(c.out[0].shape)...))
	}
	switch {
	case t == ir.Bool && (op < 2 || op > 3):
		x := c.lined(c.onesOf(c.in[0]), axes)
		if op == 0 || op == 4 {
			c.out[0].ones = c.least(x)
		} else {
			c.out[0].ones = c.greatest(x)
		}
		c.out[0].ones, c.out[0].hasOnes = flat(c.out[0].ones, sizes(c.out[0].shape)...), true
		return nil
	case !t.Float() || op == 3:
		return fmt.Errorf("%s of %s", name, t)
	}
	x := c.lined(c.tensor(c.in[0]), axes)
	switch name {
	case "sum":
		x = c.sum(x)
	case "min":
		x = c.least(x)
	case "max":
		x = c.greatest(x)
	default:
		return fmt.Errorf("%s of %s", name, t)
	}
	return c.give(flat(x, sizes(c.out[0].shape)...))
}

// sum adds up the rows of x [M, K], as a product with ones.
func (l *lowering) sum(x record.Tensor) record.Tensor {
	k := x.Shape[1].Const
	if k == 1 {
		return flat(x, x.Shape[0].Const)
	}
	w := l.filled(x.DType, 1, k)
	if l.complaint != nil {
		return flat(x, x.Shape[0].Const)
	}
	return flat(l.s.MatmulNN(x, flat(w, k, 1)), x.Shape[0].Const)
}

// filled is a constant of n elements, all of one value.
func (l *lowering) filled(t ir.DType, number float32, n int64) record.Tensor {
	if n > maxMade {
		l.fail(record.Tensor{}, "a row of %d elements", n)
		n = 1
	}
	numbers := make([]float32, n)
	for i := range numbers {
		numbers[i] = number
	}
	return l.s.Weight(fmt.Sprintf("filled_%s_%v_%d", t, number, n), ir.NewBlob(record.Elements(t, numbers)), t, n)
}

// greatest is the greatest element of each row of x [M, K]; NaN if one is NaN.
func (l *lowering) greatest(x record.Tensor) record.Tensor {
	m, k := x.Shape[0].Const, x.Shape[1].Const
	if k == 1 {
		return flat(x, m)
	}
	_, top := l.s.TopK(x, 1)
	none := l.compute([]int64{m, k}, ir.F32, "round(T, select($0 != $0, 1.0, 0.0))", l.part(x, m, k))
	count := l.sum(flat(none, m, k))
	return l.compute([]int64{m}, x.DType, "round(T, select($0 > 0.0, inf - inf, $1))", l.part(count, m), l.part(top, m))
}

func (l *lowering) least(x record.Tensor) record.Tensor {
	m, k := x.Shape[0].Const, x.Shape[1].Const
	negative := l.compute([]int64{m, k}, x.DType, "round(T, -$0)", l.part(x, m, k))
	return l.compute([]int64{m}, x.DType, "round(T, -$0)", l.part(l.greatest(flat(negative, m, k)), m))
}

func argReduce(c *call) error {
	axis, err := c.axis(1, len(c.in[0].shape))
	if err != nil {
		return err
	}
	names := []string{"argmin", "argmax"}
	op := c.int(0)
	if op < 0 || op > 1 {
		return fmt.Errorf("operation %d", op)
	}
	t := c.in[0].typ
	if !t.Float() {
		if c.compiled && t != ir.Bool {
			return c.give(flat(c.packed(c.m.ArgReduce(names[op], c.tensor(c.in[0]), axis)), sizes(c.out[0].shape)...))
		}
		return fmt.Errorf("%s of %s", names[op], t)
	}
	x := c.lined(c.tensor(c.in[0]), []int{axis})
	if op == 0 {
		m, k := x.Shape[0].Const, x.Shape[1].Const
		x = flat(c.compute([]int64{m, k}, t, "round(T, -$0)", c.part(x, m, k)), m, k)
	}
	return c.give(flat(c.s.Argmax(x, c.into(ir.U32, []int64{x.Shape[0].Const})...), sizes(c.out[0].shape)...))
}

func softmax(c *call) error {
	if err := c.floats(); err != nil {
		return err
	}
	precise := c.flag(0) || !c.compiled && c.in[0].typ != ir.F32
	return c.give(c.packed(c.m.Softmax(c.dense(c.in[0]), precise)))
}

func logSumExp(c *call) error {
	if err := c.floats(); err != nil {
		return err
	}
	x := c.dense(c.in[0])
	k := x.Shape[x.Rank()-1].Const
	m := product(c.in[0].shape) / k
	x = flat(x, m, k)
	top := c.part(c.greatest(x), m, 1)
	wide := top
	wide.t = strided(top.t, []int64{m, k}, []int64{1, 0})
	wide.shape = []int64{m, k}
	e := c.compute([]int64{m, k}, ir.F32, "round(T, exp($0 - select(abs($1) == inf, 0.0, $1)))", c.part(x, m, k), wide)
	all := c.part(c.sum(flat(e, m, k)), m)
	top.shape, top.t = []int64{m}, flat(top.t, m)
	return c.give(flat(c.compute([]int64{m}, c.out[0].typ, "round(T, log($0) + select(abs($1) == inf, 0.0, $1))", all, top), sizes(c.out[0].shape)...))
}

// perElement returns a weight or bias of a norm, of which one number may stand for all; no tensor if it is the number that
// changes nothing.
func (c *call) perElement(i int, k int64, nothing float64) record.Tensor {
	v := c.in[i]
	switch {
	case v.uniform && v.number == nothing:
		return record.Tensor{}
	case len(v.shape) == 0:
		return c.packed(broadcastTensor(c.tensor(v), []int64{k}))
	}
	return c.dense(v)
}

func rmsNorm(c *call) error {
	if err := errors.Join(c.operands(2), c.floats()); err != nil {
		return err
	}
	x := c.dense(c.in[0])
	return c.give(c.packed(c.m.RMSNorm(x, c.perElement(1, x.Shape[x.Rank()-1].Const, 1), c.float(0))))
}

func layerNorm(c *call) error {
	if err := errors.Join(c.operands(3), c.floats()); err != nil {
		return err
	}
	x := c.dense(c.in[0])
	k := x.Shape[x.Rank()-1].Const
	return c.give(c.s.LayerNorm(x, c.perElement(1, k, 1), c.perElement(2, k, 0), c.float(0)))
}

func normGradient(c *call) error {
	if !c.compiled {
		return needsLibrary
	}
	x := c.dense(c.in[0])
	k := x.Shape[x.Rank()-1].Const
	var out []record.Tensor
	if c.n.Name == "RMSNormVJP" {
		if err := c.operands(3); err != nil {
			return err
		}
		gx, gw := c.m.RMSNormVJP(x, c.perElement(1, k, 1), c.dense(c.in[2]), c.float(0))
		out = []record.Tensor{gx, gw}
	} else {
		if err := c.operands(4); err != nil {
			return err
		}
		gx, gw, gb := c.m.LayerNormVJP(x, c.perElement(1, k, 1), c.perElement(2, k, 0), c.dense(c.in[3]), c.float(0))
		out = []record.Tensor{gx, gw, gb}
	}
	for i := range c.out {
		if i >= len(out) || product(numbers(out[i])) != product(c.out[i].shape) {
			return errors.New("a gradient of one number for all elements")
		}
		c.out[i].t, c.out[i].has = out[i], true
	}
	return nil
}

// needsLibrary is why a primitive cannot be recorded for kernels of our own.
var needsLibrary = errors.New("there are no kernels of our own for it, but there are in MLX's library (--library mlx.metallib)")

// longestSorted bounds the rows that are sorted by a kernel of our own, which takes as many steps for each element as a row has.
const longestSorted = 4096

// sorted sorts along an axis; what is parted only is sorted as well.
func sorted(c *call) error {
	part := c.n.Name == "Partition" || c.n.Name == "ArgPartition"
	field := 0
	if part {
		field = 1
	}
	axis, err := c.axis(field, len(c.in[0].shape))
	if err != nil {
		return err
	}
	values, t := c.n.Name == "Sort" || c.n.Name == "Partition", c.in[0].typ
	if c.compiled {
		if values {
			return c.give(c.m.Sort(c.dense(c.in[0]), axis))
		}
		return c.give(c.m.ArgSort(c.dense(c.in[0]), axis))
	}
	if !t.Float() || c.in[0].shape[axis] > longestSorted {
		return needsLibrary
	}
	// The greatest of what is negated are the least, in ascending order.
	x := c.lined(c.tensor(c.in[0]), []int{axis})
	rows, n := x.Shape[0].Const, x.Shape[1].Const
	ids, least := c.s.TopK(flat(c.compute([]int64{rows, n}, t, "round(T, -$0)", c.part(x, rows, n)), rows, n), n)
	if values {
		ids = c.compute([]int64{rows, n}, t, "round(T, -$0)", c.part(least, rows, n))
	}
	return c.give(back(ids, c.in[0].shape, axis))
}

// back returns rows, of an axis that lined has put last, with the axis in its place.
func back(t record.Tensor, shape []int64, axis int) record.Tensor {
	moved := slices.Concat(shape[:axis], shape[axis+1:], shape[axis:axis+1])
	strides := rowStrides(moved)
	last := len(strides) - 1
	return strided(t, shape, slices.Insert(strides[:last:last], axis, strides[last]))
}

func scan(c *call) error {
	axis, err := c.axis(1, len(c.in[0].shape))
	if err != nil {
		return err
	}
	switch {
	case c.int(0) != 2:
		return fmt.Errorf("other than a sum (%d)", c.int(0))
	case !c.compiled:
		return needsLibrary
	}
	return c.give(c.m.CumSum(c.dense(c.in[0]), axis, c.flag(2), c.flag(3)))
}

// gatherAxis takes elements along an axis, by where they lie among all.
func gatherAxis(c *call) error {
	if err := c.operands(2); err != nil {
		return err
	}
	of, ids := c.in[0].shape, c.in[1]
	axis, err := c.axis(0, len(of))
	if err != nil {
		return err
	}
	want := slices.Clone(of)
	if len(ids.shape) == len(of) {
		want[axis] = ids.shape[axis]
	}
	if !whole(ids.typ) || !slices.Equal(want, ids.shape) || product(of) > maxMade || product(ids.shape) > maxMade {
		return fmt.Errorf("by %s%v of %v", ids.typ, ids.shape, of)
	}
	ts, _ := c.pieces(c.in[:1])
	x, at := c.lined(ts[0], []int{axis}), c.lined(c.tensor(ids), []int{axis})
	rows, n, k := x.Shape[0].Const, x.Shape[1].Const, at.Shape[1].Const
	number := func(v int64) value {
		return value{shape: []int64{rows, k}, typ: ids.typ, uniform: true, number: float64(v), round: c.round}
	}
	from := c.part(at, rows, k)
	if ids.typ == ir.I32 { // those below 0 count from the end
		below := c.integers("less", from, number(0))
		up := c.integers("add", from, number(n))
		from = c.part(c.m.Where(flat(below, rows, k), flat(up, rows, k), flat(at, rows, k)), rows, k)
	}
	var first []byte
	for r := range rows {
		first = binary.LittleEndian.AppendUint32(first, uint32(r*n))
	}
	start := c.s.Weight(fmt.Sprintf("rows_%s_%d_%d", ids.typ, rows, n), ir.NewBlob(first), ids.typ, rows)
	from = c.part(c.integers("add", from, value{shape: []int64{rows, k}, typ: ids.typ, has: true, round: c.round, t: strided(start, []int64{rows, k}, []int64{1, 0})}), rows*k)
	kind := x.DType
	x.DType = bits(x).DType
	if kind.Size() != 4 && kind.Size() != 2 {
		return fmt.Errorf("of %s", kind)
	}
	r := c.m.Take(flat(x, rows*n, 1), flat(from.t, rows*k))
	r.DType = kind
	return c.joined(back(r, ids.shape, axis))
}

// gather takes rows along one axis.
func gather(c *call) error {
	if err := c.operands(2); err != nil {
		return err
	}
	x, of, sizes := c.in[0], c.in[0].shape, c.ints(1)
	axis, err := axisOf(c.ints(0)[0], len(of))
	if err != nil {
		return err
	}
	ids := c.in[1]
	if !whole(ids.typ) {
		return fmt.Errorf("by indices of %s", ids.typ)
	}
	for i := range sizes {
		if len(sizes) != len(of) || i == axis && sizes[i] != 1 || i != axis && sizes[i] != of[i] {
			return fmt.Errorf("slices %v of %v", sizes, of)
		}
	}
	ts, _ := c.pieces([]value{x})
	t := ts[0]
	order := []int{axis}
	for i := range of {
		if i != axis {
			order = append(order, i)
		}
	}
	var shape, strides []int64
	for _, i := range order {
		shape, strides = append(shape, of[i]), append(strides, t.Strides[i])
	}
	t = c.packed(strided(t, shape, strides))
	kind := t.DType
	t.DType = bits(t).DType
	if kind.Size() != 4 && kind.Size() != 2 {
		return fmt.Errorf("of %s", kind)
	}
	r := c.m.Take(flat(t, of[axis], product(of)/of[axis]), flat(c.dense(ids), product(ids.shape)))
	r.DType = kind
	out := c.out[0].shape
	if product(out) != product(numbers(r)) {
		return fmt.Errorf("%v of %v", out, of)
	}
	if len(out) == 0 {
		out = []int64{1}
	}
	return c.joined(flat(r, out...))
}

// changed returns memory of an array that an update may change: the array's own if nothing else needs it, else a copy.
func (c *call) changed() record.Tensor {
	ts, of := c.pieces(c.in[:1])
	if c.inPlace[c.n.In[0]] && contiguous(ts[0]) && c.fresh(c.in[0]).has {
		return ts[0]
	}
	out := c.scratch(of, c.in[0].shape)
	c.copyTo(out, ts[0])
	return out
}

func sliceUpdate(c *call) error {
	// Releases before 0.31.2 have no operation.
	first := len(c.n.State) - 3
	if first == 1 && c.int(0) != 4 {
		return fmt.Errorf("that computes with what is there (%d)", c.int(0))
	}
	if err := c.operands(2); err != nil {
		return err
	}
	start, steps := c.ints(first), c.ints(first+2)
	if err := bounds(start, steps, c.in[1].shape, c.in[0].shape); err != nil {
		return err
	}
	out := c.changed()
	ts, _ := c.pieces(c.in[1:2])
	c.copyTo(cut(out, start, steps, c.in[1].shape), ts[0])
	return c.joined(out)
}

// places returns where a slice begins along the axes of a dynamic one, as i32.
func (c *call) places(v value, axes []int) (record.Tensor, error) {
	if !whole(v.typ) || product(v.shape) != int64(len(axes)) {
		return record.Tensor{}, fmt.Errorf("at %s%v for the axes %v", v.typ, v.shape, axes)
	}
	t := c.dense(v)
	t.DType = ir.I32
	return flat(t, int64(len(axes))), nil
}

func (c *call) dynamicAxes(rank int) (out []int, err error) {
	for _, a := range c.ints(0) {
		axis, err := axisOf(a, rank)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, axis) {
			return nil, fmt.Errorf("along %v", c.ints(0))
		}
		out = append(out, axis)
	}
	return out, nil
}

func fits(part, of []int64) error {
	if len(part) != len(of) {
		return fmt.Errorf("%v of %v", part, of)
	}
	for i := range part {
		if part[i] > of[i] {
			return fmt.Errorf("%v of %v", part, of)
		}
	}
	return nil
}

func dynamicSlice(c *call) error {
	if err := c.operands(2); err != nil {
		return err
	}
	axes, err := c.dynamicAxes(len(c.in[0].shape))
	if err != nil {
		return err
	}
	if err := fits(c.out[0].shape, c.in[0].shape); err != nil {
		return err
	}
	at, err := c.places(c.in[1], axes)
	if err != nil {
		return err
	}
	ts, of := c.pieces(c.in[:1])
	r := c.s.SliceAt(bits(ts[0]), at, axes, c.out[0].shape)
	r.DType = of
	return c.joined(r)
}

func dynamicSliceUpdate(c *call) error {
	if err := c.operands(3); err != nil {
		return err
	}
	axes, err := c.dynamicAxes(len(c.in[0].shape))
	if err != nil {
		return err
	}
	if err := fits(c.in[1].shape, c.in[0].shape); err != nil {
		return err
	}
	at, err := c.places(c.in[2], axes)
	if err != nil {
		return err
	}
	out := c.changed()
	ts, _ := c.pieces(c.in[1:2])
	c.s.UpdateAt(bits(out), bits(ts[0]), at, axes)
	return c.joined(out)
}
