package gguf_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio/ggufwrite"
	"github.com/mlxc/mlxc/tokenizer"
)

var keyOf = map[tokenizer.Role]string{
	tokenizer.BOS: "bos_token_id", tokenizer.EOS: "eos_token_id", tokenizer.EOT: "eot_token_id", tokenizer.EOM: "eom_token_id",
	tokenizer.UNK: "unknown_token_id", tokenizer.PAD: "padding_token_id", tokenizer.FIMPre: "fim_pre_token_id",
	tokenizer.FIMSuf: "fim_suf_token_id", tokenizer.FIMMid: "fim_mid_token_id", tokenizer.FIMPad: "fim_pad_token_id",
	tokenizer.FIMRep: "fim_rep_token_id", tokenizer.FIMSep: "fim_sep_token_id",
}

// write puts a vocabulary into a GGUF file, with or without the keys for roles.
func write(s *tokenizer.Spec, keys bool) *ggufwrite.File {
	w := new(ggufwrite.File)
	w.KV("tokenizer.ggml.model", s.Model)
	w.KV("tokenizer.ggml.pre", s.Pre)
	w.KV("tokenizer.ggml.tokens", s.Tokens)
	types := make([]int32, len(s.Types))
	for i, t := range s.Types {
		types[i] = int32(t)
	}
	w.KV("tokenizer.ggml.token_type", types)
	w.KV("tokenizer.ggml.merges", s.Merges)
	if keys {
		for _, r := range []tokenizer.Role{tokenizer.BOS, tokenizer.EOS, tokenizer.EOT, tokenizer.EOM, tokenizer.UNK, tokenizer.PAD,
			tokenizer.FIMPre, tokenizer.FIMSuf, tokenizer.FIMMid, tokenizer.FIMPad, tokenizer.FIMRep, tokenizer.FIMSep} {
			if id, ok := s.Special[r]; ok {
				w.KV("tokenizer.ggml."+keyOf[r], uint32(id))
			}
		}
	}
	return w
}

func read(t *testing.T, w *ggufwrite.File) (*tokenizer.Spec, error) {
	b, err := w.Bytes()
	require.NoError(t, err)
	f, err := ggufio.Parse("v.gguf", b)
	require.NoError(t, err)
	return gguf.FromGGUF(f)
}

// TestFromGGUFAsLlamaCpp checks that the small vocabularies of the tokenizer's oracle
// survive a file unchanged. Where llama.cpp found no keys for BOS and EOS, its defaults
// must come back.
func TestFromGGUFAsLlamaCpp(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "tokenizer", "smollm2.json"))
	require.NoError(t, err)
	var oracle struct {
		Models []struct {
			Name string          `json:"name"`
			Keys bool            `json:"keys"`
			Spec json.RawMessage `json:"spec"`
		} `json:"models"`
	}
	require.NoError(t, json.Unmarshal(b, &oracle))
	without := 0
	for _, m := range oracle.Models {
		want, err := tokenizer.Unmarshal(m.Spec)
		require.NoError(t, err, m.Name)
		got, err := read(t, write(want, m.Keys))
		require.NoError(t, err, m.Name)
		assert.Equal(t, want, got, m.Name)
		if !m.Keys {
			without++
		}
	}
	assert.Positive(t, without, "no vocabulary tests the default ids")
}

