package optimize_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// An engine that writes files names its kernels by their source file. If the program has registered
// that very text, its dispatches are annotated, fused, also into the engine's own fused kernel, and
// proved. If the digest differs, nothing is known about them.
func TestKernelsOfASourceFile(t *testing.T) {
	const source = `
// @kernel   engine_cube
// @arg 0 x  device f32[n] read
// @arg 1 y  device f32[n] write
// @threads  n, 1, 1
// @group    _, _, _
// @term     y[i] = round(f32, sum[engine](k < 3, x[i] * f32(k)))

// @kernel   engine_add_cube
// @arg 0 a  device f32[n] read
// @arg 1 b  device f32[n] read
// @arg 2 y  device f32[n] write
// @threads  n, 1, 1
// @group    _, _, _
// @where    s[i] = a[i] + b[i]
// @term     y[i] = round(f32, sum[engine](k < 3, s[i] * f32(k)))
`
	require.NoError(t, msl.Register("engine.metal", source))
	run := func(digest [32]byte) *optimize.Result {
		m, err := mlxt.Parse(context.Background(), "g", []byte(fmt.Sprintf(`mlxt 1

graph g {
  memory %%a input 256 f32[64]
  memory %%b input 256 f32[64]
  memory %%s scratch 256 f32[64]
  memory %%y output 256 f32[64]
  kernel @vv_Addfloat32 builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @cube source "engine/engine.metal" sha256 %x "engine_cube" args(0 x: device f32 read, 1 y: device f32 write)

  #0 @vv_Addfloat32 (a = %%a[0:256], b = %%b[0:256], c = %%s[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
  barrier
  #1 @cube (x = %%s[0:256], y = %%y[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
  barrier
}
`, digest)))
		require.NoError(t, err)
		r, err := optimize.Run(context.Background(), m.Graphs[0], optimize.Options{Pipeline: passes.DefaultPipeline(), Proof: prove.Options{Sources: []string{"engine.metal"}}})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, r.Proof.Verdict, "%s", r.Proof)
		require.Empty(t, r.Undone())
		return r
	}
	r := run(sha256.Sum256([]byte(source)))
	require.Equal(t, 1, r.After.Dispatches)
	require.Zero(t, r.After.Unannotated)
	require.Equal(t, []string{"kernels do what engine.metal declares: engine_add_cube, engine_cube"}, r.Proof.Assumptions)
	text := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{r.Optimized}})
	require.Contains(t, text, `source "engine/engine.metal" sha256 `)
	require.Contains(t, text, `"engine_add_cube"`)
	require.Equal(t, 1, strings.Count(text, "kernel @"))

	r = run(sha256.Sum256([]byte(source + " ")))
	require.Equal(t, 2, r.After.Dispatches)
	require.Equal(t, 1, r.After.Unannotated)
	require.Empty(t, r.Proof.Assumptions)
}
