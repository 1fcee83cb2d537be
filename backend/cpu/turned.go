package cpu

// turned is the fused kernel of a norm, the products of one position's queries, keys and values, and rope on the
// queries and keys ("turned" means rotated). It makes the same calls on the same blocks of rows as the kernels
// that it replaces, so that the bits are the same.
//
// Arguments: the matrices of queries, keys and values; x f32[K] and the norm's weights [K]; the three
// results; eps f32; K, the numbers of query and key heads, elements of a head, and N of the values, i32; the
// strides of a query head and of a key head, i64; position i32; rope's scale and base f32. The function constant
// traditional says which elements are rotated as a pair. A unit is a block of rows of one matrix or, where pairs
// are not neighbours, as many rows as a head has.
type turned struct {
	weights
	x int // the slot of x; the others follow
}

// Slots of arguments behind that of x.
const (
	turnedNorm = 1 + iota
	turnedOut  // queries, keys, values
	_
	_
	turnedEps
	turnedK
	turnedHeads // of queries, of keys
	_
	turnedDims
	turnedValues
	turnedStride // of queries, of keys
	_
	turnedOffset
	turnedScale
	turnedBase
)

func turnedKernel(w weights, name string) *Kernel {
	p := turned{w, 3 * w.slots()}
	return &Kernel{
		Name: name,
		Units: func(c *Call) (n int) {
			for i := range 3 {
				n += ceilDiv(p.rows(c, i), p.block(c))
			}
			return n
		},
		Run: p.run,
		Cost: func(c *Call) float64 {
			return 20 + float64(p.block(c)*c.Int(p.x+turnedK))*p.cost(false)
		},
	}
}

// rows is the number of rows of matrix i.
func (p turned) rows(c *Call, i int) int {
	if i == 2 {
		return c.Int(p.x + turnedValues)
	}
	return c.Int(p.x+turnedDims) * c.Int(p.x+turnedHeads+i)
}

// block is the number of rows of a unit.
func (p turned) block(c *Call) int {
	if c.Flag(ropeTraditional) {
		return qmvRows
	}
	return c.Int(p.x + turnedDims)
}

func (p turned) run(c *Call, w *Worker, lo, hi int) {
	k, dims, block := c.Int(p.x+turnedK), c.Int(p.x+turnedDims), p.block(c)
	// A head need not begin at a multiple of qmvRows, so the computed rows may extend beyond it on either side.
	size := p.scratch(k, false)
	scratch := w.Scratch(size + k + (hi-lo)*block + 2*qmvRows)
	x, dots := scratch[size:][:k], scratch[size+k:]
	scratch = scratch[:size]
	normalizeTo(x, c.F32(p.x)[:k], c.F32(p.x+turnedNorm), c.Float(p.x+turnedEps))
	p.prepare(x, scratch)
	cos, sin := w.angles.of(c.Float(p.x+turnedScale), c.Float(p.x+turnedBase), dims/2, c.Int(p.x+turnedOffset), 1)
	turn := pairs{step: 1, gap: dims / 2}
	if c.Flag(ropeTraditional) {
		turn = pairs{step: 2, gap: 1}
	}
	for i := range 3 { // the units of the three matrices follow one another
		n := p.rows(c, i)
		units := ceilDiv(n, block)
		from, to := max(lo, 0)*block, min(min(hi, units)*block, n)
		lo, hi = lo-units, hi-units
		if from >= to {
			continue
		}
		first, end := from/qmvRows*qmvRows, min(ceilDiv(to, qmvRows)*qmvRows, n)
		p.matVec(c, i*p.slots(), first, end, dots[:end-first], x, scratch)
		dot, out := dots[from-first:to-first], c.F32(p.x+turnedOut+i)
		if i == 2 {
			copy(out[from:to], dot)
			canonical(out[from:to])
			continue
		}
		for at := from; at < to; {
			h, e := at/dims, at%dims // the head, and the first element of it
			m := min(dims-e, to-at)
			turn.rotate(out[h*c.Long(p.x+turnedStride+i, 0)+e:], 1, dot[at-from:], 1, cos[e/2:(e+m)/2], sin[e/2:(e+m)/2])
			at += m
		}
	}
}
