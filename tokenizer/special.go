package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// tokenTraits says what a token counts as, which may be several things. It begins as
// the token's type; ends.go changes some tokens because of their text.
type tokenTraits uint8

const (
	isNormal tokenTraits = 1 << iota
	isUnknown
	isControl
	isUserDefined
	isByte
)

func kindOf(t TokenType) tokenTraits {
	switch t {
	case Normal:
		return isNormal
	case Unknown:
		return isUnknown
	case Control:
		return isControl
	case UserDefined:
		return isUserDefined
	case Byte:
		return isByte
	}
	return 0
}

// special is a token that is looked for in raw text.
type special struct {
	id     int32
	text   string
	always bool // even if special tokens are not allowed
	strip  bool // white space behind it is left out
}

// specials lists the special tokens in the order in which they are looked for: longest
// first, then by ID. (llama.cpp leaves the order of equal lengths open.)
func specials(texts []string, kinds []tokenTraits) []special {
	var out []special
	for id, k := range kinds {
		if k&(isUnknown|isControl|isUserDefined) != 0 {
			out = append(out, special{id: int32(id), text: texts[id], always: k&(isUnknown|isControl) == 0})
		}
	}
	slices.SortStableFunc(out, func(a, b special) int { return cmp.Compare(len(b.text), len(a.text)) })
	return out
}

// notStripped are the special tokens behind which white space stays where it is left out behind the others.
var notStripped = []string{"<unk>", "<s>", "<|endoftext|>"}

// stripBehind marks the special tokens of Phi 3's vocabulary, where llama.cpp knows them by the model's name.
func stripBehind(list []special) {
	for i := range list {
		list[i].strip = !slices.Contains(notStripped, list[i].text)
	}
}

// fragment is raw text or, if id >= 0, a token.
type fragment struct {
	text string
	id   int32
}

// partition cuts special tokens out of text: first all occurrences of the first
// special, from the left, then those of the second in the remaining text, and so on.
func partition(list []special, text string, allowed bool) []fragment {
	if text == "" {
		return nil
	}
	frags := []fragment{{text: text, id: -1}}
	for _, s := range list {
		if !s.always && !allowed || !strings.Contains(text, s.text) {
			continue
		}
		var next []fragment
		for _, f := range frags {
			for f.id < 0 {
				i := strings.Index(f.text, s.text)
				if i < 0 {
					break
				}
				if i > 0 {
					next = append(next, fragment{text: f.text[:i], id: -1})
				}
				next = append(next, fragment{id: s.id})
				f.text = f.text[i+len(s.text):]
				if s.strip {
					f.text = strings.TrimLeft(f.text, " \t\n\v\f\r")
				}
			}
			if f.id >= 0 || f.text != "" {
				next = append(next, f)
			}
		}
		frags = next
	}
	return frags
}
