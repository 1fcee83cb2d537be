package cmd_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
)

// TestModelIn16Bits: the demonstration model in f16 and in bf16 is fused as in f32: as many dispatches are left of a token
// and of a prompt, at most 155 of a token, and all of it is proved.
func TestModelIn16Bits(t *testing.T) {
	sample.Seldom(t)
	m, err := gguf.Load(modelPath(t))
	require.NoError(t, err)
	defer m.Close()
	want := map[string]int{}
	for _, typ := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		module, err := m.Record(context.Background(), frontend.Options{Type: typ})
		require.NoError(t, err)
		for _, g := range module.Graphs {
			r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.DefaultPipeline()})
			require.NoError(t, err)
			require.NotNil(t, r.Optimized, "%s in %v is not proved", g.Name, typ)
			n := r.After.Dispatches
			if typ == ir.F32 {
				want[g.Name] = n
			}
			assert.Equal(t, want[g.Name], n, "%s in %v", g.Name, typ)
			if g.Name == "decode" {
				assert.LessOrEqual(t, n, 155)
			}
		}
	}
}
