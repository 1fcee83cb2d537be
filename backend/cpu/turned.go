package cpu

// turned is queries, keys and values of one position: three products of a normalised vector, the
// first two turned by rope. It makes the same calls on the same blocks of rows as the kernels that
// it replaces.
//
// Arguments: the matrices of queries, keys and values, f32 x [K] and weights of the norm [K], the
// three results, eps f32, K, the heads of queries and of keys, elements of a head and N of the values, i32,
// the strides of a head of queries and of keys, i64, the position i32, scale and base f32. The
// function constant traditional says which elements are turned together. A unit is a head, or as many
// rows of the values.
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
		Units: func(c *Call) int {
			return c.Int(p.x+turnedHeads) + c.Int(p.x+turnedHeads+1) + ceilDiv(c.Int(p.x+turnedValues), c.Int(p.x+turnedDims))
		},
		Run: p.run,
		Cost: func(c *Call) float64 {
			return 20 + float64(c.Int(p.x+turnedDims)*c.Int(p.x+turnedK))*p.cost(false)
		},
	}
}

func (p turned) run(c *Call, w *Worker, lo, hi int) {
	k, half := c.Int(p.x+turnedK), c.Int(p.x+turnedDims)/2
	// A head need not begin at a block of rows, so blocks may reach out of it on either side.
	size, dims := p.scratch(k, false), 2*half
	scratch := w.Scratch(size + k + dims + 2*qmvRows)
	x, dots := scratch[size:][:k], scratch[size+k:]
	scratch = scratch[:size]
	normalizeTo(x, c.F32(p.x)[:k], c.F32(p.x+turnedNorm), c.Float(p.x+turnedEps))
	p.prepare(x, scratch)
	// rows returns rows [from, to) of the product with matrix i, which has n.
	rows := func(i, from, to, n int) []float32 {
		first, end := from/qmvRows*qmvRows, min(ceilDiv(to, qmvRows)*qmvRows, n)
		p.matVec(c, i*p.slots(), first, end, dots[:end-first], x, scratch)
		return dots[from-first : to-first]
	}
	cos, sin := w.angles.of(c.Float(p.x+turnedScale), c.Float(p.x+turnedBase), half, c.Int(p.x+turnedOffset), 1)
	turn := pairs{step: 1, gap: half}
	if c.Flag(ropeTraditional) {
		turn = pairs{step: 2, gap: 1}
	}
	for u := lo; u < hi; u++ {
		i, h := 0, u
		for ; i < 2 && h >= c.Int(p.x+turnedHeads+i); i++ {
			h -= c.Int(p.x + turnedHeads + i)
		}
		out := c.F32(p.x + turnedOut + i)
		if i == 2 {
			n := c.Int(p.x + turnedValues)
			from, to := h*dims, min((h+1)*dims, n)
			copy(out[from:to], rows(i, from, to, n))
			canonical(out[from:to])
			continue
		}
		dot := rows(i, h*dims, (h+1)*dims, dims*c.Int(p.x+turnedHeads+i))
		canonical(dot)
		turn.rotate(out[h*c.Long(p.x+turnedStride+i, 0):], 1, dot, 1, cos, sin)
	}
}
