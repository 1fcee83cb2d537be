package gguf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/tokenizer"
)

// defaultSpecial is the token that llama.cpp assumes for BOS and EOS if the file of a
// "gpt2" model does not name them: GPT-NeoX's <|endoftext|>. It applies only if the
// vocabulary is that large.
const defaultSpecial = 11

// roleKeys are the metadata keys of the tokens that have a role. If two keys name one
// role, the later one in this list counts: the last three keys are older names of the
// fim ones.
var roleKeys = []struct {
	role tokenizer.Role
	key  string
}{
	{tokenizer.BOS, "tokenizer.ggml.bos_token_id"},
	{tokenizer.EOS, "tokenizer.ggml.eos_token_id"},
	{tokenizer.EOT, "tokenizer.ggml.eot_token_id"},
	{tokenizer.EOM, "tokenizer.ggml.eom_token_id"},
	{tokenizer.UNK, "tokenizer.ggml.unknown_token_id"},
	{tokenizer.PAD, "tokenizer.ggml.padding_token_id"},
	{tokenizer.FIMPre, "tokenizer.ggml.fim_pre_token_id"},
	{tokenizer.FIMSuf, "tokenizer.ggml.fim_suf_token_id"},
	{tokenizer.FIMMid, "tokenizer.ggml.fim_mid_token_id"},
	{tokenizer.FIMPad, "tokenizer.ggml.fim_pad_token_id"},
	{tokenizer.FIMRep, "tokenizer.ggml.fim_rep_token_id"},
	{tokenizer.FIMSep, "tokenizer.ggml.fim_sep_token_id"},
	{tokenizer.FIMPre, "tokenizer.ggml.prefix_token_id"},
	{tokenizer.FIMSuf, "tokenizer.ggml.suffix_token_id"},
	{tokenizer.FIMMid, "tokenizer.ggml.middle_token_id"},
}

// FromGGUF reads the tokenizer of a model file from the keys tokenizer.ggml.* and
// tokenizer.chat_template. It refuses by name a tokenizer model or pre-tokenizer that
// package tokenizer does not have. The result does not refer to the file's memory.
func FromGGUF(f *ggufio.File) (*tokenizer.Spec, error) {
	s := &tokenizer.Spec{Special: map[tokenizer.Role]int32{}}
	var err error
	if s.Model, err = f.KV.String("tokenizer.ggml.model"); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	spm := s.Model == "llama" // SentencePiece
	// If the key is absent, llama.cpp assumes "default", which Check refuses.
	if s.Pre, err = optional(f.KV.String, "tokenizer.ggml.pre", "default"); err != nil {
		return nil, err
	}
	name, err := optional(f.KV.String, "general.name", "")
	if err != nil {
		return nil, err
	}
	if spm {
		// llama.cpp knows these vocabularies by the name of the model.
		name = strings.ToLower(name)
		s.StripBehind = strings.Contains(name, "phi-3") || strings.Contains(name, "phi3")
		s.Pre = "" // llama.cpp takes no notice of it
		if s.Scores, err = optional(f.KV.Float32s, "tokenizer.ggml.scores", nil); err != nil {
			return nil, err
		}
	}
	if s.Tokens, err = f.KV.Strings("tokenizer.ggml.tokens"); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	types, err := optional(f.KV.Int32s, "tokenizer.ggml.token_type", nil)
	if err != nil {
		return nil, err
	}
	if types != nil {
		s.Types = make([]tokenizer.TokenType, len(types))
	}
	for id, t := range types {
		if t < 0 || t > int32(tokenizer.Byte) {
			return nil, fmt.Errorf("gguf: %s: tokenizer.ggml.token_type: token %d has type %d, want 0 to %d", f.Name, id, t, tokenizer.Byte)
		}
		s.Types[id] = tokenizer.TokenType(t)
	}
	if !spm {
		if s.Merges, err = f.KV.Strings("tokenizer.ggml.merges"); err != nil {
			return nil, fmt.Errorf("gguf: %w", err)
		}
	}
	if spm && len(s.Tokens) > 2 {
		s.Special[tokenizer.UNK], s.Special[tokenizer.BOS], s.Special[tokenizer.EOS] = 0, 1, 2
	} else if !spm && len(s.Tokens) > defaultSpecial {
		s.Special[tokenizer.BOS], s.Special[tokenizer.EOS] = defaultSpecial, defaultSpecial
	}
	for _, rk := range roleKeys {
		id, err := optional(f.KV.Uint32, rk.key, 0)
		if err != nil {
			return nil, err
		}
		if !f.KV.Has(rk.key) {
			continue
		}
		if int64(id) >= int64(len(s.Tokens)) {
			return nil, fmt.Errorf("gguf: %s: %s is %d, the vocabulary has 0 to %d", f.Name, rk.key, id, len(s.Tokens)-1)
		}
		s.Special[rk.role] = int32(id)
	}
	if s.AddBOS, err = optional(f.KV.Bool, "tokenizer.ggml.add_bos_token", spm || tokenizer.AddsBOS(s.Pre)); err != nil {
		return nil, err
	}
	if s.AddEOS, err = optional(f.KV.Bool, "tokenizer.ggml.add_eos_token", false); err != nil {
		return nil, err
	}
	prefix, err := optional(f.KV.Bool, "tokenizer.ggml.add_space_prefix", spm)
	if err != nil {
		return nil, err
	}
	if s.SpacePrefix = prefix && spm; prefix && !spm {
		return nil, fmt.Errorf("gguf: %s: tokenizer.ggml.add_space_prefix is true, which is not supported for model %q", f.Name, s.Model)
	}
	if s.ChatTemplate, err = optional(f.KV.String, "tokenizer.chat_template", ""); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name, err)
	}
	return s, nil
}

// optional returns get(key), or the fallback if the file has no such key.
func optional[T any](get func(string) (T, error), key string, fallback T) (T, error) {
	v, err := get(key)
	if errors.Is(err, ggufio.ErrMissing) {
		return fallback, nil
	}
	if err != nil {
		return v, fmt.Errorf("gguf: %w", err)
	}
	return v, nil
}
