package decoder_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

// TestDispatchesOfALayer: how many dispatches a layer in 4 bits is after optimization, whose result is proved, for one position
// and for many. With a cache of f16 some layers need one dispatch more, which rounds keys and values, and all with one of 8 bits.
func TestDispatchesOfALayer(t *testing.T) {
	gemma := func(c *decoder.Config) {
		c.HeadDim, c.PostNorms, c.GeluGates, c.Window, c.Windowed = 256, true, true, 64, decoder.EveryNth(c.Layers, 2)
	}
	for name, c := range map[string]struct {
		change func(*decoder.Config)
		want   map[ir.DType][2]int // by the type of the cache
	}{
		"llama": {func(*decoder.Config) {}, map[ir.DType][2]int{ir.F32: {5, 7}, ir.F16: {5, 7}, ir.I8: {6, 8}}},
		"gemma2": {func(c *decoder.Config) {
			gemma(c)
			c.AttentionCap, c.LogitCap = 50, 30
		}, map[ir.DType][2]int{ir.F32: {11, 11}, ir.F16: {12, 11}}},
		"gemma3": {func(c *decoder.Config) {
			gemma(c)
			c.HeadNorms, c.LocalTheta = true, 10000
		}, map[ir.DType][2]int{ir.F32: {13, 14}, ir.F16: {14, 15}}},
	} {
		for cache, want := range c.want {
			var dispatches [2][2]int // of two and of four layers
			for i, layers := range []int64{2, 4} {
				config := decoder.Config{
					Layers: layers, Embedding: 512, FFN: 512, Heads: 4, KVHeads: 2, HeadDim: 128, Vocab: 512, Context: 256,
					RopeTheta: 1e4, NormEps: 1e-5, RopeHalves: true,
				}
				c.change(&config)
				m := &decoder.Synthetic{Config: config, Bits: 4, EmbeddingBits: 8}
				module, err := m.Record(context.Background(), frontend.Options{Cache: cache})
				require.NoError(t, err)
				for j, g := range module.Graphs {
					optimized, err := optimize.New("").Optimize(context.Background(), g)
					require.NoError(t, err)
					dispatches[i][j] = optimized.Stats().Dispatches
				}
			}
			for j, want := range want {
				require.Equal(t, 2*want, dispatches[1][j]-dispatches[0][j], "%s, graph %d, a cache of %v", name, j, cache)
			}
		}
	}
}

// TestQuantizedCaches: a cache of 8 bits is for heads of whole groups.
func TestQuantizedCaches(t *testing.T) {
	config := decoder.Config{HeadDim: 64, Context: 256}
	require.NoError(t, config.Fill(&frontend.Options{Cache: ir.I8}))
	config.HeadDim = 80
	require.ErrorContains(t, config.Fill(&frontend.Options{Cache: ir.I8}), "heads of a multiple of 32 elements, and this model's have 80")
}
