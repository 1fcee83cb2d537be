package tokenizer

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Tokenizer encodes and decodes text.
type Tokenizer struct {
	pieces   []string      // by ID: the bytes that the token stands for
	kinds    []tokenTraits // by ID
	specials []special
	stages   []*regexp.Regexp
	newer    newer            // of what the stages are shown
	whole    map[string]int32 // words that are tokens as they stand; nil where merges decide
	merges   *merges
	scored   *pieces  // of a SentencePiece vocabulary, which has no merges
	prefix   bool     // such a text begins with a space
	ruled    *ruled   // of a vocabulary with rules, which has neither
	marked   []string // by ID, where Decode takes away what marks of the first token stand for: the texts
	ends     []int32
	roles    map[Role]int32
	addBOS   bool
	addEOS   bool
	nfc      bool
	template string
}

// New checks the Spec and returns a Tokenizer, which does not keep the Spec.
func New(s *Spec) (*Tokenizer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	n := len(s.Tokens)
	texts := make([]string, n)
	kinds := make([]tokenTraits, n)
	tokenID := make(map[string]int32, n)
	for id := range s.Tokens {
		texts[id] = s.text(id)
		kinds[id] = kindOf(s.typ(id))
		tokenID[texts[id]] = int32(id)
	}
	t := &Tokenizer{
		kinds:    kinds,
		ends:     ends(s.Special, tokenID, kinds),
		roles:    maps.Clone(s.Special),
		addBOS:   s.AddBOS,
		addEOS:   s.AddEOS,
		nfc:      s.NFC,
		template: s.ChatTemplate,
	}
	t.specials = specials(texts, kinds)
	written := fromAlphabet // what a token's text stands for
	switch {
	case s.Rules != nil:
		t.ruled, written = newRuled(s, kinds), spelling
		if s.Rules.Strip == stripMarks {
			t.marked = slices.Clone(texts)
			for _, id := range s.Rules.Late {
				t.marked[id] = s.Rules.normalize(texts[id])
			}
		}
	case s.Model == sentencePiece:
		t.scored, t.prefix, written = newPieces(texts, slices.Clone(s.Scores), tokenID), s.SpacePrefix, spelling
		if s.StripBehind {
			stripBehind(t.specials)
		}
	default:
		pre := preTokenizerOf(s.Pre)
		t.merges, t.stages = newMerges(s.Merges, tokenID), pre.compile()
		if t.newer = newerInLlamaCpp; pre.json {
			t.newer = newerInJSON
		}
		if s.Whole != nil && *s.Whole || s.Whole == nil && pre.whole {
			t.whole = make(map[string]int32, n)
			for id, text := range texts {
				if inAlphabet(text) {
					t.whole[fromAlphabet(text)] = int32(id)
				}
			}
		}
	}
	t.pieces = make([]string, n)
	for id, text := range texts {
		switch k := kinds[id]; {
		case k&(isUnknown|isControl|isUserDefined) != 0:
			t.pieces[id] = text
			if t.ruled != nil {
				if slices.Contains(s.Rules.Late, int32(id)) {
					text = s.Rules.normalize(text)
				}
				t.pieces[id] = spelling(text)
			}
		case k&isNormal != 0:
			t.pieces[id] = written(text)
		case k&isByte != 0:
			b, _ := byteToken(text) // Check has made sure that it is one
			t.pieces[id] = string([]byte{b})
		}
	}
	return t, nil
}

// Size returns the number of tokens. IDs are 0 to Size-1.
func (t *Tokenizer) Size() int { return len(t.pieces) }

// ID returns the token of a role. ok is false if the model has none.
func (t *Tokenizer) ID(r Role) (int32, bool) {
	id, ok := t.roles[r]
	return id, ok
}

// AddBOS reports whether the model expects a whole prompt to begin with the BOS token.
// Encode does not add it, because only the caller knows whether its text is a whole
// prompt.
func (t *Tokenizer) AddBOS() bool { return t.addBOS }

