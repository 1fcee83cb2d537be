package decoder

import (
	"fmt"
	"slices"
)

// Config is the shape of a model, and what it computes beside that of the first Llama: what is zero, it does not do.
type Config struct {
	Name      string
	Layers    int64
	Embedding int64 // width of the residual stream
	FFN       int64 // width of the feed-forward layer
	Heads     int64
	KVHeads   int64
	HeadDim   int64
	Vocab     int64
	Context   int64 // positions that the model was trained for
	RopeTheta float64
	NormEps   float32

	RopeHalves bool    // rope turns elements i and i + HeadDim/2 together; else 2i and 2i + 1
	RopeScale  float32 // of positions; 0: 1
	NoRope     int64   // every layer whose number, counted from 1, is a multiple of it has no rope
	HeadNorms  bool    // the heads of queries and keys are normalized before rope
	// Of a mixture of experts: how many there are, how many a token takes, how wide they are; how wide the one is that
	// every token takes, and whether that has a share computed for each token; and whether shares are of all experts, not of
	// those chosen.
	Experts, UsedExperts, ExpertFFN, SharedFFN int64
	SharedGate, AllShares                      bool
	// Layers with a window see so many positions; 0: none has one. Windowed says which layers; nil: all.
	Window   int64
	Windowed []bool
	// LocalTheta is the base of rope in layers with a window, where nothing else is done to positions; 0: it is as elsewhere.
	LocalTheta float64
	PostNorms  bool // what each half of a layer adds is normalized
	GeluGates  bool // gates are gelu by tanh, not silu
	// Scores of attention, and logits, are kept within ± these numbers; 0: they are not.
	AttentionCap, LogitCap float32
	// Factors of the embedding, of what each half of a layer adds, of queries times keys (in place of 1/√HeadDim), and
	// what logits are divided by.
	EmbeddingScale, ResidualScale, AttentionScale, LogitScale float32
}

// LayerTensors returns the tensors of one layer with their dimensions, innermost first.
// A vector has one dimension.
func (c Config) LayerTensors() map[string][]int64 {
	e, kv := c.Embedding, c.KVHeads*c.HeadDim
	q := c.Heads * c.HeadDim
	t := map[string][]int64{
		"attn_norm": {e}, "attn_q": {e, q}, "attn_k": {e, kv}, "attn_v": {e, kv}, "attn_output": {q, e},
		"ffn_norm": {e}, "ffn_gate": {e, c.FFN}, "ffn_up": {e, c.FFN}, "ffn_down": {c.FFN, e},
	}
	if c.Experts > 0 {
		c.expertTensors(t)
	}
	if c.PostNorms {
		t["post_attention_norm"], t["post_ffw_norm"] = []int64{e}, []int64{e}
	}
	if c.HeadNorms {
		t["attn_q_norm"], t["attn_k_norm"] = []int64{c.HeadDim}, []int64{c.HeadDim}
	}
	return t
}

// windowed reports whether layer i has a window.
func (c Config) windowed(i int64) bool {
	return c.Window > 0 && (c.Windowed == nil || c.Windowed[i])
}

// EveryNth returns which of so many layers have a window if every n-th, counted from 1, has none; 0: all have one.
func EveryNth(layers, n int64) []bool {
	windowed := make([]bool, layers)
	for i := range windowed {
		windowed[i] = n == 0 || (int64(i)+1)%n != 0
	}
	return windowed
}

// HeadSizes are the sizes of heads that attention has kernels for.
var HeadSizes = []int64{64, 96, 128, 256}

// HeadSize says that heads of some size are not supported, if they are not.
func HeadSize(n int64) error {
	if slices.Contains(HeadSizes, n) {
		return nil
	}
	return fmt.Errorf("heads of %d elements are not supported, only 64, 96, 128 and 256 are", n)
}

// RopeFactors is the tensor of the numbers by which rope's frequencies are divided, one for each pair of a head. It is
// that of all layers, and may be missing.
const RopeFactors = "rope_freqs.weight"
