package cpu

import (
	"encoding/binary"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// strided is how operands of an elementwise kernel of two to four dimensions are walked: the first three dimensions are those
// that are outside, if there are so many.
//
// Arguments: the operands from 0 on, each under strides in elements, i64, outermost first, and behind them the result,
// contiguous. Behind that stand the strides of the operands, or of four dimensions the dimensions, i32[4], and then the
// strides; the number of dimensions stands last. The threads are the dimensions, innermost first, or of four half of the
// last, the third, and the first two. A unit is 1024 elements of the result.
type strided struct {
	dims, operands int
}

func (s strided) shape(c *Call) (n [4]int) {
	if s.dims < 4 {
		return [4]int{1, c.Threads[2], c.Threads[1], c.Threads[0]}
	}
	for i := range n {
		n[i] = int(int32(binary.LittleEndian.Uint32(c.Constant[s.operands+1][4*i:])))
	}
	return n
}

func (s strided) units(c *Call) int {
	n := s.shape(c)
	return chunks(n[0] * n[1] * n[2] * n[3])
}

// each calls f for each part of a row of the result that lies in chunks [lo, hi): n elements of it from p on. Operand i begins
// at at[i], and its elements are step[i] apart.
func (s strided) each(c *Call, lo, hi int, f func(p, n int, at, step [3]int)) {
	n, first := s.shape(c), s.operands+1
	if s.dims == 4 {
		first++
	}
	var strides [3][4]int
	for i := range s.operands {
		for d := range s.dims {
			strides[i][4-s.dims+d] = c.Long(first+i, d)
		}
	}
	end := min(hi*chunk, n[0]*n[1]*n[2]*n[3])
	for p := lo * chunk; p < end; {
		place := [4]int{p / (n[1] * n[2] * n[3]), p / (n[2] * n[3]) % n[1], p / n[3] % n[2], p % n[3]}
		count := min(n[3]-place[3], end-p, chunk)
		var at, step [3]int
		for i := range s.operands {
			for d, x := range place {
				at[i] += x * strides[i][d]
			}
			step[i] = strides[i][3]
		}
		f(p, count, at, step)
		p += count
	}
}

// gather widens elements of device argument slot, from place at on, step apart.
func (t floatType) gather(c *Call, dst []float32, slot, at, step int) {
	if t.narrow != nil {
		t.narrow.gather(dst, c.U16(slot)[at:], step)
		return
	}
	x := c.F32(slot)
	for i := range dst {
		dst[i] = x[at+i*step]
	}
}

func init() {
	names := []string{"float32", "float16", "bfloat16"}
	for i, t := range floatTypes() {
		for form, dims := range map[string]int{"g2_": 2, "g3_": 3, "gn2_": 4} {
			for word, op := range map[string]func(dst, a, b []float32){"Add": simd.AddTo, "Multiply": simd.MulTo} {
				if dims > 2 {
					Register(stridedBinary(form+word+names[i], dims, t, op))
				}
			}
			Register(stridedSelect(form+"Select"+names[i], dims, t))
		}
	}
	s := strided{2, 2}
	Register(&Kernel{
		Name: "g2_GreaterEqualint32", Units: s.units,
		Run: func(c *Call, _ *Worker, lo, hi int) {
			a, b, out := c.I32(0), c.I32(1), c.Bytes(2)
			s.each(c, lo, hi, func(p, n int, at, step [3]int) {
				for i := range n {
					out[p+i] = 0
					if a[at[0]+i*step[0]] >= b[at[1]+i*step[1]] {
						out[p+i] = 1
					}
				}
			})
		},
		Cost: func(c *Call) float64 { return 20 + float64(min(chunk, c.Threads[0]*c.Threads[1])) },
	})
}

// stridedBinary is an operation of two operands; the result may be one of them.
func stridedBinary(name string, dims int, t floatType, op func(dst, a, b []float32)) *Kernel {
	s := strided{dims, 2}
	return &Kernel{
		Name: name, Units: s.units,
		Run: func(c *Call, w *Worker, lo, hi int) {
			buf := w.Scratch(2 * chunk)
			s.each(c, lo, hi, func(p, n int, at, step [3]int) {
				a, b := buf[:n], buf[chunk:chunk+n]
				t.gather(c, a, 0, at[0], step[0])
				t.gather(c, b, 1, at[1], step[1])
				op(a, a, b)
				t.store(c, 2, p, a)
			})
		},
		Cost: func(*Call) float64 { return 20 + chunk },
	}
}

// stridedSelect takes elements of argument 1 where those of 0, which are boolean, are true, and of 2 elsewhere. The result
// may be either.
func stridedSelect(name string, dims int, t floatType) *Kernel {
	s := strided{dims, 3}
	return &Kernel{
		Name: name, Units: s.units,
		Run: func(c *Call, w *Worker, lo, hi int) {
			condition, buf := c.Bytes(0), w.Scratch(2*chunk)
			s.each(c, lo, hi, func(p, n int, at, step [3]int) {
				a, b := buf[:n], buf[chunk:chunk+n]
				t.gather(c, a, 1, at[1], step[1])
				t.gather(c, b, 2, at[2], step[2])
				for i := range n {
					if condition[at[0]+i*step[0]] == 0 {
						a[i] = b[i]
					}
				}
				t.store(c, 3, p, a)
			})
		},
		Cost: func(*Call) float64 { return 20 + 2*chunk },
	}
}

// copyFour copies four dimensions, bit by bit. Arguments: 0 src, under the strides 3, i64[4]; 1 dst, contiguous; 2 the
// dimensions, i32[4]; 5 their number.
func copyFour[W uint16 | uint32](name string) *Kernel {
	shape := func(c *Call) (n [4]int) { return strided{dims: 4, operands: 1}.shape(c) }
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { n := shape(c); return n[0] * n[1] * n[2] },
		Run: func(c *Call, _ *Worker, lo, hi int) {
			n, src, dst := shape(c), cast[W](c.Device[0]), cast[W](c.Device[1])
			for row := lo; row < hi; row++ {
				from := row/(n[1]*n[2])*c.Long(3, 0) + row/n[2]%n[1]*c.Long(3, 1) + row%n[2]*c.Long(3, 2)
				copyRun(dst, row*n[3], 1, src, from, c.Long(3, 3), n[3])
			}
		},
		Cost: func(c *Call) float64 { return 20 + math.Max(1, float64(shape(c)[3])) },
	}
}
