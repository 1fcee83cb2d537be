package cpu

// Function constants of the rope kernels.
const (
	ropeForward     = 1
	ropeTraditional = 2
)

func init() {
	Register(ropes("float32", nil)...)
	for _, t := range narrows {
		Register(ropes(t.String(), &t)...)
	}
}

// ropes are the rope kernels of a type, which is t if it is not f32.
func ropes(word string, t *narrow) []*Kernel {
	return []*Kernel{
		{
			Name:  "rope_single_" + word,
			Units: func(c *Call) int { return c.Threads[1] },
			Run:   func(c *Call, w *Worker, lo, hi int) { ropeSingle(c, w, t, lo, hi) },
			Cost:  func(c *Call) float64 { return 10 + 2*float64(c.Threads[0]) },
		},
		{
			Name:  "rope_" + word,
			Units: func(c *Call) int { return ropeBatches(c) * c.Threads[1] },
			Run:   func(c *Call, w *Worker, lo, hi int) { rope(c, w, t, lo, hi) },
			Cost:  func(c *Call) float64 { return float64(c.Int(7)) * (10 + 2*float64(c.Threads[0])) },
		},
		{
			Name:  "rope_single_x2_" + word,
			Units: func(c *Call) int { return c.Int(11) + c.Int(12) },
			Run:   func(c *Call, w *Worker, lo, hi int) { ropeSingle2(c, w, t, lo, hi) },
			Cost:  func(c *Call) float64 { return 10 + 2*float64(c.Threads[0]) },
		},
		{
			Name:  "rope_x2_" + word,
			Units: func(c *Call) int { return c.Threads[1] },
			Run:   func(c *Call, w *Worker, lo, hi int) { rope2(c, w, t, lo, hi) },
			Cost:  func(c *Call) float64 { return float64(c.Int(11)+c.Int(12)) * (10 + 2*float64(c.Threads[0])) },
		},
	}
}

// ropeSingle rotates one position of every head; the pairs and angles are
// those of rope.
//
// Arguments: 0 in and 1 out f32[heads, dims : stride, 1], 2 offset i32, 3 scale
// f32, 4 stride i64, 10 base f32. The threads are (dims/2, heads, 1). A unit is
// a head. out may be in.
func ropeSingle(c *Call, w *Worker, t *narrow, lo, hi int) {
	half, stride := c.Threads[0], c.Long(4, 0)
	cos, sin := w.angles.of(c.Float(3), c.Float(10), half, c.Int(2), 1)
	p := pairsOf(c, w, half, t)
	for h := lo; h < hi; h++ {
		p.turn(c, 1, h*stride, 1, 0, h*stride, 1, cos, sin)
	}
}

// ropeSingle2 is ropeSingle of queries and keys.
//
// Arguments: 0 q f32[q_heads, dims : 6, 1], 1 k f32[k_heads, dims : 7, 1], 2
// and 3 their results under the strides 8 and 9, all i64; 4 offset i32, 5 scale
// f32, 10 base f32, 11 q_heads and 12 k_heads i32. The threads are (dims/2,
// q_heads + k_heads, 1). A unit is a head. Each result may be its operand.
func ropeSingle2(c *Call, w *Worker, t *narrow, lo, hi int) {
	half, queries := c.Threads[0], c.Int(11)
	cos, sin := w.angles.of(c.Float(5), c.Float(10), half, c.Int(4), 1)
	p := pairsOf(c, w, half, t)
	for u := lo; u < hi; u++ {
		i, h := 0, u // 0 for queries or 1 for keys, and the number of the head among them
		if u >= queries {
			i, h = 1, u-queries
		}
		p.turn(c, 2+i, h*c.Long(8+i, 0), 1, i, h*c.Long(6+i, 0), 1, cos, sin)
	}
}

// rope2 is rope of queries and keys.
//
// Arguments: 0 q f32[q_heads, T, D] and 1 k f32[k_heads, T, D] under the
// strides 6 and 7, 2 and 3 their results under the strides 8 and 9 (i64[3]:
// head, position, element); 4 offset, a device i32[1], 5 scale f32, 10 base f32,
// 11 q_heads and 12 k_heads i32. The threads are (dims/2, T, ceil(q_heads/4) +
// ceil(k_heads/4)). A unit is a position. Each result may be its operand.
func rope2(c *Call, w *Worker, t *narrow, lo, hi int) {
	half := c.Threads[0]
	cos, sin := w.angles.of(c.Float(5), c.Float(10), half, int(c.I32(4)[0]), c.Threads[1])
	p := pairsOf(c, w, half, t)
	for t := lo; t < hi; t++ {
		a := t * half
		for i := range 2 {
			is, it, ie := c.Long(6+i, 0), c.Long(6+i, 1), c.Long(6+i, 2)
			os, ot, oe := c.Long(8+i, 0), c.Long(8+i, 1), c.Long(8+i, 2)
			for h := range c.Int(11 + i) {
				p.turn(c, 2+i, h*os+t*ot, oe, i, h*is+t*it, ie, cos[a:a+half], sin[a:a+half])
			}
		}
	}
}

