package routes

import (
	"cmp"
	"slices"
)

// reductionPlan is how a reduction walks the input.
type reductionPlan int

const (
	reduceAll     reductionPlan = iota // everything, which lies without holes
	reduceRows                         // the innermost dimension, of a row-contiguous input
	reduceAnyRows                      // the innermost dimension in memory
	reduceColumns                      // others
	reduceCopy                         // none of these: of a copy
)

// plan returns how a reduction walks in, and the reduced dimensions, joined where they lie as one.
func (e *Encoder) plan(in Array, axes []int) (reductionPlan, reduction) {
	if in.contiguous() && in.stored().Equal(in.Elements()) && len(axes) == in.Rank() {
		return reduceAll, reduction{}
	}
	if in.rowContiguous() {
		r := neighbours(in, axes)
		if isOne(r.strides[r.last()]) {
			return reduceRows, r
		}
		return reduceColumns, r
	}
	r := e.byStride(in, axes)
	switch inner := r.strides[r.last()]; {
	case isOne(inner):
		return reduceAnyRows, r
	case e.at(inner) > 1 && e.columnsFit(in, axes, e.at(inner)):
		return reduceColumns, r
	}
	return reduceCopy, r
}

// neighbours joins axes that follow one another, and leaves out those of one element.
func neighbours(in Array, axes []int) reduction {
	var all, r reduction
	for i, a := range axes {
		if last := all.last(); i > 0 && axes[i-1] == a-1 && !isOne(in.Shape[a]) {
			all.shape[last], all.strides[last] = times(all.shape[last], in.Shape[a]), in.Strides[a]
		} else {
			all.shape, all.strides = append(all.shape, in.Shape[a]), append(all.strides, in.Strides[a])
		}
	}
	for i, d := range all.shape {
		if !isOne(d) {
			r.shape, r.strides = append(r.shape, d), append(r.strides, all.strides[i])
		}
	}
	return r
}

// byStride sorts axes by their strides: axes of stride 0 first, then from the largest stride to the smallest. It joins
// axes that together have one stride.
func (e *Encoder) byStride(in Array, axes []int) reduction {
	var r reduction
	axes = slices.DeleteFunc(slices.Clone(axes), func(a int) bool { return isOne(in.Shape[a]) })
	slices.SortFunc(axes, func(a, b int) int {
		x, y := e.at(in.Strides[a]), e.at(in.Strides[b])
		if (x == 0) != (y == 0) {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
	for _, a := range axes {
		r.shape, r.strides = append(r.shape, in.Shape[a]), append(r.strides, in.Strides[a])
	}
	for i := r.last(); i >= 1; i-- {
		if r.strides[i-1].Equal(times(r.shape[i], r.strides[i])) {
			r.shape[i-1], r.strides[i-1] = times(r.shape[i-1], r.shape[i]), r.strides[i]
			r.shape, r.strides = slices.Delete(r.shape, i, i+1), slices.Delete(r.strides, i, i+1)
		}
	}
	return r
}

// columnsFit reports whether the dimensions behind the innermost reduced one are row-contiguous, so that columns
// of that stride can be reduced. Where one of them repeats elements there must be more than the stride.
func (e *Encoder) columnsFit(in Array, axes []int, stride int64) bool {
	size, repeated := int64(1), false
	for i := in.Rank() - 1; i >= 0; i-- {
		if axes[len(axes)-1] == i || isZero(in.Strides[i]) && isOne(in.Shape[i]) {
			continue
		}
		if isZero(in.Strides[i]) {
			repeated = true
			break
		}
		if e.at(in.Strides[i]) != size && !isOne(in.Shape[i]) {
			break
		}
		size *= e.at(in.Shape[i])
	}
	return size > stride || size == stride && !repeated
}
