package gguf_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/testing/generated"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/optimize"
)

// TestArchitecturesAreClean: software Metal's checker finds nothing in the graphs of any architecture, as optimized, and
// computes llama.cpp's logits of a prompt and of a token.
func TestArchitecturesAreClean(t *testing.T) {
	if !sample.Whole() {
		t.Skip("compiles some 30 kernels for each: make test-all has it")
	}
	store.Use()
	models, err := filepath.Glob(filepath.Join("..", "..", "testdata", "architectures", "*.json"))
	require.NoError(t, err)
	for i, path := range models {
		name := filepath.Base(path[:len(path)-len(".json")])
		t.Run(name, func(t *testing.T) {
			m, want := readModel(t, name)
			module, err := m.Record(context.Background(), frontend.Options{Prefill: 16, Blocks: i%2 == 0})
			require.NoError(t, err)
			for n, g := range module.Graphs {
				module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g)
				require.NoError(t, err)
			}
			d, err := softmetal.New(context.Background(), softmetal.Options{Check: true})
			require.NoError(t, err)
			defer d.Close()
			want.IDs = want.IDs[:want.Prompt+2]
			generated.CheckOn(t, d, module, want, 1e-3)
			dispatches := 0
			for _, o := range d.Observed() {
				dispatches++
				for j := range o.Findings {
					t.Error(o.Findings[j].Kernel, &o.Findings[j])
				}
			}
			assert.NotZero(t, dispatches)
		})
	}
}
