package decoder

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
	if c.HeadNorms {
		t["attn_q_norm"], t["attn_k_norm"] = []int64{c.HeadDim}, []int64{c.HeadDim}
	}
	return t
}

// RopeFactors is the tensor of the numbers by which rope's frequencies are divided, one for each pair of a head. It is
// that of all layers, and may be missing.
const RopeFactors = "rope_freqs.weight"
