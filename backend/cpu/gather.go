package cpu

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	for _, a := range affines {
		if a.isPacked() || a.group > 64 {
			continue // the library has none
		}
		for _, fast := range []string{"", "_fast"} {
			Register(gatherQMV(a, fmt.Sprintf("affine_gather_qmv%s_float_gs_%d_b_%d", fast, a.group, a.bits)))
		}
		Register(gatherRows(fmt.Sprintf("gather_qmv_float_gs_%d_b_%d", a.group, a.bits), a))
	}
	Register(gatherRows("gather_gemv_float32", dots{dense{}}), gatherRows("gather_gemv_float16_float32", dots{dense{half: true}}))
}

// gatherQMV is the product of vectors with matrices that indices pick from a
// stack: for number i of the batch, vector m of lhs[i] and matrix rhs[i],
//
//	y[i,m,n] = Σ_k x[lhs[i],m,k] * w[rhs[i],n,k]
//
// An index outside its stack makes NaN and reads nothing.
//
// Arguments, as MLX binds them: 0 w, 1 scales, 2 biases; 3 x f32[X, M, K]; 4 lhs
// and 5 rhs u32[batch]; 6 y f32[batch, M, N]; 7 K, 8 N i32; 9, 10 and 11 the
// number of batch dimensions of x (1), its shape (X, M) and strides; 12–16 those
// of the matrices (1): shape (E), the strides of w in words of 32 bits, of scales
// and of biases; 17–20 those of the batch: shape, strides of lhs, of rhs. Shapes
// are i32, strides i64. A unit is 8 columns of a result.
func gatherQMV(a affine, name string) *Kernel {
	return &Kernel{
		Name: name,
		Units: func(c *Call) int {
			return c.Groups[0] * c.Groups[2] * ceilDiv(c.Int(8), qmvRows)
		},
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, vectors := c.Int(7), c.Int(8), c.Groups[0]
			blocks := ceilDiv(n, qmvRows)
			x, y := c.F32(3), c.F32(6)
			scratch := worker.Scratch(a.scratch(k, false))
			sums, room := scratch[:k/a.group], scratch[k/a.group:]
			for u := lo; u < hi; {
				of, j := u/blocks, u%blocks*qmvRows // the number of the result, and its first column
				more := min(hi-u, blocks-u%blocks)
				end := min(j+more*qmvRows, n)
				u += more
				out := y[of*n+j : of*n+end]
				batch, m := of/vectors, of%vectors
				from := int(c.U32(4)[batchPlace(c, batch, 19)])
				which := int(c.U32(5)[batchPlace(c, batch, 20)])
				if from >= element32(c, 10, 0) || which >= element32(c, 13, 0) {
					fill(out, nan32)
					continue
				}
				at := from*c.Long(11, 0) + m*k
				xv := x[at : at+k]
				a.prepare(xv, sums)
				b, g := k/8*a.bits, k/a.group
				w := c.Bytes(0)[4*which*c.Long(14, 0):][j*b : end*b]
				scales := c.F32(1)[which*c.Long(15, 0):][j*g : end*g]
				biases := c.F32(2)[which*c.Long(16, 0):][j*g : end*g]
				a.multiply(out, xv, sums, affineRows{w, scales, biases}, room)
				canonical(out)
			}
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

// gatherRows is the product of rows with matrices that ids pick from a stack:
//
//	y[r,s,n] = Σ_k w[ids[r,s],n,k] * x[r,s,k]
//
// An id outside the stack makes NaN and reads nothing.
//
// Arguments: the stack [E, N, K], as the weights have it; then x f32[rows, slots,
// K] under the strides of the last argument, ids u32[rows, slots], y f32[rows,
// slots, N], K, N, E i32, strides i64[2] (row, slot; 0 shares a row). The
// threadgroups are (ceil(N/8), slots, rows). A unit is 8 columns of a result.
func gatherRows(name string, mat weights) *Kernel {
	x, ids, y := mat.slots(), mat.slots()+1, mat.slots()+2
	k, n, e, strides := y+1, y+2, y+3, y+4
	return &Kernel{
		Name: name,
		Units: func(c *Call) int {
			return ceilDiv(c.Int(n), qmvRows) * c.Groups[1] * c.Groups[2]
		},
		Run: func(c *Call, worker *Worker, lo, hi int) {
			depth, width, slots := c.Int(k), c.Int(n), c.Groups[1]
			blocks := ceilDiv(width, qmvRows)
			scratch := worker.Scratch(mat.scratch(depth, false))
			for u := lo; u < hi; {
				of, j := u/blocks, u%blocks*qmvRows
				more := min(hi-u, blocks-u%blocks)
				end := min(j+more*qmvRows, width)
				u += more
				out := c.F32(y)[of*width+j : of*width+end]
				id := int(c.U32(ids)[of])
				if id >= c.Int(e) {
					fill(out, nan32)
					continue
				}
				at := of/slots*c.Long(strides, 0) + of%slots*c.Long(strides, 1)
				row := c.F32(x)[at : at+depth]
				mat.prepare(row, scratch)
				mat.matVec(c, 0, id*width+j, id*width+end, out, row, scratch)
				canonical(out)
			}
		},
		Cost: func(c *Call) float64 { return 20 + float64(qmvRows*c.Int(k))*mat.cost(false) },
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
