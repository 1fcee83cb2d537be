package safetensors_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/safetensors"
	"github.com/mlxc/mlxc/internal/testing/generated"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/tokenizer"
)

var folders = filepath.Join("..", "..", "testdata", "folders")

// unpack puts a model of testdata/folders into a folder.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join(folders, name+".tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), data, 0o600))
	}
}

// TestFolders: models of every type have mlx-lm's logits, to 1e-3 in f32, and its tokens, recorded and optimized; in their
// own type they are proved too, and have them roughly. Texts have the tokens of the package tokenizers.
func TestFolders(t *testing.T) {
	models, err := filepath.Glob(filepath.Join(folders, "*.json"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, path := range models {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			want := generated.Read(t, path)
			dir := unpack(t, name)
			m, err := safetensors.Load(dir)
			require.NoError(t, err)
			defer m.Close()
			seen[typeOf(t, dir)] = true
			for _, o := range []frontend.Options{{Prefill: 16, Type: ir.F32}, {Prefill: 16, Type: ir.F32, Mapped: true}, {Prefill: 16}} {
				module, err := m.Record(context.Background(), o)
				require.NoError(t, err)
				if o.Mapped || o.Type == ir.Invalid {
					for n, g := range module.Graphs {
						module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g) // and proved
						require.NoError(t, err)
					}
				}
				if o.Type == ir.F32 {
					generated.Check(t, module, want, 1e-3)
				} else {
					require.Less(t, generated.Roughly(t, module, m.Type(), want), map[ir.DType]float64{ir.F16: 0.005, ir.BF16: 0.05}[m.Type()])
				}
			}
			spec, err := m.Tokenizer()
			require.NoError(t, err)
			tok, err := tokenizer.New(spec)
			require.NoError(t, err)
			for _, x := range want.Texts {
				var text string
				var ids []int32
				require.NoError(t, json.Unmarshal(x[0], &text))
				require.NoError(t, json.Unmarshal(x[1], &ids))
				assert.Equal(t, ids, tok.Encode(text, true), "%q", text)
			}
			end, _ := tok.ID(tokenizer.EOS)
			assert.Equal(t, []int32{end}, tok.EndOfGeneration())
			assert.Equal(t, name == "llama3" || name == "smollm3", tok.AddBOS())
			assert.Equal(t, "{{ messages[0].content }}", tok.ChatTemplate())
			stored, err := tokenizer.Marshal(spec)
			require.NoError(t, err)
			again, err := tokenizer.Unmarshal(stored)
			require.NoError(t, err)
			assert.Equal(t, spec, again)
		})
	}
	for _, name := range safetensors.Architectures() {
		assert.True(t, seen[name], "%s has no model", name)
	}
}

// typeOf returns the model_type of a folder.
func typeOf(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	var config struct {
		Type string `json:"model_type"`
	}
	require.NoError(t, json.Unmarshal(data, &config))
	return config.Type
}

// A recording tells how far it is, reading the files included, and never less than before.
func TestProgress(t *testing.T) {
	m, err := safetensors.Load(unpack(t, "qwen3"))
	require.NoError(t, err)
	defer m.Close()
	for _, unread := range []bool{false, true} {
		var told []float64
		_, err = m.Record(t.Context(), frontend.Options{Mapped: true, Unread: unread, Progress: func(done float64) { told = append(told, done) }})
		require.NoError(t, err)
		require.IsNonDecreasing(t, told)
		require.Equal(t, 1.0, told[len(told)-1])
		require.Equal(t, map[bool]float64{false: 1. / 48, true: 1. / 24}[unread], told[0], "of 24 weights, which are read too or not")
		require.Equal(t, unread, len(told) == 24)
	}
}

// A token that config.json names, and nothing uses, may be outside the vocabulary, which is said.
func TestRemarks(t *testing.T) {
	dir := unpack(t, "qwen3")
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), "{", `{"bos_token_id": 300,`, 1)), 0o600))
	m, err := safetensors.Load(dir)
	require.NoError(t, err)
	defer m.Close()
	require.Equal(t, []string{"without effect: config.json: bos_token_id is 300, the vocabulary has 0 to 273; tokenizer_config.json and tokenizer.json say what begins a text"}, m.Remarks())
}

