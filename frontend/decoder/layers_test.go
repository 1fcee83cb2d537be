package decoder_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/optimize"
)

// TestDispatchesOfALayer: how many dispatches a layer in 4 bits is after optimization, whose result is proved, for one position
// and for many.
func TestDispatchesOfALayer(t *testing.T) {
	gemma := func(c *decoder.Config) {
		c.HeadDim, c.PostNorms, c.GeluGates, c.Window, c.Windowed = 256, true, true, 64, decoder.EveryNth(c.Layers, 2)
	}
	for name, c := range map[string]struct {
		change func(*decoder.Config)
		want   [2]int
	}{
		"llama": {func(*decoder.Config) {}, [2]int{5, 10}},
		"gemma2": {func(c *decoder.Config) {
			gemma(c)
			c.AttentionCap, c.LogitCap = 50, 30
		}, [2]int{11, 12}},
		"gemma3": {func(c *decoder.Config) {
			gemma(c)
			c.HeadNorms, c.LocalTheta = true, 10000
		}, [2]int{13, 14}},
	} {
		var dispatches [2][2]int // of two and of four layers
		for i, layers := range []int64{2, 4} {
			config := decoder.Config{
				Layers: layers, Embedding: 512, FFN: 512, Heads: 4, KVHeads: 2, HeadDim: 128, Vocab: 512, Context: 256,
				RopeTheta: 1e4, NormEps: 1e-5, RopeHalves: true,
			}
			c.change(&config)
			m := &decoder.Synthetic{Config: config, Bits: 4, EmbeddingBits: 8}
			module, err := m.Record(context.Background(), frontend.Options{})
			require.NoError(t, err)
			for j, g := range module.Graphs {
				optimized, err := optimize.New("").Optimize(context.Background(), g)
				require.NoError(t, err)
				dispatches[i][j] = optimized.Stats().Dispatches
			}
		}
		for j, want := range c.want {
			require.Equal(t, 2*want, dispatches[1][j]-dispatches[0][j], "%s, graph %d", name, j)
		}
	}
}
