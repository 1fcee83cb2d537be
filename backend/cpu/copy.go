package cpu

func init() {
	for _, name := range []string{"float32float32", "float16float16", "bfloat16bfloat16", "uint32uint32"} {
		copies, four, cost := stridedCopy[uint16], copyFour[uint16], 0.03
		run := func(c *Call, i, j int) { copy(c.U16(1)[i:j], c.U16(0)[i:j]) }
		if name == "float32float32" || name == "uint32uint32" {
			copies, four, cost = stridedCopy[uint32], copyFour[uint32], 0.05
			run = func(c *Call, i, j int) { copy(c.U32(1)[i:j], c.U32(0)[i:j]) }
		}
		Register(
			&Kernel{
				Name:  "v_copy" + name,
				Units: func(c *Call) int { return chunks(c.Threads[0]) },
				Run:   func(c *Call, _ *Worker, lo, hi int) { run(c, lo*chunk, min(hi*chunk, c.Threads[0])) },
				Cost:  func(c *Call) float64 { return 10 + cost*float64(min(chunk, c.Threads[0])) },
			},
			copies("g2_copy"+name, 2, false),
			copies("g3_copy"+name, 3, false),
			four("gn2_copy"+name),
			copies("gg2_copy"+name, 2, true),
			copies("gg3_copy"+name, 3, true),
		)
	}
}

// stridedCopy copies dims-dimensional views, element by element and bit by
// bit: dst[i,j,k] = src[i,j,k].
//
// Arguments: 0 src, of elements as wide as W, under the strides 3 (i64[dims], in
// elements, outermost first), 1 dst, contiguous or, with scatter, under the strides 4. The
// threads are the dimensions, innermost first. Elements of dst must not
// overlap. A unit is 1024 elements in the order of the threads.
func stridedCopy[W uint16 | uint32](name string, dims int, scatter bool) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return chunks(c.Threads[0] * c.Threads[1] * c.Threads[2]) },
		Run: func(c *Call, _ *Worker, lo, hi int) {
			n := [3]int{c.Threads[2], c.Threads[1], c.Threads[0]}
			d := [3]int{n[1] * n[2], n[2], 1}
			var s [3]int // a third dimension that is absent has one element
			for i := range dims {
				s[3-dims+i] = c.Long(3, i)
				if scatter {
					d[3-dims+i] = c.Long(4, i)
				}
			}
			src, dst := cast[W](c.Device[0]), cast[W](c.Device[1])
			end := min(hi*chunk, n[0]*n[1]*n[2])
			for p := lo * chunk; p < end; {
				i, j, k := p/(n[1]*n[2]), p/n[2]%n[1], p%n[2]
				m := min(n[2]-k, end-p)
				copyRun(dst, i*d[0]+j*d[1]+k*d[2], d[2], src, i*s[0]+j*s[1]+k*s[2], s[2], m)
				p += m
			}
		},
		Cost: func(c *Call) float64 {
			n := min(chunk, c.Threads[0]*c.Threads[1]*c.Threads[2])
			if c.Long(3, dims-1) == 1 && (!scatter || c.Long(4, dims-1) == 1) {
				return 20 + 0.05*float64(n) + 10*float64(n)/float64(c.Threads[0])
			}
			return 20 + float64(n)
		},
	}
}

// copyRun copies n elements from src[so], ss apart, to dst[do], ds apart.
func copyRun[W uint16 | uint32](dst []W, do, ds int, src []W, so, ss, n int) {
	if ds == 1 && ss == 1 {
		copy(dst[do:do+n], src[so:so+n])
		return
	}
	for range n {
		dst[do] = src[so]
		do += ds
		so += ss
	}
}