// AddEOS reports whether the model expects a whole prompt to end with the EOS token;
// see AddBOS.
func (t *Tokenizer) AddEOS() bool { return t.addEOS }

// ChatTemplate returns the model's Jinja template, for package chat; "" if there is
// none.
func (t *Tokenizer) ChatTemplate() string { return t.template }

// EndOfGeneration returns the tokens that end an answer, ascending.
func (t *Tokenizer) EndOfGeneration() []int32 { return slices.Clone(t.ends) }

// IsEndOfGeneration reports whether the token ends an answer.
func (t *Tokenizer) IsEndOfGeneration(id int32) bool {
	_, ok := slices.BinarySearch(t.ends, id)
	return ok
}

// MissingBytes returns the bytes that have no token. Encode loses them.
func (t *Tokenizer) MissingBytes() []byte {
	switch {
	case t.ruled != nil:
		return nil // what is unknown is replaced
	case t.scored != nil:
		return t.scored.missing()
	}
	return t.merges.missing()
}

// Encode returns the token IDs of text. If special is set, texts such as <|im_start|>
// become the tokens that they name. Otherwise they are encoded like any other text, as
// input from outside should be. Encode adds no BOS or EOS token. It takes O(n log n) time
// for a text of n bytes.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	if t.ruled != nil {
		return t.ruled.encode(text, special)
	}
	out := []int32{}
	m, s := merger{merges: t.merges}, speller{pieces: t.scored}
	begins := true // a text, or what follows a special token
	for _, f := range partition(t.specials, text, special) {
		if t.nfc && f.id < 0 {
			f.text = nfc.String(f.text)
		}
		switch {
		case f.id >= 0:
			out = append(out, f.id)
		case t.scored != nil:
			if t.prefix && begins {
				f.text = " " + f.text
			}
			out = s.encode(strings.ReplaceAll(f.text, " ", spaceMark), out)
		default:
			text, shown := spelled(f.text, t.newer)
			split(t.stages, text, shown, func(word []byte) {
				if id, ok := t.whole[string(word)]; ok {
					out = append(out, id)
					return
				}
				out = m.encode(word, out)
			})
		}
		begins = f.id >= 0
	}
	return out
}

// Decode joins the pieces of ids. If special is set, control tokens appear as their
// texts; otherwise they are left out. An ID outside the vocabulary gives U+FFFD. The
// result need not be UTF-8, because ids may end in the middle of a character. The space with which
// Encode lets a text begin is taken away again; what continues a text is decoded by a [Decoder].
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	if t.ruled != nil {
		return t.decodeRuled(ids, special)
	}
	var b strings.Builder
	for i, id := range ids {
		p := t.Piece(id, special)
		if i == 0 && t.prefix {
			p = strings.TrimPrefix(p, " ")
		}
		b.WriteString(p)
	}
	return b.String()
}

// decodeRuled is Decode for vocabularies with rules, where the first token that is shown loses its spaces, not the first of all.
func (t *Tokenizer) decodeRuled(ids []int32, special bool) string {
	var b strings.Builder
	shown := false
	for _, id := range ids {
		p := t.Piece(id, special)
		if !shown && t.marked != nil && id >= 0 && int(id) < len(t.pieces) && p != "" && t.kinds[id]&isByte == 0 {
			p = strings.ReplaceAll(t.marked[id], spaceMark, "")
		}
		shown = shown || special || id < 0 || int(id) >= len(t.pieces) || t.kinds[id]&(isUnknown|isControl) == 0
		b.WriteString(p)
	}
	if t.ruled.Strip == stripSpace {
		return strings.TrimPrefix(b.String(), " ")
	}
	return b.String()
}

// Piece is Decode for one ID. It returns all bytes of the token, which may be only a
// part of a character.
func (t *Tokenizer) Piece(id int32, special bool) string {
	if id < 0 || int(id) >= len(t.pieces) {
		return string(utf8.RuneError)
	}
	if !special && t.kinds[id]&(isUnknown|isControl) != 0 {
		return ""
	}
	return t.pieces[id]
}
