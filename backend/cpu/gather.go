package cpu

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	for _, a := range affines {
		for _, t := range floatTypes() {
			params := fmt.Sprintf("_%s_gs_%d_b_%d", t.name, a.group, a.bits)
			w := weights(a)
			if t.narrow != nil {
				w = narrowAffine{a, *t.narrow}
			}
			p := gathered{w, t}
			Register(p.affine("affine_gather_qmv"+params, a), p.affine("affine_gather_qmv_fast"+params, a), p.rows("gather_qmv"+params))
		}
	}
	f32 := floatType{}
	Register(gathered{dots{dense{}}, f32}.rows("gather_gemv_float32"), gathered{dots{dense{half: true}}, f32}.rows("gather_gemv_float16_float32"))
	for _, t := range floatTypes() {
		if t.narrow != nil {
			Register(gathered{denseOf(*t.narrow), t}.rows("gather_gemv_" + t.narrow.String()))
		}
	}
}

// gathered is the product of vectors with matrices that indices pick from a stack. Vectors and results are of a type.
// Blocks of 8 columns of a result are a unit.
type gathered struct {
	weights
	floatType
}

// blocks calls f for units [lo, hi) of results of n columns: the number of the result, and its columns [j, end).
func blocks(lo, hi, n int, f func(of, j, end int)) {
	each := ceilDiv(n, qmvRows)
	for u := lo; u < hi; {
		of, j := u/each, u%each*qmvRows
		more := min(hi-u, each-u%each)
		u += more
		f(of, j, min(j+more*qmvRows, n))
	}
}

// affine is the kernel that picks vectors too: for number i of the batch, vector m of lhs[i] and matrix rhs[i],
//
//	y[i,m,n] = Σ_k x[lhs[i],m,k] * w[rhs[i],n,k]
//
// An index outside its stack makes NaN and reads nothing.
//
// Arguments, as MLX binds them: 0 w, 1 scales, 2 biases; 3 x [X, M, K]; 4 lhs
// and 5 rhs u32[batch]; 6 y [batch, M, N]; 7 K, 8 N i32; 9, 10 and 11 the
// number of batch dimensions of x (1), its shape (X, M) and strides; 12–16 those
// of the matrices (1): shape (E), the strides of w in words of 32 bits, of scales
// and of biases; 17–20 those of the batch: shape, strides of lhs, of rhs. Shapes
// are i32, strides i64.
func (p gathered) affine(name string, a affine) *Kernel {
	return &Kernel{
		Name: name,
		Units: func(c *Call) int {
			return c.Groups[0] * c.Groups[2] * ceilDiv(c.Int(8), qmvRows)
		},
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, vectors := c.Int(7), c.Int(8), c.Groups[0]
			size := p.scratch(k, false)
			buf := worker.Scratch(size + k + n)
			scratch, x, y := buf[:size], buf[size:][:k], buf[size+k:]
			blocks(lo, hi, n, func(of, j, end int) {
				out := y[:end-j]
				batch, m := of/vectors, of%vectors
				from := int(c.U32(4)[batchPlace(c, batch, 19)])
				which := int(c.U32(5)[batchPlace(c, batch, 20)])
				if from >= element32(c, 10, 0) || which >= element32(c, 13, 0) {
					fill(out, nan32)
				} else {
					p.load(c, x, 3, from*c.Long(11, 0)+m*k)
					p.prepare(x, scratch)
					p.matVec(worker.matrix(c, 4*which*c.Long(14, 0), p.size()*which*c.Long(15, 0), p.size()*which*c.Long(16, 0)), 0, j, end, out, x, scratch)
				}
				p.store(c, 6, of*n+j, out)
			})
		},
		Cost: func(c *Call) float64 { return 20 + float64(qmvRows*c.Int(7))*a.cost(false) },
	}
}

// batchPlace returns the offset of batch item i under the strides at slot. The number of batch
// dimensions is at slot 17 and their shape at 18.
func batchPlace(c *Call, i, slot int) int {
	at := 0
	for d := c.Int(17) - 1; d >= 0; d-- {
		size := element32(c, 18, d)
		at += i % size * c.Long(slot, d)
		i /= size
	}
	return at
}

// element32 is element i of the i32 constant array at slot.
func element32(c *Call, slot, i int) int {
	return int(int32(binary.LittleEndian.Uint32(c.Constant[slot][4*i:])))
}

// rows is the kernel of all rows of x:
//
//	y[r,s,n] = Σ_k w[ids[r,s],n,k] * x[r,s,k]
//
// An id outside the stack makes NaN and reads nothing.
//
// Arguments: the stack [E, N, K], as the weights have it; then x [rows, slots,
// K] under the strides of the last argument, ids u32[rows, slots], y [rows,
// slots, N], K, N, E i32, strides i64[2] (row, slot; 0 shares a row). The
// threadgroups are (ceil(N/8), slots, rows).
func (p gathered) rows(name string) *Kernel {
	x, ids, y := p.slots(), p.slots()+1, p.slots()+2
	k, n, e, strides := y+1, y+2, y+3, y+4
	return &Kernel{
		Name: name,
		Units: func(c *Call) int {
			return ceilDiv(c.Int(n), qmvRows) * c.Groups[1] * c.Groups[2]
		},
		Run: func(c *Call, worker *Worker, lo, hi int) {
			depth, width, slots := c.Int(k), c.Int(n), c.Groups[1]
			size := p.scratch(depth, false)
			buf := worker.Scratch(size + depth + width)
			scratch, row, results := buf[:size], buf[size:][:depth], buf[size+depth:]
			blocks(lo, hi, width, func(of, j, end int) {
				out := results[:end-j]
				if id := int(c.U32(ids)[of]); id >= c.Int(e) {
					fill(out, nan32)
				} else {
					p.load(c, row, x, of/slots*c.Long(strides, 0)+of%slots*c.Long(strides, 1))
					p.prepare(row, scratch)
					p.matVec(c, 0, id*width+j, id*width+end, out, row, scratch)
				}
				p.store(c, y, of*width+j, out)
			})
		},
		Cost: func(c *Call) float64 { return 20 + float64(qmvRows*c.Int(k))*p.cost(false) },
	}
}

// dots is dense, but adds f32 and f16 products in the same order: that of reduction class gemv_f16.
type dots struct{ dense }

func (d dots) matVec(c *Call, slot, lo, hi int, y, x, scratch []float32) {
	if d.half {
		d.dense.matVec(c, slot, lo, hi, y, x, scratch)
		return
	}
	k := len(x)
	w := c.F32(slot)[lo*k : hi*k]
	for i := range y {
		y[i] = simd.Dot(x, w[i*k:(i+1)*k])
	}
}
