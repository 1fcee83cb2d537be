package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// published are the expressions by which tokenizer.json files split text, and the pre-tokenizers that they are.
var published = map[string]string{
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: "llama-bpe",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      "qwen2",
}

// huggingFace is what is read of a tokenizer.json.
type huggingFace struct {
	Added []struct {
		ID      int64  `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
		LStrip  bool   `json:"lstrip"`
		RStrip  bool   `json:"rstrip"`
		Word    bool   `json:"single_word"`
	} `json:"added_tokens"`
	Normalizer *step `json:"normalizer"`
	Pre        *step `json:"pre_tokenizer"`
	Post       *step `json:"post_processor"`
	Model      struct {
		Type         string           `json:"type"`
		Vocab        map[string]int64 `json:"vocab"`
		Merges       []merged         `json:"merges"`
		Whole        bool             `json:"ignore_merges"`
		ByteFallback bool             `json:"byte_fallback"`
		Dropout      *float64         `json:"dropout"`
		Prefix       *string          `json:"continuing_subword_prefix"`
		Suffix       *string          `json:"end_of_word_suffix"`
	} `json:"model"`
}

// step is a normalizer, a pre-tokenizer or a post-processor; a sequence has several.
type step struct {
	Type        string `json:"type"`
	Pres        []step `json:"pretokenizers"`
	Normalizers []step `json:"normalizers"`
	Processors  []step `json:"processors"`

	Pattern  struct{ Regex string } `json:"pattern"`
	Behavior string                 `json:"behavior"`
	Invert   bool                   `json:"invert"`
	Digits   bool                   `json:"individual_digits"`
	Space    bool                   `json:"add_prefix_space"`
	UseRegex *bool                  `json:"use_regex"`

	Single []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
}

// parts are the steps of a sequence, or the step itself.
func (s *step) parts() []step {
	if s == nil {
		return nil
	}
	if s.Type != "Sequence" {
		return []step{*s}
	}
	return slices.Concat(s.Pres, s.Normalizers, s.Processors)
}

// merged is a merge: "a b", or in newer files ["a", "b"].
type merged string

// UnmarshalJSON implements [json.Unmarshaler].
func (m *merged) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(m))
	}
	var pair []string
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a merge of %d symbols, want 2", len(pair))
	}
	*m = merged(pair[0] + " " + pair[1])
	return nil
}

// FromJSON reads a tokenizer.json of Hugging Face's: byte-level BPE with a pre-tokenizer of the table. bos and eos are the
// tokens that begin and end a text, and chat the template, which such a file does not say; "" stands for none. What is not
// supported is named all at once.
func FromJSON(data []byte, bos, eos, chat string) (*Spec, error) {
	if len(data) > maxBlob {
		return nil, fmt.Errorf("tokenizer: %d bytes of JSON, at most %d are supported", len(data), maxBlob)
	}
	var h huggingFace
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	s := &Spec{Model: "gpt2", Special: map[Role]int32{}, ChatTemplate: chat}
	var missing []string
	fault := func(format string, args ...any) { missing = append(missing, fmt.Sprintf(format, args...)) }
	switch m := h.Model; {
	case m.Type != "BPE" && m.Type != "":
		fault("model %q is not supported, BPE is", m.Type)
	case m.ByteFallback:
		fault("BPE over characters with bytes for the others (byte_fallback) is not supported")
	case m.Dropout != nil || m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "":
		fault("dropout, prefixes and suffixes of symbols are not supported")
	}
	for _, n := range h.Normalizer.parts() {
		if n.Type != "NFC" {
			fault("normalizer %q is not supported", n.Type)
		}
		s.NFC = true
	}
	var err error
	if s.Pre, err = h.preTokenizer(); err != nil {
		fault("%v", err)
	} else if p := preTokenizerOf(s.Pre); p.whole != h.Model.Whole {
		// Another row of the table may be the same but for this.
		i := slices.IndexFunc(preTokenizers, func(q preTokenizer) bool { return slices.Equal(q.stages, p.stages) && q.whole == h.Model.Whole })
		if i < 0 {
			fault("ignore_merges is %v, which is not supported with this pre-tokenizer", h.Model.Whole)
		} else {
			s.Pre = preTokenizers[i].names[0]
		}
	}
	if err := s.fill(&h); err != nil {
		fault("%v", err)
	}
	if len(missing) > 0 {
		return nil, errors.New("tokenizer: " + strings.Join(missing, "; "))
	}
	id := func(token string) (int32, bool) {
		i := slices.Index(s.Tokens, token)
		return int32(i), i >= 0
	}
	for _, x := range []struct {
		role  Role
		token string
	}{{BOS, bos}, {EOS, eos}} {
		if i, ok := id(x.token); ok && x.token != "" {
			s.Special[x.role] = i
		} else if x.token != "" {
			return nil, fmt.Errorf("tokenizer: the %s token %.40q is not in the vocabulary", x.role, x.token)
		}
	}
	for _, p := range h.Post.parts() {
		if p.Type != "TemplateProcessing" || len(p.Single) == 0 {
			continue
		}
		if first := p.Single[0].Special; first != nil {
			i, ok := id(first.ID)
			if !ok || bos != "" && first.ID != bos {
				return nil, fmt.Errorf("tokenizer: the post-processor puts %.40q before a text, which is not the BOS token %.40q", first.ID, bos)
			}
			s.Special[BOS], s.AddBOS = i, true
		}
		if last := p.Single[len(p.Single)-1].Special; last != nil && len(p.Single) > 1 {
			if last.ID != eos {
				return nil, fmt.Errorf("tokenizer: the post-processor puts %.40q behind a text, which is not the EOS token %.40q", last.ID, eos)
			}
			s.AddEOS = true
		}
	}
	return s, s.Check()
}

// preTokenizer returns the pre-tokenizer that the file's steps are.
func (h *huggingFace) preTokenizer() (string, error) {
	split, digits := "", false
	for _, p := range h.Pre.parts() {
		switch {
		case p.Type == "ByteLevel" && p.Space:
			return "", errors.New("a prefix of a space (add_prefix_space) is not supported")
		case p.Type == "ByteLevel":
			if split == "" && (p.UseRegex == nil || *p.UseRegex) {
				split = "gpt-2"
			}
		case p.Type == "Digits" && p.Digits && split == "":
			digits = true
		case p.Type == "Split" && p.Behavior == "Isolated" && !p.Invert && split == "" && !digits:
			name, ok := published[p.Pattern.Regex]
			if !ok {
				return "", fmt.Errorf("the expression %.300q is not supported", p.Pattern.Regex)
			}
			split = name
		default:
			return "", fmt.Errorf("pre-tokenizer %q is not supported in this place", p.Type)
		}
	}
	switch {
	case digits && split == "gpt-2":
		return "smollm", nil
	case split == "" || digits:
		return "", errors.New("these pre-tokenizers are not supported")
	}
	return split, nil
}

// fill sets tokens, types and merges.
func (s *Spec) fill(h *huggingFace) error {
	n := int64(0)
	for _, id := range h.Model.Vocab {
		n = max(n, id+1)
	}
	for _, a := range h.Added {
		n = max(n, a.ID+1)
	}
	if n > maxTokens {
		return fmt.Errorf("%d tokens, at most %d are supported", n, maxTokens)
	}
	s.Tokens, s.Types = make([]string, n), make([]TokenType, n)
	for i := range s.Types {
		s.Types[i] = Unused
	}
	for text, id := range h.Model.Vocab {
		if id < 0 {
			return fmt.Errorf("token %.40q has the number %d", text, id)
		}
		s.Tokens[id], s.Types[id] = text, Normal
	}
	for _, a := range h.Added {
		if a.ID < 0 || a.LStrip || a.RStrip || a.Word {
			return fmt.Errorf("added token %.40q has a number below 0, or takes what is beside it (lstrip, rstrip, single_word): not supported", a.Content)
		}
		s.Tokens[a.ID], s.Types[a.ID] = a.Content, UserDefined
		if a.Special {
			s.Types[a.ID] = Control
		}
	}
	for _, m := range h.Model.Merges {
		s.Merges = append(s.Merges, string(m))
	}
	return nil
}
