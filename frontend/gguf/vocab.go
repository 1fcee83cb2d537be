package gguf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
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

// decisive are the roles whose tokens decide where a text begins and an answer ends. For the others llama.cpp's way is right:
// a token that the vocabulary does not have is as if the key were not there.
var decisive = []tokenizer.Role{tokenizer.BOS, tokenizer.EOS, tokenizer.EOT, tokenizer.EOM}

// FromGGUF reads the tokenizer of a model file from the keys tokenizer.ggml.* and
// tokenizer.chat_template. It refuses by name a tokenizer model or pre-tokenizer that
// package tokenizer does not have. The result does not refer to the file's memory.
func FromGGUF(f *ggufio.File) (*tokenizer.Spec, error) {
	s, _, faults := readTokenizer(f)
	if err := frontend.Faults(faults); err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name, err)
	}
	return s, nil
}

// readTokenizer is FromGGUF that returns all faults, and what is in the file and not used.
func readTokenizer(f *ggufio.File) (s *tokenizer.Spec, remarks, faults []string) {
	s = &tokenizer.Spec{Special: map[tokenizer.Role]int32{}}
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	failed := func(err error) bool {
		if err != nil {
			fault("%s", plain(err))
		}
		return err != nil
	}
	var err error
	if s.Model, err = f.KV.String("tokenizer.ggml.model"); errors.Is(err, ggufio.ErrMissing) {
		fault("key tokenizer.ggml.model is missing: the file has no tokenizer")
		return s, nil, faults
	} else if failed(err) {
		return s, nil, faults
	}
	spm := s.Model == "llama" // SentencePiece
	if !spm && s.Model != "gpt2" {
		fault("tokenizer.ggml.model %.40q is not supported, \"gpt2\" (byte-level BPE) and \"llama\" (SentencePiece) are", s.Model)
		return s, nil, faults
	}
	s.Pre, err = optional(f.KV.String, "tokenizer.ggml.pre", "")
	failed(err)
	name, err := optional(f.KV.String, "general.name", "")
	failed(err)
	if spm {
		// llama.cpp knows these vocabularies by the name of the model.
		name = strings.ToLower(name)
		s.StripBehind = strings.Contains(name, "phi-3") || strings.Contains(name, "phi3")
		s.Pre = "" // llama.cpp takes no notice of it
		s.Scores, err = optional(f.KV.Float32s, "tokenizer.ggml.scores", nil)
		failed(err)
	} else if err == nil && !slices.Contains(tokenizer.PreTokenizers(), s.Pre) {
		fault("%s", preTokenizerFault(f, s.Pre))
	}
	if s.Tokens, err = f.KV.Strings("tokenizer.ggml.tokens"); failed(err) {
		return s, nil, faults
	}
	types, err := optional(f.KV.Int32s, "tokenizer.ggml.token_type", nil)
	failed(err)
	if types != nil {
		s.Types = make([]tokenizer.TokenType, len(types))
	}
	for id, t := range types {
		if t < 0 || t > int32(tokenizer.Byte) {
			fault("tokenizer.ggml.token_type: token %d has type %d, want 0 to %d", id, t, tokenizer.Byte)
			break
		}
		s.Types[id] = tokenizer.TokenType(t)
	}
	if !spm {
		s.Merges, err = f.KV.Strings("tokenizer.ggml.merges")
		failed(err)
	}
	if spm && len(s.Tokens) > 2 {
		s.Special[tokenizer.UNK], s.Special[tokenizer.BOS], s.Special[tokenizer.EOS] = 0, 1, 2
	} else if !spm && len(s.Tokens) > defaultSpecial {
		s.Special[tokenizer.BOS], s.Special[tokenizer.EOS] = defaultSpecial, defaultSpecial
	}
	rows := int64(len(s.Tokens)) // of them the model has an embedding
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Dims) == 2 {
		if rows = int64(t.Dims[1]); rows != int64(len(s.Tokens)) {
			fault("tokenizer.ggml.tokens has %d tokens, but tensor token_embd.weight has %d rows", len(s.Tokens), rows)
			rows = min(rows, int64(len(s.Tokens)))
		}
	}
	for _, rk := range roleKeys {
		id, err := optional(f.KV.Uint32, rk.key, 0)
		switch outside := fmt.Sprintf("%s is %d, the vocabulary has 0 to %d", rk.key, id, rows-1); {
		case failed(err) || !f.KV.Has(rk.key):
		case int64(id) < rows:
			s.Special[rk.role] = int32(id)
		case slices.Contains(decisive, rk.role):
			fault("%s", outside)
		default:
			remarks = append(remarks, "without effect, as in llama.cpp: "+outside)
		}
	}
	s.AddBOS, err = optional(f.KV.Bool, "tokenizer.ggml.add_bos_token", spm || tokenizer.AddsBOS(s.Pre))
	failed(err)
	s.AddEOS, err = optional(f.KV.Bool, "tokenizer.ggml.add_eos_token", false)
	failed(err)
	prefix, err := optional(f.KV.Bool, "tokenizer.ggml.add_space_prefix", spm)
	failed(err)
	if s.SpacePrefix = prefix && spm; prefix && !spm {
		fault("tokenizer.ggml.add_space_prefix is true, which is not supported for model %q", s.Model)
	}
	s.ChatTemplate, err = optional(f.KV.String, "tokenizer.chat_template", "")
	failed(err)
	if len(faults) == 0 {
		failed(s.Check())
	}
	return s, remarks, faults
}

// preTokenizerFault says what is wrong with the key of the pre-tokenizer, and what to do.
func preTokenizerFault(f *ggufio.File, pre string) string {
	const key = "tokenizer.ggml.pre"
	supported := strings.Join(tokenizer.PreTokenizers(), ", ")
	switch {
	case !f.KV.Has(key):
		return fmt.Sprintf("key %s is missing, which says how text is cut before merges: llama.cpp takes a default for it and warns that answers will be worse; convert the model anew, or add the key with gguf-py's gguf_new_metadata.py --pre-tokenizer NAME, where NAME is the model's (supported: %s)", key, supported)
	case pre == "" || pre == "default":
		return fmt.Sprintf("%s is %q, for which llama.cpp takes the default that it warns of where the key is missing: convert the model anew, or set the key with gguf-py's gguf_new_metadata.py --pre-tokenizer NAME, where NAME is the model's (supported: %s)", key, pre, supported)
	}
	return fmt.Sprintf("pre-tokenizer %.40q (%s) is not supported; of llama.cpp's these are: %s", pre, key, supported)
}

// plain is the text of an error without the file's name, which comes before all faults.
func plain(err error) string {
	var e *frontend.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// optional returns get(key), or the fallback if the file has no such key.
func optional[T any](get func(string) (T, error), key string, fallback T) (T, error) {
	v, err := get(key)
	if errors.Is(err, ggufio.ErrMissing) {
		return fallback, nil
	}
	return v, err
}
