package routes

import "math"

// collapse joins neighbouring dimensions that lie in all of the layouts as one dimension would, and
// leaves out those of one element. Of dimensions that all have one element one is kept, with stride 0.
func (e *Encoder) collapse(shape []Size, layouts ...[]Size) ([]Size, [][]Size) {
	var out []Size
	strides := make([][]Size, len(layouts))
	open := false // the last dimension of out can be continued
	var size Size // of what is joined, were everything joined
	for i, d := range shape {
		if i == 0 {
			size = d
		} else {
			size = times(size, d)
			for _, s := range layouts {
				if !times(s[i], d).Equal(s[i-1]) || e.at(size) > math.MaxInt32 {
					open, size = false, d
					break
				}
			}
		}
		if isOne(d) {
			continue
		}
		if !open {
			out = append(out, d)
			for j, s := range layouts {
				strides[j] = append(strides[j], s[i])
			}
			open = true
			continue
		}
		last := len(out) - 1
		out[last] = times(out[last], d)
		for j, s := range layouts {
			strides[j][last] = s[i]
		}
	}
	if len(shape) > 0 && len(out) == 0 {
		out = sizes(1)
		for j := range strides {
			strides[j] = sizes(0)
		}
	}
	return out, strides
}

// collapseOne is collapse for one layout, as reductions have it: the first dimension is kept whatever its size.
func (e *Encoder) collapseOne(shape, strides []Size) (outShape, outStrides []Size) {
	for i, d := range shape {
		last := len(outShape) - 1
		switch {
		case i == 0:
			outShape, outStrides = append(outShape, d), append(outStrides, strides[0])
		case isOne(d):
		case !times(strides[i], d).Equal(outStrides[last]) || e.at(times(outShape[last], d)) > math.MaxInt32:
			outShape, outStrides = append(outShape, d), append(outStrides, strides[i])
		default:
			outShape[last], outStrides[last] = times(outShape[last], d), strides[i]
		}
	}
	return outShape, outStrides
}

// block returns the threadgroup for a grid of threads: powers of two of at most 1024 together, which
// grow in turn while the grid has room.
func (e *Encoder) block(x, y, z Size) (int64, int64, int64) {
	dims := [3]int64{e.at(x), e.at(y), e.at(z)}
	var pow [3]int
	for sum := 0; sum < 10; {
		before := sum
		for i, d := range dims {
			if sum < 10 && d >= 1<<(pow[i]+1) {
				pow[i]++
				sum++
			}
		}
		if sum == before {
			break
		}
	}
	return 1 << pow[0], 1 << pow[1], 1 << pow[2]
}

// flat returns the two dimensions of a grid for all elements of a layout but those that stride 0
// repeats: one dimension as long as it fits in 32 bits. Each thread takes as many elements as each says.
func (e *Encoder) flat(shape, strides []Size, each int64) (Size, Size) {
	x, y := sizes(1)[0], sizes(1)[0]
	for i, d := range shape {
		if isZero(strides[i]) {
			continue
		}
		if each > 1 && d.IsConst() && each%d.Const == 0 {
			each /= d.Const
			continue
		}
		if e.at(times(x, d)) < math.MaxUint32 {
			x = times(x, d)
		} else {
			y = times(y, d)
		}
		if each > 1 {
			if x.IsConst() && x.Const%each == 0 {
				x.Const, each = x.Const/each, 1
			} else if y.IsConst() && y.Const%each == 0 {
				y.Const, each = y.Const/each, 1
			}
		}
	}
	if e.at(y) > e.at(x) {
		x, y = y, x
	}
	if each > 1 {
		x = sizes(roundUp(e.fixed(x), each))[0]
	}
	return x, y
}
