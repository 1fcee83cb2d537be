package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// sentencePiece is the [Spec.Model] of SentencePiece vocabularies.
const sentencePiece = "llama"

// TokenType says what a token is for, with GGUF's numbering
// (tokenizer.ggml.token_type).
type TokenType uint8

// The token types.
const (
	Undefined   TokenType = 0
	Normal      TokenType = 1
	Unknown     TokenType = 2 // stands for text that cannot be encoded
	Control     TokenType = 3 // such as <|im_end|>: looked for in raw text only when that is allowed
	UserDefined TokenType = 4 // always looked for in raw text
	Unused      TokenType = 5
	Byte        TokenType = 6 // such as <0x41>
)

// Role is the use that a model has for one particular token.
type Role string

// The roles. The fim ones belong to "fill in the middle" prompts. llama.cpp counts the
// last three among the tokens that end generation.
const (
	BOS    Role = "bos" // beginning of sequence
	EOS    Role = "eos" // end of sequence
	EOT    Role = "eot" // end of turn
	EOM    Role = "eom" // end of message
	UNK    Role = "unk" // unknown
	PAD    Role = "pad" // padding
	FIMPre Role = "fim_pre"
	FIMSuf Role = "fim_suf"
	FIMMid Role = "fim_mid"
	FIMPad Role = "fim_pad"
	FIMRep Role = "fim_rep"
	FIMSep Role = "fim_sep"
)

var roles = []Role{BOS, EOS, EOT, EOM, UNK, PAD, FIMPre, FIMSuf, FIMMid, FIMPad, FIMRep, FIMSep}

// The bounds on a Spec. The largest published vocabularies have about 2^18 tokens.
const (
	maxTokens   = 1 << 20
	maxMerges   = 1 << 21
	maxTokenLen = 1 << 16 // bytes
	maxTemplate = 1 << 20 // bytes
)

// Spec is the data that a tokenizer is made from.
type Spec struct {
	Model        string         // "gpt2", byte-level BPE; "llama", SentencePiece; "bpe" or "unigram", of characters, with Rules
	Pre          string         // one of [PreTokenizers], or what [FromJSON] names; "" unless byte-level
	Tokens       []string       // by ID; in GPT-2's byte alphabet, unless the token is special
	Types        []TokenType    // by ID; nil: all Normal
	Merges       []string       // by rank: two symbols with a space between them; none for SentencePiece
	Scores       []float32      // by ID, of SentencePiece; nil: all 0
	SpacePrefix  bool           // of SentencePiece: a text begins with a space
	StripBehind  bool           // of SentencePiece: white space behind special tokens is left out, as in Phi 3
	NFC          bool           // text is brought to Unicode's form C first
	Whole        *bool          // of byte-level BPE: a word that is a token is that token; nil: as the pre-tokenizer has it
	LogProbs     []float64      // by ID, of unigram vocabularies: of the first Rules.Size tokens
	Rules        *Rules         // of bpe and unigram; else nil
	Special      map[Role]int32 // IDs by role; a role without a token is absent
	AddBOS       bool           // prompts begin with the BOS token
	AddEOS       bool           // prompts end with the EOS token
	ChatTemplate string         // Jinja source; "" if there is none
}

