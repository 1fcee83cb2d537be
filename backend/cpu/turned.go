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
	// narrow, if set, is the type of x, the norm's weights and the results instead of f32: products are rounded to
	// it before they are rotated.
	narrow *narrow
	// cache, if set, is the type of the results for keys and values.
	cache *narrow
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

func turnedKernel(w weights, t, cache *narrow, name string) *Kernel {
	p := turned{w, 3 * w.slots(), t, cache}
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
	room := (hi-lo)*block + 2*qmvRows
	scratch := w.Scratch(size + 2*k + 2*room)
	x, norm, dots, turnedTo := scratch[size:][:k], scratch[size+k:][:k], scratch[size+2*k:][:room], scratch[size+2*k+room:]
	scratch = scratch[:size]
	if t := p.narrow; t == nil {
		normalizeTo(x, c.F32(p.x)[:k], c.F32(p.x+turnedNorm), c.Float(p.x+turnedEps))
	} else {
		t.from(x, c.U16(p.x)[:k])
		t.from(norm, c.U16(p.x + turnedNorm)[:k])
		t.normalize(x, norm, c.Float(p.x+turnedEps))
		t.round(x)
	}
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
		dot := dots[from-first : to-first]
		if p.narrow != nil {
			p.narrow.round(dot)
		}
		if i == 2 {
			p.put(c, i, from, dot)
			continue
		}
		for at := from; at < to; {
			h, e := at/dims, at%dims // the head, and the first element of it
			m := min(dims-e, to-at)
			turn.rotate(turnedTo, 1, dot[at-from:], 1, cos[e/2:(e+m)/2], sin[e/2:(e+m)/2])
			p.put(c, i, h*c.Long(p.x+turnedStride+i, 0)+e, turnedTo[:m])
			at += m
		}
	}
}

// put stores elements of result i, from element `at` on.
func (p turned) put(c *Call, i, at int, x []float32) {
	t := p.narrow
	if i > 0 {
		t = p.cache
	}
	if t != nil {
		t.to(c.U16(p.x + turnedOut + i)[at:at+len(x)], x)
		return
	}
	out := c.F32(p.x + turnedOut + i)[at : at+len(x)]
	copy(out, x)
	canonical(out)
}
