package routes

import "github.com/mlxc/mlxc/ir"

// Reshape returns a with another shape: a view where the layout allows one, else of a copy.
func (e *Encoder) Reshape(a Array, shape []Size) Array {
	strides, ok := e.reshaped(a, shape)
	if !ok {
		e.begin()
		a = e.contiguousCopy(a)
		a.Spare = true
		strides = rowStrides(shape)
	}
	a.Shape, a.Strides = shape, strides
	return a
}

// reshaped returns the strides of a view of another shape, if there is one: each dimension must be a factor of
// what is left of a joined one.
func (e *Encoder) reshaped(a Array, shape []Size) ([]Size, bool) {
	switch {
	case a.rowContiguous():
		return rowStrides(shape), true
	case a.Rank() == 0:
		return make([]Size, len(shape)), true
	}
	left, strides := e.collapseOne(a.Shape, a.Strides)
	var out []Size
	for j, i := 0, 0; i < len(shape); i++ {
		n := shape[i]
		switch {
		case j < len(left) && n.Equal(left[j]):
			left[j] = ir.Const(1)
			out = append(out, strides[j])
			j++
		case j < len(left) && n.IsConst() && left[j].IsConst() && left[j].Const%n.Const == 0:
			left[j] = ir.Const(left[j].Const / n.Const)
			out = append(out, times(left[j], strides[j]))
			if isOne(left[j]) {
				j++
			}
		case isOne(n) && i > 0:
			out = append(out, out[i-1])
		default:
			return nil, false
		}
	}
	return out, true
}

// transposed returns a view with the dimensions in another order.
func (a Array) transposed(order ...int) Array {
	shape, strides := make([]Size, len(order)), make([]Size, len(order))
	for i, d := range order {
		shape[i], strides[i] = a.Shape[d], a.Strides[d]
	}
	a.Shape, a.Strides = shape, strides
	return a
}

// turned returns a view with the last two dimensions exchanged.
func (a Array) turned() Array {
	order := make([]int, a.Rank())
	for i := range order {
		order[i] = i
	}
	n := a.Rank()
	order[n-1], order[n-2] = n-2, n-1
	return a.transposed(order...)
}

// expand returns a view with a dimension of one element more.
func (a Array) expand(axis int) Array {
	a.Shape = append(with(a.Shape[:axis], ir.Const(1)), a.Shape[axis:]...)
	a.Strides = append(with(a.Strides[:axis], ir.Const(1)), a.Strides[axis:]...)
	return a
}

// Concatenate sends copies of arrays behind one another along an axis.
func (e *Encoder) Concatenate(axis int, in ...Array) Array {
	e.begin()
	shape := with(in[0].Shape)
	for _, a := range in[1:] {
		shape[axis] = shape[axis].Add(a.Shape[axis])
	}
	out := e.temporary(in[0].Type, shape...)
	at := ir.Const(0)
	e.together(func() {
		for _, a := range in {
			part := out
			part.Shape = a.Shape
			part.Offset = times(at, out.Strides[axis]).Scale(out.Type.Size())
			e.copy(copyBoth, a, part, a.Shape, a.Strides, part.Strides)
			at = at.Add(a.Shape[axis])
		}
	})
	return out
}