// rope rotates the pairs of each head's vector by angles that grow with the
// position (rotary position embedding): with half = dims/2, and for the pair i
// of position t,
//
//	theta = (scale*f32(t+offset)) * exp2(-(f32(i)/f32(half))*base)
//	forward:  a' = a*cos(theta) - b*sin(theta),  b' = a*sin(theta) + b*cos(theta)
//	backward: the inverse rotation
//
// where base is the logarithm to base 2 of the model's base. The pair is
// (x[2i], x[2i+1]) if the function constant traditional is set, else
// (x[i], x[half+i]).
//
// Arguments: 0 in f32[B, H, T, D] and 1 out under the strides 4 and 5 (i64[3]:
// head, position, element), batches behind one another; if the function constant
// hs_transpose is set a batch of in is T positions, else H heads; 2 offset, a
// device i32[B] under the stride 6, 3 scale f32, 7 H i32, 10 base f32. The threads
// are (dims/2, T, B*ceil(H/4)). A unit is a position. out may be in.
func rope(c *Call, w *Worker, t *narrow, lo, hi int) {
	half, length := c.Threads[0], c.Threads[1]
	p := pairsOf(c, w, half, t)
	for u := lo; u < hi; {
		// The angles of all positions are asked for, not only those of lo to hi: in the next
		// call this worker may have other positions.
		b := u / length
		cos, sin := w.angles.of(c.Float(3), c.Float(10), half, ropeOffset(c, b), length)
		for ; u < hi && u/length == b; u++ {
			a := u % length * half
			p.turnHeads(c, u, cos[a:a+half], sin[a:a+half])
		}
	}
}

// pairs says which elements of a vector are rotated together: i*step and
// i*step+gap.
type pairs struct {
	step, gap int
	backward  bool
	// narrow, if set, is the type of the vectors instead of f32, and row has room for one, widened.
	narrow *narrow
	row    []float32
}

func pairsOf(c *Call, w *Worker, half int, t *narrow) pairs {
	if t == nil {
		return pairsFor(c, half, nil, nil)
	}
	return pairsFor(c, half, t, w.Scratch(2*half))
}

// pairsFor is pairsOf with room for a row.
func pairsFor(c *Call, half int, t *narrow, row []float32) pairs {
	p := pairs{step: 1, gap: half, backward: !c.Flag(ropeForward), narrow: t, row: row}
	if c.Flag(ropeTraditional) {
		p.step, p.gap = 2, 1
	}
	return p
}

// turn rotates the pairs of a vector of argument `in`, from element `from` on, into argument `out`, from element `to`
// on. The elements of a vector are ie and oe apart.
func (p pairs) turn(c *Call, out, to, oe, in, from, ie int, cos, sin []float32) {
	if p.narrow == nil {
		p.rotate(c.F32(out)[to:], oe, c.F32(in)[from:], ie, cos, sin)
		return
	}
	p.narrow.gather(p.row, c.U16(in)[from:], ie)
	p.rotate(p.row, 1, p.row, 1, cos, sin)
	p.narrow.scatter(c.U16(out)[to:], oe, p.row)
}

// rotate rotates the len(cos) pairs of in, whose elements are ie apart, into
// out. Every product is rounded before the sum, on every architecture.
func (p pairs) rotate(out []float32, oe int, in []float32, ie int, cos, sin []float32) {
	sin = sin[:len(cos)]
	for i, c := range cos {
		s := sin[i]
		if p.backward {
			s = -s
		}
		a, b := in[i*p.step*ie], in[(i*p.step+p.gap)*ie]
		out[i*p.step*oe] = stored(float32(a*c) - float32(b*s))
		out[(i*p.step+p.gap)*oe] = stored(float32(a*s) + float32(b*c))
	}
}

// angles remembers cosines and sines of the last positions that a worker was
// asked for: the heads of a dispatch and the layers of a model ask for the same
// ones again.
type angles struct {
	scale, base float32
	half        int
	first, n    int       // positions [first, first+n)
	cos, sin    []float32 // [n, half]
}

// of returns the cosines and sines [n, half] of the positions from first on.
func (a *angles) of(scale, base float32, half, first, n int) (cos, sin []float32) {
	if scale != a.scale || base != a.base || half != a.half || first < a.first || first+n > a.first+a.n {
		a.fill(scale, base, half, first, n)
	}
	lo := (first - a.first) * half
	return a.cos[lo : lo+n*half], a.sin[lo : lo+n*half]
}

func (a *angles) fill(scale, base float32, half, first, n int) {
	if cap(a.cos) < n*half {
		a.cos, a.sin = make([]float32, n*half), make([]float32, n*half)
	}
	*a = angles{scale, base, half, first, n, a.cos[:n*half], a.sin[:n*half]}
	for i := range half {
		d := float32(i) / float32(half)
		freq := powerOf2(-d * base)
		for t := range n {
			// The angle is rounded to f32, as in the GPU's kernel; sine and cosine
			// of that angle are those of generated kernels, to the bit.
			theta := float32(scale*float32(first+t)) * freq
			a.cos[t*half+i], a.sin[t*half+i] = cos32(theta), sin32(theta)
		}
	}
}
