package cpu

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	Register(
		&Kernel{Name: "col_reduce_small_1_reduce_sumfloat32", Units: columnBlocks, Run: sumColumns, Cost: sumColumnsCost},
		&Kernel{Name: "col_reduce_looped_1_32_32_reduce_sumfloat32", Units: columnBlocks, Run: sumColumns, Cost: sumColumnsCost},
		&Kernel{Name: "col_sum_small_float16", Units: columnBlocks, Run: sumColumnsNarrow(halfType), Cost: sumColumnsNarrowCost},
		&Kernel{Name: "col_sum_looped_float16", Units: columnBlocks, Run: sumColumnsNarrow(halfType), Cost: sumColumnsNarrowCost},
		&Kernel{Name: "col_sum_small_bfloat16", Units: columnBlocks, Run: sumColumnsNarrow(bfloatType), Cost: sumColumnsNarrowCost},
		&Kernel{Name: "col_sum_looped_bfloat16", Units: columnBlocks, Run: sumColumnsNarrow(bfloatType), Cost: sumColumnsNarrowCost},
	)
	for _, t := range narrows {
		Register(
			&Kernel{Name: fmt.Sprintf("col_reduce_small_1_reduce_sum%v", t), Units: columnBlocks, Run: addColumns(t, false), Cost: sumColumnsNarrowCost},
			&Kernel{Name: fmt.Sprintf("col_reduce_looped_1_32_32_reduce_sum%v", t), Units: columnBlocks, Run: addColumns(t, true), Cost: sumColumnsNarrowCost},
		)
	}
}

// blockColumns is the number of columns of one unit of a sum of columns.
const blockColumns = 128

func columnBlocks(c *Call) int {
	return ceilDiv(c.Long(3, 0), blockColumns) * c.Groups[1] * c.Groups[2]
}

// sumColumns is the sum of the rows of matrices: out[b,i] = Σ_r in[b,r,i].
//
// Arguments, as MLX binds them: 0 in f32[rows, columns : stride, 1], 1 out
// f32[columns], 2 rows u64, 3 columns i64, 8 stride i64[1]; 4 shape i32[ndim], 5
// strides i64[ndim] and 6 ndim i32 of the dimensions that stay, 7 and 9 unused,
// 10 rows are so many times more, u64; 11 the first column, i64, of the looped
// kernel. Rows are added one after another.
func sumColumns(c *Call, _ *Worker, lo, hi int) {
	rows, stride := c.Long(2, 0)*c.Long(10, 0), c.Long(8, 0)
	eachColumns(c, lo, hi, func(from, to, i, j int) {
		in, o := c.F32(0)[from:], c.F32(1)[to+i:to+j]
		clear(o)
		for r := range rows {
			if r%(1<<15) == 0 {
				c.Pause()
			}
			simd.AddTo(o, o, in[r*stride+i:r*stride+j])
		}
		canonical(o)
	})
}

// eachColumns calls f for the columns [i, j) of units [lo, hi), by the result whose rows they are sums of: `from` is where its
// first row begins, and `to` its results.
func eachColumns(c *Call, lo, hi int, f func(from, to, i, j int)) {
	columns := c.Long(3, 0)
	blocks := ceilDiv(columns, blockColumns)
	for lo < hi {
		result := lo / blocks
		end := min(hi, (result+1)*blocks)
		i, j := (lo-result*blocks)*blockColumns, min((end-result*blocks)*blockColumns, columns)
		if c.Constant[11] != nil {
			i += c.Long(11, 0)
		}
		f(c.firstOfRow(result), result*columns, i, j)
		lo = end
	}
}

// sumColumnsNarrow is sumColumns of f16 or bf16, added in f32 and rounded once.
func sumColumnsNarrow(t narrow) func(c *Call, work *Worker, lo, hi int) {
	return func(c *Call, work *Worker, lo, hi int) {
		rows, stride := c.Long(2, 0)*c.Long(10, 0), c.Long(8, 0)
		memory := work.Scratch(2 * c.Long(3, 0))
		eachColumns(c, lo, hi, func(from, to, i, j int) {
			in, out := c.U16(0)[from:], c.U16(1)[to+i:to+j]
			sum, row := memory[:len(out)], memory[len(out):][:len(out)]
			clear(sum)
			for r := range rows {
				if r%(1<<13) == 0 {
					c.Pause()
				}
				t.from(row, in[r*stride+i:r*stride+j])
				simd.AddTo(sum, sum, row)
			}
			t.to(out, sum)
		})
	}
}

// Partial sums of a column of the kernels that add in 16 bits: a part has every eighth row, or every 32nd.
const (
	smallParts  = 8
	loopedParts = 32
)

// addColumns is sumColumns of f16 or bf16, added in that type: each sum is rounded. Part p adds rows p, p + parts, …, and then
// the parts are added: one after another or, looped, as a simdgroup adds them, which rounds those of bf16 once.
func addColumns(t narrow, looped bool) func(c *Call, work *Worker, lo, hi int) {
	return func(c *Call, work *Worker, lo, hi int) {
		rows, stride := c.Long(2, 0)*c.Long(10, 0), c.Long(8, 0)
		parts := min(smallParts, rows)
		if looped {
			parts = loopedParts
		}
		memory := work.Scratch((parts + 1) * c.Long(3, 0))
		eachColumns(c, lo, hi, func(from, to, i, j int) {
			in, out := c.U16(0)[from:], c.U16(1)[to+i:to+j]
			n := len(out)
			scratch := memory[:(parts+1)*n]
			row := scratch[parts*n:]
			part := func(p int) []float32 { return scratch[p*n:][:n] }
			clear(scratch)
			add := func(to, x []float32) {
				simd.AddTo(to, to, x)
				t.round(to)
			}
			for r := range rows {
				if r%(1<<13) == 0 {
					c.Pause()
				}
				t.from(row, in[r*stride+i:r*stride+j])
				add(part(r%parts), row)
			}
			for p := 1; p < parts && !looped; p++ {
				add(part(0), part(p))
			}
			for d := loopedParts / 2; d > 0 && looped; d /= 2 {
				for p := range d {
					simd.AddTo(part(p), part(p), part(p+d))
					if t == halfType {
						t.round(part(p))
					}
				}
			}
			t.to(out, part(0))
		})
	}
}

func sumColumnsNarrowCost(c *Call) float64 {
	return 10 + float64(c.Long(2, 0))*float64(c.Long(10, 0))*(4+0.12*float64(min(blockColumns, c.Long(3, 0))))
}

// firstOfRow is the offset of row `row` in the dimensions that are not summed over.
func (c *Call) firstOfRow(row int) (at int) {
	for d := c.Int(6) - 1; d >= 0; d-- {
		n := int(int32(binary.LittleEndian.Uint32(c.Constant[4][4*d:])))
		at += row % n * c.Long(5, d)
		row /= n
	}
	return at
}

func sumColumnsCost(c *Call) float64 {
	return 10 + float64(c.Long(2, 0))*float64(c.Long(10, 0))*(4+0.06*float64(min(blockColumns, c.Long(3, 0))))
}
