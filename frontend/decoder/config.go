package decoder

import (
	"cmp"
	"fmt"
	"math"
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
	RopeDims   int64   // rope turns so many first elements of a head; 0: all
	// RopePeriods has, for each pair of elements that rope turns, the number by which positions are divided; nil: these numbers
	// follow from RopeTheta. LongPeriods, if not nil, takes its place in a context of more than Trained positions.
	RopePeriods, LongPeriods []float32
	Trained                  int64
	// RopeMagnitude is what turned elements of queries and keys are multiplied by; 0: 1.
	RopeMagnitude float32
	NoRope        int64 // every layer whose number, counted from 1, is a multiple of it has no rope
	HeadNorms     bool  // the heads of queries and keys are normalized before rope
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
	// ClampedGates: an expert's gate is kept at most 7, and its other product within ±7; what goes on is
	// gate · sigmoid(1.702 · gate) · (other + 1). GPT-OSS has that.
	ClampedGates bool
	Sinks        bool // attention has a sink for each head
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
	if c.Sinks {
		t["attn_sinks"] = []int64{c.Heads}
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

// Turned is how many elements of a head rope turns.
func (c Config) Turned() int64 { return cmp.Or(c.RopeDims, c.HeadDim) }

// Period is what positions are divided by for pair i of a head.
func (c Config) Period(i int64) float64 {
	if c.RopePeriods != nil {
		return float64(c.RopePeriods[i])
	}
	return math.Pow(c.RopeTheta, 2*float64(i)/float64(c.Turned()))
}

// Yarn is a way to make a model fit for more positions than those that it was trained for (Peng and others, 2023,
// arXiv:2309.00071): pairs that turn more than Fast times in these stay as they are, those that turn less than Slow times are
// slowed down by Factor, and between them it is both in part. Rough: the limits are whole numbers of pairs.
type Yarn struct {
	Factor, Trained, Fast, Slow float64
	Rough                       bool
}

// Check says what is wrong with it.
func (y Yarn) Check() error {
	if !(y.Factor >= 1) || math.IsInf(y.Factor, 0) || !(y.Trained >= 1) || !(y.Slow > 0) || !(y.Fast > y.Slow) || math.IsInf(y.Fast, 0) {
		return fmt.Errorf("yarn: factor %v, %v positions trained, pairs that turn more than %v times, less than %v", y.Factor, y.Trained, y.Fast, y.Slow)
	}
	return nil
}

// Magnitude is the factor of the elements of queries and keys that rope turns. mscale is 1 unless a model says otherwise.
func (y Yarn) Magnitude(mscale float64) float64 { return 1 + 0.1*mscale*math.Log(y.Factor) }

// Periods are what positions are divided by for each pair of a head.
func (y Yarn) Periods(c Config) []float32 {
	dims := float64(c.Turned())
	// limit is the pair that turns so many times.
	limit := func(times float64, round func(float64) float64) float64 {
		pair := dims * math.Log(y.Trained/(times*2*math.Pi)) / (2 * math.Log(c.RopeTheta))
		if y.Rough {
			return round(pair)
		}
		return pair
	}
	low := max(0, limit(y.Fast, math.Floor))
	high := min(dims-1, limit(y.Slow, math.Ceil))
	out := make([]float32, c.Turned()/2)
	for i := range out {
		slowed := min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
		out[i] = float32(c.Period(int64(i)) / (slowed/y.Factor + 1 - slowed))
	}
	return out
}