// The language model of one of text and pictures is the same by the names and settings that newer versions of transformers write,
// and what is left out is said.
func TestModelsOfTextAndPictures(t *testing.T) {
	record := func(dir string) (*safetensors.Model, *ir.Module) {
		m, err := safetensors.Load(dir)
		require.NoError(t, err)
		t.Cleanup(func() { m.Close() })
		module, err := m.Record(context.Background(), frontend.Options{Prefill: 16})
		require.NoError(t, err)
		return m, module
	}
	dir := unpack(t, "gemma3")
	m, want := record(dir)
	const remark = "text alone: model_type gemma3 is that of a model of text and pictures, and pictures are not read; tensors that are left out: multi_modal_projector (1), vision_tower (1)"
	require.Equal(t, []string{remark}, m.Remarks())
	require.EqualValues(t, 131072, m.Context())
	require.Equal(t, float32(1e-6), m.Config.NormEps)
	m.Close()

	path := filepath.Join(dir, "model.safetensors")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	newer := bytes.ReplaceAll(data, []byte("language_model.model."), []byte("model.language_model."))
	require.NotEqual(t, data, newer)
	require.NoError(t, os.WriteFile(path, newer, 0o600))
	_, got := record(dir)
	require.Equal(t, want, got)
	path = filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"model_type": "gemma3", "eos_token_id": 272, "tie_word_embeddings": true, "text_config": {
		"model_type": "gemma3_text", "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
		"vocab_size": 300, "sliding_window": 20, "_sliding_window_pattern": 6, "tie_word_embeddings": true, "eos_token_id": 1, "use_bidirectional_attention": false,
		"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
		"rope_parameters": {"full_attention": {"factor": 8.0, "rope_theta": 1000000.0, "rope_type": "linear"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}}}`), 0o600))
	_, got = record(dir)
	require.Equal(t, want, got)

	// Tokens that end an answer are those of the whole, and a head that is there counts, unless the language model says otherwise.
	for tied, head := range map[string]bool{"": true, `"tie_word_embeddings": true, `: false, `"tie_word_embeddings": false, `: true} {
		dir := unpack(t, "mistral3")
		path := filepath.Join(dir, "config.json")
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		text := strings.Replace(string(data), `"eos_token_id": 272`, `"eos_token_id": [272, 7], "tie_word_embeddings": true`, 1)
		text = strings.Replace(text, `"hidden_size"`, tied+`"eos_token_id": 9, "hidden_size"`, 1)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		m, module := record(dir)
		require.Equal(t, head, slices.ContainsFunc(module.Graphs[0].Memories, func(x ir.Memory) bool { return x.Name == "output.weight" }), "%q", tied)
		spec, err := m.Tokenizer()
		require.NoError(t, err)
		tok, err := tokenizer.New(spec)
		require.NoError(t, err)
		require.Equal(t, []int32{7, 272}, slices.Sorted(slices.Values(tok.EndOfGeneration())))
	}
}

// TestFaultsOfParts: experts that are not all there, a matrix of the wrong height, a tensor that is there in two ways, and settings
// that are refused.
func TestFaultsOfParts(t *testing.T) {
	config := func(dir, from, to string) {
		path := filepath.Join(dir, "config.json")
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(data), from)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), from, to, 1)), 0o600))
	}
	// empty adds a tensor without elements.
	empty := func(dir, name string) {
		path := filepath.Join(dir, "model.safetensors")
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		n := binary.LittleEndian.Uint64(data)
		header := strings.TrimRight(string(data[8:8+n]), " ")
		size := len(data) - 8 - int(n)
		header = header[:len(header)-1] + fmt.Sprintf(`,%q:{"dtype":"BF16","shape":[0],"data_offsets":[%d,%d]}}`, name, size, size)
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		require.NoError(t, os.WriteFile(path, append(file, data[8+n:]...), 0o600))
	}
	for _, c := range []struct {
		model, want string
		change      func(dir string)
	}{
		{"granitemoeshared", "model.layers.7.shared_mlp.input_linear.weight is not part of a model", func(dir string) {
			config(dir, `"shared_intermediate_size": 192`, `"shared_intermediate_size": 0`)
			empty(dir, "model.layers.7.shared_mlp.input_linear.weight")
		}},
		{"mixtral-experts", "model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight is missing", func(dir string) {
			config(dir, `"num_local_experts": 5`, `"num_local_experts": 6`)
		}},
		{"mixtral-experts", "model.layers.1.block_sparse_moe.experts.4.w3.weight is not part of a model", func(dir string) {
			config(dir, `"num_local_experts": 5`, `"num_local_experts": 4`)
		}},
		{"phi3-dense", "model.layers.0.self_attn.q_proj.weight is missing", func(dir string) {
			config(dir, `"num_key_value_heads": 2`, `"num_key_value_heads": 1`)
		}},
		{"granitemoe-dense", "model.layers.0.block_sparse_moe.switch_mlp.up_proj.weight is f16[5 128 256], want floats [5 64 256]", func(dir string) {
			config(dir, `"intermediate_size": 128`, `"intermediate_size": 64`)
		}},
		{"granitemoehybrid", `layer_types: "mamba" is not supported, only attention is`, func(dir string) {
			config(dir, `"attention"`, `"mamba"`)
		}},
		{"granitemoehybrid", `position_embedding_type "" is not supported`, func(dir string) {
			config(dir, `"position_embedding_type"`, `"other"`)
		}},
		{"granitemoeshared", "model.layers.0.shared_mlp.gate_proj.weight is missing", func(dir string) {
			config(dir, `"shared_intermediate_size": 192`, `"shared_intermediate_size": 128`)
		}},
		{"qwen2_moe", "use_sliding_window without layer_types is not supported", func(dir string) {
			config(dir, `"use_sliding_window": false`, `"use_sliding_window": true`)
		}},
		{"mixtral-experts", "tensors model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight are there both by themselves and as a part of others", func(dir string) {
			empty(dir, "model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight")
		}},
	} {
		dir := unpack(t, c.model)
		c.change(dir)
		_, err := safetensors.Load(dir)
		require.ErrorContains(t, err, c.want)
	}
}
