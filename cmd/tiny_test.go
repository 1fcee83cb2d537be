package cmd_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio/ggufwrite"
)

// tinyModel writes a Llama model of one small layer with random weights, whose text is nonsense.
func tinyModel(t *testing.T, path string) {
	t.Helper()
	const emb, ffn, heads, kv, dim, vocab = 128, 192, 2, 1, 64, 40
	r := rand.New(rand.NewPCG(1, 2))
	var f ggufwrite.File
	f.KV("general.architecture", "llama")
	f.KV("llama.block_count", uint32(1))
	f.KV("llama.embedding_length", uint32(emb))
	f.KV("llama.feed_forward_length", uint32(ffn))
	f.KV("llama.attention.head_count", uint32(heads))
	f.KV("llama.attention.head_count_kv", uint32(kv))
	f.KV("llama.context_length", uint32(32))
	f.KV("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	f.KV("tokenizer.ggml.model", "gpt2")
	f.KV("tokenizer.ggml.pre", "smollm")
	tokens := make([]string, vocab)
	for i := range tokens {
		tokens[i] = string(rune('A' + i))
	}
	f.KV("tokenizer.ggml.tokens", tokens)
	f.KV("tokenizer.ggml.merges", []string{})
	tensor := func(name string, n, k int, mean, spread float64) {
		var data []byte
		for range n * k {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(mean+spread*r.NormFloat64())))
		}
		dims := []uint64{uint64(k), uint64(n)}
		if n == 1 {
			dims = dims[:1]
		}
		f.Tensor(name, ggufio.F32, dims, data)
	}
	tensor("token_embd.weight", vocab, emb, 0, 0.3)
	tensor("output_norm.weight", 1, emb, 1, 0.2)
	for _, name := range []string{"attn_norm", "ffn_norm"} {
		tensor(fmt.Sprintf("blk.0.%s.weight", name), 1, emb, 1, 0.2)
	}
	for _, m := range []struct {
		name string
		n, k int
	}{
		{"attn_q", heads * dim, emb}, {"attn_k", kv * dim, emb}, {"attn_v", kv * dim, emb}, {"attn_output", emb, heads * dim},
		{"ffn_gate", ffn, emb}, {"ffn_up", ffn, emb}, {"ffn_down", emb, ffn},
	} {
		tensor(fmt.Sprintf("blk.0.%s.weight", m.name), m.n, m.k, 0, 1/math.Sqrt(float64(m.k)))
	}
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
}
