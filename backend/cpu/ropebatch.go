package cpu

const ropeTransposed = 3 // the function constant hs_transpose of rope_…

func init() {
	Register(ropesByTable("float32", nil)...)
	for _, t := range narrows {
		Register(ropesByTable(t.String(), &t)...)
	}
}

// ropeBatches is how many sequences a call of rope_… or rope_freqs_… has.
func ropeBatches(c *Call) int { return c.Threads[2] / max(1, ceilDiv(c.Int(7), 4)) }

// ropeOffset is the first position of a sequence.
func ropeOffset(c *Call, batch int) int { return int(c.I32(2)[batch*c.Long(6, 0)]) }

// turnHeads rotates all heads at a position of a batch: number u of all positions of all batches.
func (p pairs) turnHeads(c *Call, u int, cos, sin []float32) {
	length, heads := c.Threads[1], c.Int(7)
	b, t := u/length, u%length
	is, it, ie := c.Long(4, 0), c.Long(4, 1), c.Long(4, 2)
	os, ot, oe := c.Long(5, 0), c.Long(5, 1), c.Long(5, 2)
	in, out := b*heads*is+t*it, b*heads*os+t*ot
	if c.Flag(ropeTransposed) {
		in = (b*length + t) * it
	}
	for h := range heads {
		p.turn(c, 1, out+h*os, oe, 0, in+h*is, ie, cos, sin)
	}
}

// ropesByTable are the kernels of a type, which is t if it is not f32, that have a table of frequencies: pair i turns
// by theta = (scale*f32(position)) * (1/freqs[i]). The rest is as in ropeSingle and rope, but for the arguments 10 freqs
// f32[dims/2 : 11] and 11 its stride, i64, in place of base.
func ropesByTable(word string, t *narrow) []*Kernel {
	kernel := func(name string, units func(c *Call) int, turn func(c *Call, p pairs, u int, angles func(position int) (cos, sin []float32))) *Kernel {
		return &Kernel{
			Name: name + word, Units: units,
			Run: func(c *Call, w *Worker, lo, hi int) {
				half := c.Threads[0]
				buf := w.Scratch(4 * half)
				p := pairsFor(c, half, t, buf[:2*half])
				cos, sin := buf[2*half:3*half], buf[3*half:]
				last, known := 0, false
				for u := lo; u < hi; u++ {
					turn(c, p, u, func(position int) ([]float32, []float32) {
						if !known || position != last {
							anglesByTable(c, position, cos, sin)
							last, known = position, true
						}
						return cos, sin
					})
				}
			},
			Cost: func(c *Call) float64 { return 100 + 30*float64(c.Threads[0]) },
		}
	}
	return []*Kernel{
		kernel("rope_single_freqs_", func(c *Call) int { return c.Threads[1] },
			func(c *Call, p pairs, u int, angles func(int) (cos, sin []float32)) {
				cos, sin := angles(c.Int(2))
				at := u * c.Long(4, 0)
				p.turn(c, 1, at, 1, 0, at, 1, cos, sin)
			}),
		kernel("rope_freqs_", func(c *Call) int { return ropeBatches(c) * c.Threads[1] },
			func(c *Call, p pairs, u int, angles func(int) (cos, sin []float32)) {
				cos, sin := angles(ropeOffset(c, u/c.Threads[1]) + u%c.Threads[1])
				p.turnHeads(c, u, cos, sin)
			}),
	}
}

// anglesByTable sets the cosines and sines of a position.
func anglesByTable(c *Call, position int, cos, sin []float32) {
	freqs, stride := c.F32(10), c.Long(11, 0)
	at := float32(c.Float(3) * float32(position))
	for i := range cos {
		theta := at * float32(1/freqs[i*stride])
		cos[i], sin[i] = cos32(theta), sin32(theta)
	}
}
