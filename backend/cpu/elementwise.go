package cpu

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	for word, op := range map[string]func(dst, a, b []float32){"Add": simd.AddTo, "Subtract": subtract, "Multiply": simd.MulTo} {
		if word != "Subtract" { // which a generated kernel does
			Register(vv("vv_"+word+"float32", op), g2("g2_"+word+"float32", op))
		}
		for _, t := range narrows {
			Register(vvNarrow(fmt.Sprintf("vv_%s%v", word, t), t, op), g2Narrow(fmt.Sprintf("g2_%s%v", word, t), t, op))
		}
	}
	Register(
		unary("v_Sigmoidfloat32float32", simd.SigmoidTo, 0.35),
		unary("v_Silufloat32float32", simd.SiluTo, 0.35),
	)
	for _, t := range narrows {
		Register(
			unaryNarrow(fmt.Sprintf("v_Sigmoid%v%v", t, t), t, t.sigmoid),
			unaryNarrow(fmt.Sprintf("v_Silu%v%v", t, t), t, t.silu),
		)
	}
}

// chunk is the number of elements of one unit of an elementwise kernel. It is
// a multiple of every vector length, so that an element's place in a vector,
// and so its bits, do not depend on how units are divided.
const chunk = 1024

// chunks is the number of units of n elements.
func chunks(n int) int { return ceilDiv(n, chunk) }

// eachChunk calls f for the elements [i, j) of each of the chunks [lo, hi) of n elements. If f makes several
// passes over a chunk, each finds the results of the one before in the cache.
func eachChunk(n, lo, hi int, f func(i, j int)) {
	for ; lo < hi; lo++ {
		f(lo*chunk, min((lo+1)*chunk, n))
	}
}

// vv is a binary kernel on contiguous vectors: out[i] = a[i] op b[i].
//
// Arguments: 0 a, 1 b, 2 out, all f32[n]; 3 size, unused. n is the number of
// threads. out may be a or b.
func vv(name string, op func(dst, a, b []float32)) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return chunks(c.Threads[0]) },
		Run: func(c *Call, _ *Worker, lo, hi int) {
			a, b, out := c.F32(0), c.F32(1), c.F32(2)
			eachChunk(c.Threads[0], lo, hi, func(i, j int) {
				op(out[i:j], a[i:j], b[i:j])
				canonical(out[i:j])
			})
		},
		Cost: func(c *Call) float64 { return 10 + 0.06*float64(min(chunk, c.Threads[0])) },
	}
}

// vvNarrow is vv with f16[n] or bf16[n]. Adding, subtracting or multiplying in f32 and rounding to the type equals rounding the
// exact result once, because f32 has more than twice as many significant bits plus two.
func vvNarrow(name string, t narrow, op func(dst, a, b []float32)) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return chunks(c.Threads[0]) },
		Run: func(c *Call, w *Worker, lo, hi int) {
			x, y, out := c.U16(0), c.U16(1), c.U16(2)
			buf := w.Scratch(2 * chunk)
			for end := min(hi*chunk, c.Threads[0]); lo*chunk < end; lo++ {
				i, j := lo*chunk, min((lo+1)*chunk, end)
				a, b := buf[:j-i], buf[chunk:chunk+j-i]
				t.from(a, x[i:j])
				t.from(b, y[i:j])
				op(a, a, b)
				t.to(out[i:j], a)
			}
		},
		Cost: func(c *Call) float64 { return 10 + 0.3*float64(min(chunk, c.Threads[0])) },
	}
}

// g2 is a binary kernel on two-dimensional strided views:
//
//	out[i,j] = a[i,j] op b[i,j]
//
// Arguments: 0 a and 1 b f32[d0, d1] under the strides 3 and 4 (i64[2], in
// elements; 0 broadcasts), 2 out f32[d0, d1], contiguous. The threads are
// (d1, d0, 1).
func g2(name string, op func(dst, a, b []float32)) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return chunks(c.Threads[0] * c.Threads[1]) },
		Run: func(c *Call, w *Worker, lo, hi int) {
			a, b, out := c.F32(0), c.F32(1), c.F32(2)
			a1, b1 := c.Long(3, 1), c.Long(4, 1)
			buf := w.Scratch(2 * chunk)
			eachRun(c, lo, hi, func(p, n, ia, ib int) {
				op(out[p:p+n], run(buf[:n], a, ia, a1), run(buf[chunk:chunk+n], b, ib, b1))
				canonical(out[p : p+n])
			})
		},
		Cost: func(c *Call) float64 { return 20 + 0.3*float64(min(chunk, c.Threads[0]*c.Threads[1])) },
	}
}

