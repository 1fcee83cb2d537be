package safetensors_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/safetensors"
	"github.com/mlxc/mlxc/ir"
)

// packed returns a file with this header and so many bytes behind it.
func packed(header string, bytes int) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), make([]byte, bytes)...)
}

func TestParse(t *testing.T) {
	data := packed(`{"__metadata__":{"format":"mlx"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"c":{"dtype":"U32","shape":[0,7],"data_offsets":[4,4]}}   `, 16)
	f, err := safetensors.Parse("x", data)
	require.NoError(t, err)
	begin := int64(len(data) - 16)
	assert.Equal(t, []safetensors.Tensor{
		{Name: "a", Type: ir.F32, Shape: []int64{}, Offset: begin, Size: 4},
		{Name: "c", Type: ir.U32, Shape: []int64{0, 7}, Offset: begin + 4},
		{Name: "b", Type: ir.BF16, Shape: []int64{2, 3}, Offset: begin + 4, Size: 12},
	}, f.Tensors)
	assert.Len(t, f.Data(f.Tensors[2]), 12)
}

// Files that break a rule of the format are refused, with the place and the reason.
func TestParseErrors(t *testing.T) {
	one := func(entry string) []byte { return packed(`{"a":`+entry+`}`, 8) }
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "offset 0: the file has 0 bytes"},
		{[]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "offset 0: the header has 18446744073709551615 bytes"},
		{packed("", 0), "offset 8: the header does not begin with {"},
		{packed(" {}", 0), "offset 8: the header does not begin with {"},
		{packed("{", 0), "the header: "},
		{packed("{} x", 0), "more than one object"},
		{packed("{}{}", 0), "more than one object"},
		{packed("{}", 3), "3 bytes behind the last tensor belong to none"},
		{packed(`{"__metadata__":{"a":1}}`, 0), "the header: "},
		{one(`{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`), `"a" stands twice`},
		{one(`{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}`), `the type "F8_E4M3", which is not supported`},
		{one(`{"dtype":"F32","shape":[2]}`), "no offsets"},
		{one(`{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}`), "more than 8 dimensions"},
		{one(`{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}`), "does not fit the file"},
		{one(`{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}`), "does not fit the file"},
		{one(`{"dtype":"F32","shape":[1],"data_offsets":[0,8]}`), "want 4 bytes"},
		{one(`{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}`), "want 8 bytes"},
		{one(`{"dtype":"F32","shape":[2],"data_offsets":[8,0]}`), "want 8 bytes"},
		{one(`{"dtype":"F32","shape":[2],"data_offsets":[4,12]}`), "tensors leave no gap"},
		{one(`{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`), "do not overlap"},
		{packed(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 7), "ends at byte"},
	} {
		_, err := safetensors.Parse("x.safetensors", c.data)
		require.ErrorContains(t, err, c.want, "%.80q", c.data)
		assert.ErrorContains(t, err, "x.safetensors: offset ")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(packed(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := safetensors.Parse("x", data)
		if err != nil {
			return
		}
		for _, x := range file.Tensors {
			require.Len(t, file.Data(x), int(x.Size))
		}
	})
}

