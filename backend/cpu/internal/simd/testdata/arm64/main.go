// Command arm64 does nothing: it is linked for arm64 so that its assembly lies
// at its final addresses, for an emulator to call.
package main

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// all refers to every loop, so that the linker keeps them in the program.
var all = []any{
	simd.AddTo, simd.Axpy, simd.Dot, simd.ExpTo, simd.GroupSums, simd.MatMulF32, simd.MatMulQ4, simd.MatMulQ8, simd.MatVecF32,
	simd.MatVecQ4, simd.MatVecQ8, simd.Max, simd.MulTo, simd.ScaleTo, simd.SigmoidTo, simd.SiluTo, simd.HalfTo, simd.BFloatTo,
	simd.ToHalf, simd.ToBFloat, simd.RoundHalf, simd.RoundBFloat, simd.HalvesAt, simd.MatVecBlocks, simd.MatMulBlocks, simd.RowQ6K,
	simd.ScalesK, simd.ScalesQ6K,
}

func main() { fmt.Println(len(all)) }