func TestFromGGUFModel(t *testing.T) {
	path := os.Getenv("MODEL")
	if path == "" {
		path = filepath.Join("..", "..", "testdata", "model", "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	f, err := ggufio.Open(path)
	require.NoError(t, err, "this test needs the demo model: set MODEL, or put it at testdata/model")
	s, err := gguf.FromGGUF(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, "gpt2", s.Model)
	assert.Equal(t, "smollm", s.Pre)
	assert.Len(t, s.Tokens, 49152)
	assert.Len(t, s.Types, 49152)
	assert.Len(t, s.Merges, 48900)
	assert.Equal(t, map[tokenizer.Role]int32{tokenizer.BOS: 1, tokenizer.EOS: 2, tokenizer.UNK: 0, tokenizer.PAD: 2}, s.Special)
	assert.False(t, s.AddBOS)
	assert.Contains(t, s.ChatTemplate, "add_generation_prompt")
	assert.Equal(t, "<|im_start|>", s.Tokens[1], "strings outlive the mapping")
}

func TestFromGGUFErrors(t *testing.T) {
	small := func() *tokenizer.Spec {
		return &tokenizer.Spec{Model: "gpt2", Pre: "smollm", Tokens: []string{"a", "b"}, Types: []tokenizer.TokenType{1, 1},
			Merges: []string{"a b"}, Special: map[tokenizer.Role]int32{tokenizer.EOS: 1}}
	}
	got, err := read(t, write(small(), true))
	require.NoError(t, err)
	assert.Equal(t, small(), got, "default ids only in a vocabulary that has them")

	with := func(change func(*tokenizer.Spec)) *ggufwrite.File {
		s := small()
		change(s)
		return write(s, true)
	}
	add := func(key string, v any) *ggufwrite.File {
		w := write(small(), true)
		w.KV(key, v)
		return w
	}
	var none, noPre ggufwrite.File
	none.KV("general.architecture", "llama")
	noPre.KV("tokenizer.ggml.model", "gpt2")
	noPre.KV("tokenizer.ggml.tokens", []string{"a"})
	noPre.KV("tokenizer.ggml.merges", []string{"a b"})
	cases := []struct {
		file *ggufwrite.File
		want string
	}{
		{&none, `v.gguf: key tokenizer.ggml.model is missing: the file has no tokenizer`},
		{&noPre, `gguf: v.gguf: key tokenizer.ggml.pre is missing, which says how text is cut before merges: llama.cpp takes a default for it`},
		{with(func(s *tokenizer.Spec) { s.Pre = "default" }), `gguf: v.gguf: tokenizer.ggml.pre is "default", for which llama.cpp takes the default`},
		{with(func(s *tokenizer.Spec) { s.Model = "bert" }), `gguf: v.gguf: tokenizer.ggml.model "bert" is not supported`},
		{with(func(s *tokenizer.Spec) { s.Pre = "viking" }), `pre-tokenizer "viking" (tokenizer.ggml.pre) is not supported; of llama.cpp's these are: codeshell, command-r,`},
		{with(func(s *tokenizer.Spec) { s.Special[tokenizer.EOS] = 2 }), "tokenizer.ggml.eos_token_id is 2, the vocabulary has 0 to 1"},
		{with(func(s *tokenizer.Spec) { s.Types[1] = 9 }), "token 1 has type 9, want 0 to 6"},
		{add("tokenizer.ggml.add_bos_token", uint8(1)), `key "tokenizer.ggml.add_bos_token" is u8, want bool`},
		{add("tokenizer.ggml.add_bos_token", true), "the bos token is to be added, but there is none"},
		{add("tokenizer.ggml.add_space_prefix", true), "tokenizer.ggml.add_space_prefix is true, which is not supported"},
		{add("tokenizer.chat_template", []string{"x"}), `key "tokenizer.chat_template" is array of string, want string`},
		{add("tokenizer.ggml.eot_token_id", uint32(7)), "tokenizer.ggml.eot_token_id is 7, the vocabulary has 0 to 1"},
	}
	for _, c := range cases {
		_, err := read(t, c.file)
		assert.ErrorContains(t, err, c.want)
	}
	// As in llama.cpp it is as if these were not there.
	for _, key := range []string{"prefix", "padding", "unknown", "fim_rep"} {
		got, err := read(t, add("tokenizer.ggml."+key+"_token_id", uint32(7)))
		require.NoError(t, err)
		assert.Equal(t, small(), got)
	}
}

// TestSentencePieceFromGGUF: the defaults of SentencePiece vocabularies, and what a file says instead.
func TestSentencePieceFromGGUF(t *testing.T) {
	read := func(change func(*ggufwrite.File)) (*tokenizer.Spec, error) {
		var f ggufwrite.File
		f.KV("general.architecture", "llama")
		f.KV("tokenizer.ggml.model", "llama")
		f.KV("tokenizer.ggml.pre", "default")
		f.KV("tokenizer.ggml.tokens", []string{"<unk>", "<s>", "</s>", "a"})
		f.KV("tokenizer.ggml.token_type", []int32{2, 3, 3, 1})
		if change != nil {
			change(&f)
		}
		data, err := f.Bytes()
		require.NoError(t, err)
		file, err := ggufio.Parse("v.gguf", data)
		require.NoError(t, err)
		return gguf.FromGGUF(file)
	}
	s, err := read(nil)
	require.NoError(t, err)
	require.Equal(t, map[tokenizer.Role]int32{tokenizer.UNK: 0, tokenizer.BOS: 1, tokenizer.EOS: 2}, s.Special)
	require.True(t, s.AddBOS)
	require.True(t, s.SpacePrefix)
	require.Empty(t, s.Pre)
	s, err = read(func(f *ggufwrite.File) {
		f.KV("tokenizer.ggml.scores", []float32{0, 0, 0, -1.5})
		f.KV("tokenizer.ggml.bos_token_id", uint32(2))
		f.KV("tokenizer.ggml.add_bos_token", false)
		f.KV("tokenizer.ggml.add_space_prefix", false)
	})
	require.NoError(t, err)
	require.Equal(t, int32(2), s.Special[tokenizer.BOS])
	require.Equal(t, []float32{0, 0, 0, -1.5}, s.Scores)
	require.False(t, s.AddBOS)
	require.False(t, s.SpacePrefix)
	_, err = read(func(f *ggufwrite.File) { f.KV("tokenizer.ggml.scores", []float32{0}) })
	require.ErrorContains(t, err, "1 scores for 4 tokens")
}