// Folders whose model the recorder does not have are refused by name, as far as possible all at once.
func TestRefusals(t *testing.T) {
	replace := func(file, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, file)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(text), old)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600))
		}
	}
	gone := func(file string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, file))) }
	}
	for i, c := range []struct {
		model  string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"mistral", replace("config.json", `"mistral"`, `"mamba"`), `model_type "mamba" is not supported (gemma2, gemma3, gemma3_text, gpt_oss, granite, granitemoe, granitemoehybrid, granitemoeshared, llama,`},
		{"mistral", replace("config.json", `"hidden_act": "silu"`, `"hidden_act": "gelu", "partial_rotary_factor": 0.01`), `hidden_act "gelu" is not supported, only "silu" is; partial_rotary_factor is 0.01, of heads of 64 elements`},
		{"mistral", replace("config.json", `"head_dim": 64`, `"head_dim": 80`), "heads of 80 elements are not supported"},
		{"mistral", replace("config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 1`), "tensor model.layers.1.input_layernorm.weight is not part of a model"},
		{"mistral", replace("config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 3`), "tensor model.layers.2.input_layernorm.weight is missing"},
		{"mistral", replace("config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 9000000`), "num_hidden_layers is 9000000, but the files have"},
		{"mistral", replace("config.json", `"intermediate_size": 256`, `"intermediate_size": 128`), "mlp.down_proj.weight is f16[256 256], want floats [256 128]"},
		{"llama3", replace("config.json", `"llama3"`, `"ntk"`), `rope scaling "ntk" is not supported`},
		{"qwen2-yarn", replace("config.json", `"factor": 4.0`, `"factor": 0.5`), "rope_scaling: yarn: factor 0.5, 32 positions trained"},
		{"llama-long", replace("config.json", `"long_factor"`, `"other"`), "rope_scaling: long_factor has 0 numbers, want 32"},
		{"llama-long", replace("config.json", `"head_dim": 64`, `"head_dim": 96`), "rope_scaling: short_factor has 32 numbers, want 48"},
		{"mistral", replace("config.json", `"sliding_window": 30`, `"sliding_window": 0`), "sliding_window is 0"},
		{"qwen2", replace("config.json", `"max_window_layers": 1`, `"layer_types": ["full_attention", "chunked_attention"]`), `layer_types: "chunked_attention" is not supported`},
		{"qwen2", replace("config.json", `"max_window_layers": 1`, `"layer_types": ["full_attention"]`), "layer_types has 1 layers of 2"},
		{"gemma2", replace("config.json", `"hidden_activation": "gelu_pytorch_tanh"`, `"hidden_activation": "silu"`), `hidden_activation "silu" is not supported, only "gelu_pytorch_tanh" is`},
		{"gemma2", replace("config.json", `"query_pre_attn_scalar": 144`, `"query_pre_attn_scalar": 0`), "query_pre_attn_scalar is 0"},
		{"gemma2", replace("config.json", `"attn_logit_softcapping": 5.0`, `"attn_logit_softcapping": -5.0`), "attn_logit_softcapping is -5, want a number above 0"},
		{"gemma3_text", replace("config.json", `"rope_local_base_freq": 10000.0`, `"rope_local_base_freq": 0.5`), "rope_local_base_freq is 0.5"},
		{"gpt_oss", replace("config.json", `"num_experts_per_tok": 2`, `"num_experts_per_tok": 6`), "num_experts_per_tok is 6, num_local_experts 5"},
		{"gpt_oss", replace("config.json", `"swiglu_limit": 7.0`, `"swiglu_limit": 6.0`), "swiglu_limit 6 is not supported, only 7 is"},
		{"gpt_oss", replace("config.json", `"num_local_experts": 5`, `"num_local_experts": 4`), "mlp.experts.down_proj.bias is bf16[5 256], want floats [4 256]"},
		{"gpt_oss", replace("config.json", `"mode": "mxfp4"`, `"mode": "nvfp4"`), `mode "nvfp4": want affine`},
		{"gpt_oss", replace("config.json", `"intermediate_size": 256`, `"intermediate_size": 288`), "in floats of 4 bits"},
		{"gpt_oss-blocks", replace("config.json", `"num_local_experts": 4`, `"num_local_experts": 3`), "tensor model.layers.0.mlp.experts.down_proj.weight: codes are [4 256 32], exponents u8[4 256 8], want [3 256 256] in floats of 4 bits"},
		{"gpt_oss-blocks", replace("config.json", `"mxfp4"`, `"awq"`), `the method "awq" is not supported`},
		{"gemma3_text", replace("config.json", `"sliding_window": 20`, `"sliding_window": null`), "sliding_window is missing"},
		{"llama3", replace("config.json", `"bits": 4`, `"bits": 7`), "7 bits in groups of 64"},
		{"llama3", replace("config.json", `"bits": 4`, `"bits": 8`), "in 8 bits and groups of 64"},
		{"qwen3_moe", replace("config.json", `"num_experts_per_tok": 2`, `"num_experts_per_tok": 7`), "num_experts_per_tok is 7, num_experts 6"},
		{"qwen3_moe", replace("config.json", `"mlp_only_layers": []`, `"mlp_only_layers": [0]`), "layers without experts"},
		{"qwen3_moe", replace("config.json", `"num_experts": 6`, `"num_experts": 4096`), "mlp.switch_mlp.down_proj"},
		{"qwen3", replace("model.safetensors.index.json", "model-00001-of", "../model-00001-of"), "which is not in the folder"},
		{"qwen3", gone("model-00002-of-00002.safetensors"), "no such file"},
		{"mistral", gone("tokenizer.json"), "tokenizer.json is missing: AutoTokenizer"},
		{"mistral", func(t *testing.T, dir string) {
			gone("tokenizer.json")(t, dir)
			replace("config.json", `"hidden_act": "silu"`, `"hidden_act": "relu"`)(t, dir)
			replace("model.safetensors", "model.norm.weight", "model.morn.weight")(t, dir)
		}, `config.json: hidden_act "relu" is not supported, only "silu" is; tensor model.norm.weight is missing; tensor model.morn.weight is not part of a model that is supported; tokenizer.json is missing`},
		{"mistral", replace("config.json", `"model_type": "mistral"`, `"model_type": "gemma3"`), "config.json: text_config is missing, which a folder of the model_type gemma3 has"},
		{"mistral3", replace("config.json", `"model_type": "mistral"`, `"model_type": "ministral3"`), `model_type mistral3 with a language model of the type "ministral3" is not supported, only with mistral is`},
		{"gemma3", replace("config.json", `"sliding_window": 20`, `"sliding_window": null`), "config.json: sliding_window is missing"},
		{"gemma3", replace("config.json", `"vocab_size": 300`, `"vocab_size": null`), "tensor model.embed_tokens.weight is bf16[300 128], want floats [262208 128]"},
		{"gemma3", replace("config.json", `"intermediate_size": 128`, `"intermediate_size": null`), "tensor model.layers.0.mlp.down_proj.weight is bf16[128 128], want floats [128 6912]"},
		{"gemma3", replace("config.json", `"hidden_size": 128`, `"num_key_value_heads": 2, "hidden_size": 128`), "tensor model.layers.0.self_attn.k_proj.weight is bf16[1024 128], want floats [512 128]"},
		{"gemma3", replace("config.json", `"num_hidden_layers": 6`, `"num_hidden_layers": 5`), "tensor language_model.model.layers.5.input_layernorm.weight is not part of a model"},
		{"gemma3", replace("model.safetensors", "vision_tower.", "vision_power."), "tensor vision_power.vision_model.post_layernorm.weight is not part of a model"},
		{"gemma3", replace("model.safetensors", "language_model.model.norm", "multi_modal_projector.xyz"), "tensor model.norm.weight is missing"},
		{"gemma3", func(t *testing.T, dir string) {
			replace("model.safetensors", "language_model.model.layers.0.input_layernorm", "model.language_model.layers.5.input_layernorm")(t, dir)
		}, "tensor model.layers.5.input_layernorm.weight is there by two names, one of them model.language_model.layers.5.input_layernorm.weight"},
		{"mistral", replace("config.json", `"model_type": "mistral"`, `"model_type": "llava", "text_config": null`), `model_type "llava" is not supported (gemma2,`},
		{"mistral", replace("config.json", `"model_type": "mistral"`, `"model_type": "llava", "text_config": {"model_type": "llama"}`), `model_type "llava" is that of a model of more than text (text_config), which is not supported: a folder with its language model alone, of the model_type llama, would be`},
		{"mistral", replace("config.json", `"model_type": "mistral"`, `"model_type": "other", "text_config": {"model_type": "other_text"}`), `that of its language model, "other_text", is not supported either (gemma2,`},
		{"mistral", replace("config.json", `"eos_token_id": 272`, `"eos_token_id": 300`), "config.json: eos_token_id is 300, the vocabulary has 0 to 273"},
		{"mistral", replace("config.json", `"eos_token_id": 272`, `"eos_token_id": -1`), "config.json: eos_token_id is -1, the vocabulary has 0 to 273"},
		{"mistral", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(`{"eos_token_id": [3, 4000]}`), 0o600))
		}, "generation_config.json: eos_token_id is 4000, the vocabulary has 0 to 273"},
		{"mistral", func(t *testing.T, dir string) {
			gone("model.safetensors")(t, dir)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), nil, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), nil, 0o600))
		}, "model.safetensors is missing: the folder is an adapter of a model"},
		{"mistral", gone("model.safetensors"), "model.safetensors is missing, and so is model.safetensors.index.json, which would name other files"},
		{"mistral", func(t *testing.T, dir string) {
			gone("config.json")(t, dir)
			require.NoError(t, os.Mkdir(filepath.Join(dir, "config.json"), 0o700))
		}, "config.json"},
		{"mistral", replace("tokenizer.json", `"Digits"`, `"Whitespace"`), `pre-tokenizer "Whitespace" is not supported`},
		{"qwen2", replace("tokenizer.json", `\\p{N}|`, `\\p{N}{2}|`), "the expression"},
		{"qwen2", replace("tokenizer.json", `"NFC"`, `"NFKC"`), `normalizer "NFKC" is not supported`},
		{"qwen2", replace("tokenizer.json", `"byte_fallback": false`, `"byte_fallback": true`), "byte_fallback"},
		{"qwen2", replace("tokenizer_config.json", `<|begin|>`, `<|nobody|>`), `the bos token "<|nobody|>" is not in the vocabulary`},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := unpack(t, c.model)
			c.change(t, dir)
			_, err := safetensors.Load(dir)
			require.ErrorContains(t, err, c.want)
		})
	}
}
