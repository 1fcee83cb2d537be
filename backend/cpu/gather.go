package cpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/internal/simd"
)

func init() {
	for _, a := range affines {
		for _, fast := range []string{"", "_fast"} {
			register(gatherQMV(a, fmt.Sprintf("affine_gather_qmv%s_float_gs_%d_b_%d", fast, a.group, a.bits)))
		}
	}
	register(gatherGEMV("gather_gemv_float32", dense{}), gatherGEMV("gather_gemv_float16_float32", dense{half: true}))
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
			sums := worker.Scratch(k / a.group)
			for u := lo; u < hi; {
				of, j := u/blocks, u%blocks*qmvRows // of the results, and its first column
				more := min(hi-u, blocks-u%blocks)
				end := min(j+more*qmvRows, n)
				u += more
				out := y[of*n+j : of*n+end]
				batch, m := of/vectors, of%vectors
				from := int(c.U32(4)[batchPlace(c, batch, 19)])
				which := int(c.U32(5)[batchPlace(c, batch, 20)])
				if from >= element32(c, 10, 0) || which >= element32(c, 13, 0) {
					fill(out, float32(math.NaN()))
					continue
				}
				at := from*c.Long(11, 0) + m*k
				xv := x[at : at+k]
				a.prepare(xv, sums)
				b, g := k/8*a.bits, k/a.group
				w := c.Bytes(0)[4*which*c.Long(14, 0):][j*b : end*b]
				scales := c.F32(1)[which*c.Long(15, 0):][j*g : end*g]
				biases := c.F32(2)[which*c.Long(16, 0):][j*g : end*g]
				if a.bits == 4 {
					simd.MatVecQ4(out, xv, sums, w, scales, biases, k, a.group)
				} else {
					simd.MatVecQ8(out, xv, sums, w, scales, biases, k, a.group)
				}
			}
		},
		Cost: func(c *Call) float64 { return 20 + float64(qmvRows*c.Int(7))*a.cost(false) },
	}
}

// batchPlace is the offset of number i of the batch under the strides at slot;
// the number of dimensions stands at slot 17, the shape at 18.
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

// gatherGEMV is the product of rows with dense matrices that ids pick from a
// stack:
//
//	y[r,s,n] = Σ_k mat[ids[r,s],n,k] * x[r,s,k]
//
// An id outside the stack makes NaN and reads nothing.
//
// Arguments: 0 mat f32 or f16[E, N, K], 1 x f32[rows, slots, K] under the strides
// 7 (i64[2]: row, slot; 0 shares a row), 2 ids u32[rows, slots], 3 y f32[rows,
// slots, N], 4 K, 5 N, 6 E i32. The threadgroups are (ceil(N/8), slots, rows). A
// unit is 8 columns of a result.
func gatherGEMV(name string, mat dense) *Kernel {
	return &Kernel{
		Name: name,
		Units: func(c *Call) int {
			return ceilDiv(c.Int(5), gemvRows) * c.Groups[1] * c.Groups[2]
		},
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, slots := c.Int(4), c.Int(5), c.Groups[1]
			blocks := ceilDiv(n, gemvRows)
			row := worker.Scratch(k)
			for u := lo; u < hi; u++ {
				of, j := u/blocks, u%blocks*gemvRows
				end := min(j+gemvRows, n)
				out := c.F32(3)[of*n+j : of*n+end]
				id := int(c.U32(2)[of])
				if id >= c.Int(6) {
					fill(out, float32(math.NaN()))
					continue
				}
				at := of/slots*c.Long(7, 0) + of%slots*c.Long(7, 1)
				x := c.F32(1)[at : at+k]
				for i := j; i < end; i++ {
					first := (id*n + i) * k
					w := row
					if mat.half {
						halfTo(row, c.U16(0)[first:first+k])
					} else {
						w = c.F32(0)[first : first+k]
					}
					out[i-j] = simd.Dot(x, w)
				}
			}
		},
		Cost: func(c *Call) float64 { return 20 + float64(gemvRows*c.Int(4))*mat.cost(false) },
	}
}