// Check returns the first thing that is wrong with the Spec: an unsupported model or
// pre-tokenizer, by name; a token that appears twice or is not UTF-8; a merge without
// two parts; an ID outside the vocabulary.
func (s *Spec) Check() error {
	ruled := s.Model == characters || s.Model == unigrams
	switch {
	case ruled != (s.Rules != nil) || s.Model != unigrams && s.LogProbs != nil || s.Model != "gpt2" && s.Whole != nil || ruled && s.Scores != nil:
		return fmt.Errorf("tokenizer: a vocabulary of the model %.40q has fields of another one, or lacks its own", s.Model)
	case ruled: // checkRuled follows
	case s.Model == sentencePiece:
		if s.Pre != "" || len(s.Merges) > 0 {
			return errors.New("tokenizer: a SentencePiece vocabulary has scores, no pre-tokenizer and no merges")
		}
		if len(s.Scores) != len(s.Tokens) && s.Scores != nil {
			return fmt.Errorf("tokenizer: %d scores for %d tokens", len(s.Scores), len(s.Tokens))
		}
		for id, v := range s.Scores {
			if v-v != 0 {
				return fmt.Errorf("tokenizer: the score of token %d is %v", id, v)
			}
		}
	case s.Model != "gpt2":
		return fmt.Errorf("tokenizer: model %q is not supported; supported: \"gpt2\" (byte-level BPE), \"llama\" (SentencePiece), \"bpe\" and \"unigram\" (of characters)", s.Model)
	case s.Scores != nil || s.SpacePrefix || s.StripBehind:
		return errors.New("tokenizer: scores, a prefix of a space and white space that is left out are of SentencePiece vocabularies alone")
	case preTokenizerOf(s.Pre) == nil:
		return fmt.Errorf("tokenizer: pre-tokenizer %q is not supported; supported: %s", s.Pre, strings.Join(PreTokenizers(), ", "))
	}
	if n := len(s.Tokens); n == 0 || n > maxTokens {
		return fmt.Errorf("tokenizer: %d tokens, want 1 to %d", n, maxTokens)
	}
	if len(s.Types) != len(s.Tokens) && s.Types != nil {
		return fmt.Errorf("tokenizer: %d token types for %d tokens", len(s.Types), len(s.Tokens))
	}
	if len(s.Merges) > maxMerges {
		return fmt.Errorf("tokenizer: %d merges, at most %d are supported", len(s.Merges), maxMerges)
	}
	if len(s.ChatTemplate) > maxTemplate {
		return fmt.Errorf("tokenizer: chat template of %d bytes, at most %d are supported", len(s.ChatTemplate), maxTemplate)
	}
	seen := make(map[string]int, len(s.Tokens))
	for id := range s.Tokens {
		t := s.text(id)
		if len(t) > maxTokenLen {
			return fmt.Errorf("tokenizer: token %d has %d bytes, at most %d are supported", id, len(t), maxTokenLen)
		}
		if !utf8.ValidString(t) {
			return fmt.Errorf("tokenizer: token %d (%.40q) is not UTF-8", id, t)
		}
		if first, dup := seen[t]; dup {
			return fmt.Errorf("tokenizer: token %.40q has ids %d and %d", t, first, id)
		}
		seen[t] = id
		switch typ := s.typ(id); {
		case typ > Byte:
			return fmt.Errorf("tokenizer: token %d (%.40q) has type %d, want 0 to %d", id, t, typ, Byte)
		case typ == Byte:
			if _, ok := byteToken(t); !ok {
				return fmt.Errorf("tokenizer: token %d (%.40q) is of type byte, want a text like <0x41>", id, t)
			}
		}
	}
	for rank, m := range s.Merges {
		if _, _, ok := cutMerge(m); !ok || !utf8.ValidString(m) {
			return fmt.Errorf("tokenizer: merge %d (%.40q) is not two symbols with a space between", rank, m)
		}
	}
	for r, id := range s.Special {
		if !slices.Contains(roles, r) {
			return fmt.Errorf("tokenizer: role %.40q is unknown", r)
		}
		if id < 0 || int(id) >= len(s.Tokens) {
			return fmt.Errorf("tokenizer: %s is token %d, the vocabulary has 0 to %d", r, id, len(s.Tokens)-1)
		}
	}
	for _, x := range []struct {
		add  bool
		role Role
	}{{s.AddBOS, BOS}, {s.AddEOS, EOS}} {
		if _, ok := s.Special[x.role]; x.add && !ok {
			return fmt.Errorf("tokenizer: the %s token is to be added, but there is none", x.role)
		}
	}
	if ruled {
		return s.checkRuled()
	}
	return nil
}

// checkRuled checks what only vocabularies with rules have, once all else is known to be right.
func (s *Spec) checkRuled() error {
	if s.Pre != "" || s.SpacePrefix || s.StripBehind || s.NFC {
		return errors.New("tokenizer: rules take the place of a pre-tokenizer, a prefix of a space, white space that is left out, and form C")
	}
	if err := s.Rules.check(len(s.Tokens)); err != nil {
		return err
	}
	if s.Model == unigrams {
		if _, ok := s.Special[UNK]; !ok || len(s.Merges) > 0 {
			return errors.New("tokenizer: a unigram vocabulary has an unknown token and no merges")
		}
		if len(s.LogProbs) != s.Rules.Size {
			return fmt.Errorf("tokenizer: %d logarithms of probabilities for %d tokens", len(s.LogProbs), s.Rules.Size)
		}
		for id, v := range s.LogProbs {
			if v-v != 0 {
				return fmt.Errorf("tokenizer: the logarithm of token %d's probability is %v", id, v)
			}
		}
		return nil
	}
	have := make(map[string]bool, s.Rules.Size)
	for id := range s.Rules.Size {
		have[s.Tokens[id]] = s.typ(id) != Unused
	}
	for rank, m := range s.Merges {
		if left, right, ok := cutMerge(m); ok && !(have[left] && have[right] && have[left+right]) {
			return fmt.Errorf("tokenizer: merge %d (%.40q) is not of tokens to a token", rank, m)
		}
	}
	return nil
}

// text returns the token's text. Empty ones get the name that llama.cpp gives them.
func (s *Spec) text(id int) string {
	if t := s.Tokens[id]; t != "" {
		return t
	}
	return fmt.Sprintf("[EMPTY_%d]", id)
}

func (s *Spec) typ(id int) TokenType {
	if s.Types == nil {
		return Normal
	}
	return s.Types[id]
}

// cutMerge splits "Ġ t" at its first space after the first byte, as llama.cpp does,
// because a symbol may begin with a space.
func cutMerge(m string) (left, right string, ok bool) {
	if m == "" {
		return "", "", false
	}
	i := strings.IndexByte(m[1:], ' ')
	if i < 0 || i+2 == len(m) {
		return "", "", false
	}
	return m[:i+1], m[i+2:], true
}
