package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Tokenizer encodes and decodes text.
type Tokenizer struct {
	pieces   []string      // by id: what the token stands for
	kinds    []tokenTraits // by id
	specials []special
	merges   *merges
	ends     []int32
	roles    map[Role]int32
	addBOS   bool
	addEOS   bool
	template string
}

// New makes a Tokenizer after checking the Spec, which it does not keep.
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
		merges:   newMerges(s.Merges, tokenID),
		ends:     ends(s.Special, tokenID, kinds),
		roles:    maps.Clone(s.Special),
		addBOS:   s.AddBOS,
		addEOS:   s.AddEOS,
		template: s.ChatTemplate,
	}
	t.specials = specials(texts, kinds)
	t.pieces = make([]string, n)
	for id, text := range texts {
		switch k := kinds[id]; {
		case k&(isUnknown|isControl|isUserDefined) != 0:
			t.pieces[id] = text
		case k&isNormal != 0:
			t.pieces[id] = fromAlphabet(text)
		case k&isByte != 0:
			b, _ := byteToken(text) // Check has seen that it is one
			t.pieces[id] = string([]byte{b})
		}
	}
	return t, nil
}

// Size is the number of tokens; ids are 0 to Size-1.
func (t *Tokenizer) Size() int { return len(t.pieces) }

// ID is the token of a role, if the model has one.
func (t *Tokenizer) ID(r Role) (int32, bool) {
	id, ok := t.roles[r]
	return id, ok
}

// AddBOS and AddEOS say whether the model wants a whole prompt to begin with
// the BOS token, and to end with the EOS token. Encode adds neither: only the
// caller knows whether its text is a whole prompt.
func (t *Tokenizer) AddBOS() bool { return t.addBOS }

// AddEOS: see AddBOS.
func (t *Tokenizer) AddEOS() bool { return t.addEOS }

// ChatTemplate is the model's Jinja template, for package chat; "": none.
func (t *Tokenizer) ChatTemplate() string { return t.template }

// EndOfGeneration is the tokens that end an answer, in rising order.
func (t *Tokenizer) EndOfGeneration() []int32 { return slices.Clone(t.ends) }

// IsEndOfGeneration reports whether the token ends an answer.
func (t *Tokenizer) IsEndOfGeneration(id int32) bool {
	_, ok := slices.BinarySearch(t.ends, id)
	return ok
}

// MissingBytes is the bytes that have no token: Encode loses them.
func (t *Tokenizer) MissingBytes() []byte { return t.merges.missing() }

// Encode gives the ids of text. With special, texts such as <|im_end|> become
// their tokens; without, they are spelled out like any text, which is what
// input from outside wants. It adds no BOS or EOS token. The time is O(n log n)
// in the length of the text.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	out := []int32{}
	m := merger{merges: t.merges}
	var word []byte
	for _, f := range partition(t.specials, text, special) {
		if f.id >= 0 {
			out = append(out, f.id)
			continue
		}
		splitSmollm(decodeText(f.text), func(runes []rune) {
			word = word[:0]
			for _, r := range runes {
				word = appendCodePoint(word, r)
			}
			out = m.encode(word, out)
		})
	}
	return out
}

// Decode joins the pieces of ids. With special, control tokens appear with
// their texts; without, they are left out. An id outside the vocabulary gives
// U+FFFD. The result need not be UTF-8 when ids break a character apart.
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.Piece(id, special))
	}
	return b.String()
}

// Piece is Decode for one id, for all bytes of the token: they can be a part of
// a character.
func (t *Tokenizer) Piece(id int32, special bool) string {
	if id < 0 || int(id) >= len(t.pieces) {
		return string(utf8.RuneError)
	}
	if !special && t.kinds[id]&(isUnknown|isControl) != 0 {
		return ""
	}
	return t.pieces[id]
}
