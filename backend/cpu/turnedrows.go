package cpu

// turnedRows is the fused kernel of the products of many rows' queries, keys and values, and rope on the queries and
// keys. It makes the same calls on the same blocks of columns as the kernels that it replaces, so that the bits are the
// same.
//
// Arguments: the matrices of queries, keys and values; x [M, K]; the three results; the first position, a device i32[1];
// K, the numbers of query and key heads, elements of a head, N of the values, and M, i32; the strides of queries and of
// keys, i64[2] each (head, position); rope's scale and base f32. The function constant traditional says which elements
// are rotated as a pair. A unit is up to qmmRows rows of so many columns of a matrix that no pair and no block of columns
// is cut.
type turnedRows struct {
	linear
	// cache, if set, is the type of the results for keys and values instead of f32.
	cache *narrow
}

// Slots of arguments behind that of x.
const (
	rowsOut = 1 + iota // queries, keys, values
	_
	_
	rowsOffset
	rowsK
	rowsHeads // of queries, of keys
	_
	rowsDims
	rowsValues
	rowsM
	rowsStrides // of queries, of keys
	_
	rowsScale
	rowsBase
)

// turnedRowsKernel returns the kernel for vectors of type t, if it is set, and of a cache's type.
func turnedRowsKernel(w weights, t, cache *narrow, name string) *Kernel {
	x := 3 * w.slots()
	p := &turnedRows{linear{weights: w, outs: 3, x: x, k: x + rowsK, m: x + rowsM, narrow: t}, cache}
	if t != nil {
		p.form = alwaysMany
	}
	return &Kernel{
		Name: name,
		Units: func(c *Call) (n int) {
			for i := range 3 {
				n += p.units(c, i)
			}
			return n
		},
		Run: p.run,
		Cost: func(c *Call) float64 {
			k, m := c.Int(p.k), p.vectors(c)
			if p.isFew(c) {
				return 10 + float64(m*p.block(c, 0)*k)*p.cost(false)
			}
			return float64(p.block(c, 0)*k) * (p.cost(true) + 0.0125*float64(min(m, qmmRows)))
		},
	}
}

// columns is the number of rows of matrix i.
func (p *turnedRows) columns(c *Call, i int) int {
	if i == 2 {
		return c.Int(p.x + rowsValues)
	}
	return c.Int(p.x+rowsDims) * c.Int(p.x+rowsHeads+i)
}

// block is the number of columns of a unit of matrix i: whole heads, if elements are rotated that are half a head apart.
func (p *turnedRows) block(c *Call, i int) int {
	n := qmmCols
	if p.isFew(c) {
		n = qmvRows
	}
	if i == 2 || c.Flag(ropeTraditional) {
		return n
	}
	dims := c.Int(p.x + rowsDims)
	a, b := n, dims
	for b != 0 {
		a, b = b, a%b
	}
	return n / a * dims
}

func (p *turnedRows) units(c *Call, i int) int {
	return ceilDiv(p.columns(c, i), p.block(c, i)) * ceilDiv(p.vectors(c), qmmRows)
}

func (p *turnedRows) run(c *Call, w *Worker, lo, hi int) {
	k, m, dims := c.Int(p.k), p.vectors(c), c.Int(p.x+rowsDims)
	few, width := p.isFew(c), 0
	for i := range 3 {
		width = max(width, min(p.block(c, i), p.columns(c, i)))
	}
	size, most, wider := p.scratch(k, !few), min(m, qmmRows), 0
	if p.narrow != nil {
		wider = k * most
	}
	scratch := w.Scratch(size + most*width + width + wider)
	tile, turnedTo, wide := scratch[size:][:most*width], scratch[size+most*width:][:width], scratch[size+most*width+width:]
	scratch = scratch[:size]
	cos, sin := w.angles.of(c.Float(p.x+rowsScale), c.Float(p.x+rowsBase), dims/2, int(c.I32(p.x + rowsOffset)[0]), m)
	turn := pairs{step: 1, gap: dims / 2}
	if c.Flag(ropeTraditional) {
		turn = pairs{step: 2, gap: 1}
	}
	var x []float32
	at := -1 // the first row of x
	for i := range 3 {
		n, block := p.columns(c, i), p.block(c, i)
		cols, units := ceilDiv(n, block), p.units(c, i)
		for u := max(lo, 0); u < min(hi, units); u++ {
			v, v1 := u/cols*qmmRows, min((u/cols+1)*qmmRows, m)
			j, j1 := u%cols*block, min((u%cols+1)*block, n)
			if v != at {
				x, at = p.vectorsOf(c, wide, v*k, v1*k), v
			}
			p.products(c, i, j, j1, tile, x, v1-v, k, scratch, few)
			for r := range v1 - v {
				dot := tile[r*(j1-j) : (r+1)*(j1-j)]
				if p.narrow != nil {
					p.narrow.round(dot)
				}
				if i == 2 {
					p.put(c, i, (v+r)*n+j, dot)
					continue
				}
				angles := (v + r) * (dims / 2)
				for from := j; from < j1; {
					h, e := from/dims, from%dims // the head, and the first element of it
					size := min(dims-e, j1-from)
					turn.rotate(turnedTo, 1, dot[from-j:], 1, cos[angles+e/2:angles+(e+size)/2], sin[angles+e/2:angles+(e+size)/2])
					p.put(c, i, h*c.Long(p.x+rowsStrides+i, 0)+(v+r)*c.Long(p.x+rowsStrides+i, 1)+e, turnedTo[:size])
					from += size
				}
			}
		}
		lo, hi = lo-units, hi-units
	}
}

// vectorsOf are elements [lo, hi) of x, which are widened into room if they are of 16 bits.
func (p *turnedRows) vectorsOf(c *Call, room []float32, lo, hi int) []float32 {
	if p.narrow == nil {
		return c.F32(p.x)[lo:hi]
	}
	p.narrow.from(room[:hi-lo], c.U16(p.x)[lo:hi])
	return room[:hi-lo]
}

// products makes the products of m vectors with rows [j, j1) of matrix i, of which each block that another kernel would make by one call
// is made by one.
func (p *turnedRows) products(c *Call, i, j, j1 int, tile, x []float32, m, k int, scratch []float32, few bool) {
	width := j1 - j
	if few {
		for v := range m {
			xv := x[v*k : (v+1)*k]
			p.prepare(xv, scratch)
			p.matVec(c, i*p.slots(), j, j1, tile[v*width:(v+1)*width], xv, scratch)
		}
		return
	}
	for b := j; b < j1; b += qmmCols {
		c.Pause()
		p.matMul(c, i*p.slots(), b, min(b+qmmCols, j1), tile[b-j:(m-1)*width+min(b+qmmCols, j1)-j], width, x, m, k, scratch)
	}
}

// put stores elements of result i, from element `at` on.
func (p *turnedRows) put(c *Call, i, at int, x []float32) {
	slot, t := p.x+rowsOut+i, p.narrow
	if i > 0 {
		t = p.cache
	}
	if t != nil {
		t.to(c.U16(slot)[at:at+len(x)], x)
		return
	}
	out := c.F32(slot)[at : at+len(x)]
	copy(out, x)
	canonical(out)
}