// g2Narrow is g2 with f16[d0, d1] or bf16[d0, d1].
func g2Narrow(name string, t narrow, op func(dst, a, b []float32)) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return chunks(c.Threads[0] * c.Threads[1]) },
		Run: func(c *Call, w *Worker, lo, hi int) {
			x, y, out := c.U16(0), c.U16(1), c.U16(2)
			a1, b1 := c.Long(3, 1), c.Long(4, 1)
			buf := w.Scratch(2 * chunk)
			eachRun(c, lo, hi, func(p, n, ia, ib int) {
				a, b := buf[:n], buf[chunk:chunk+n]
				t.gather(a, x[ia:], a1)
				t.gather(b, y[ib:], b1)
				op(a, a, b)
				t.to(out[p:p+n], a)
			})
		},
		Cost: func(c *Call) float64 { return 20 + float64(min(chunk, c.Threads[0]*c.Threads[1])) },
	}
}

// eachRun calls f for each part of a row that lies in chunks [lo, hi) of the result of a g2 kernel: n
// elements of the result from p on, whose operands begin at ia and ib.
func eachRun(c *Call, lo, hi int, f func(p, n, ia, ib int)) {
	a0, a1 := c.Long(3, 0), c.Long(3, 1)
	b0, b1 := c.Long(4, 0), c.Long(4, 1)
	d := c.Threads[0]
	end := min(hi*chunk, d*c.Threads[1])
	for p := lo * chunk; p < end; {
		i, j := p/d, p%d
		n := min(d-j, end-p, chunk)
		f(p, n, i*a0+j*a1, i*b0+j*b1)
		p += n
	}
}

// run returns len(buf) elements of x from offset off on, stride apart. If they are
// neighbours it returns them in place, otherwise it gathers them in buf.
func run(buf, x []float32, off, stride int) []float32 {
	if stride == 1 {
		return x[off : off+len(buf)]
	}
	for i := range buf {
		buf[i] = x[off+i*stride]
	}
	return buf
}

// unary is out[i] = op(in[i]). Arguments: 0 in and 1 out f32[n], 2 size, unused. n is the number of threads; ns the
// time of one element. op computes the kernel's term step by step and rounds each step, so that a generated kernel of
// the same term has the same bits.
func unary(name string, op func(dst, x []float32), ns float64) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return chunks(c.Threads[0]) },
		Run: func(c *Call, _ *Worker, lo, hi int) {
			in, out := c.F32(0), c.F32(1)
			eachChunk(c.Threads[0], lo, hi, func(i, j int) {
				op(out[i:j], in[i:j])
				canonical(out[i:j])
			})
		},
		Cost: func(c *Call) float64 { return 10 + ns*float64(min(chunk, c.Threads[0])) },
	}
}

// unaryNarrow is unary with f16[n] or bf16[n]: op gets a chunk, widened, and its results are rounded to the type.
func unaryNarrow(name string, t narrow, op func(x []float32)) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return chunks(c.Threads[0]) },
		Run: func(c *Call, w *Worker, lo, hi int) {
			in, out, buf := c.U16(0), c.U16(1), w.Scratch(chunk)
			eachChunk(c.Threads[0], lo, hi, func(i, j int) {
				t.from(buf[:j-i], in[i:j])
				op(buf[:j-i])
				t.to(out[i:j], buf[:j-i])
			})
		},
		Cost: func(c *Call) float64 { return 10 + 0.8*float64(min(chunk, c.Threads[0])) },
	}
}

// sigmoid takes the steps of the term of v_Sigmoid, whose intermediates are rounded to bf16, and not to f16.
func (n narrow) sigmoid(x []float32) {
	if n == halfType {
		simd.SigmoidTo(x, x)
		return
	}
	var buf [chunk]float32
	y := buf[:len(x)]
	for i, v := range x {
		y[i] = float32(math.Abs(float64(v)))
	}
	simd.ExpTo(y, y)
	n.round(y)
	for i := range y {
		y[i]++
	}
	n.round(y)
	for i := range y {
		y[i] = 1 / y[i]
	}
	n.round(y)
	for i, v := range x {
		if x[i] = 1 - y[i]; v < 0 {
			x[i] = y[i]
		}
	}
}

// silu multiplies each element with its sigmoid, which is rounded before.
func (n narrow) silu(x []float32) {
	var buf [chunk]float32
	for len(x) > 0 {
		part := x[:min(len(x), chunk)]
		s := buf[:copy(buf[:], part)]
		n.sigmoid(s)
		n.round(s)
		simd.MulTo(part, part, s)
		x = x[len(part):]
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
