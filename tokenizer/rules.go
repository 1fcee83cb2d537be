package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Models of tokenizer.json files whose symbols are characters. ▁ stands for a space in both.
const (
	characters = "bpe"     // merges of characters
	unigrams   = "unigram" // the tokens that are together the most probable
)

// Rules say how a tokenizer.json has text read that is characters and not bytes: steps that GGUF files do not name.
type Rules struct {
	Size      int     // tokens of the model: those behind them are found in raw text alone
	Normalize []Alter // what is done to a text between special tokens first, in this order
	// Space says whether ▁ comes before a text that does not begin with it: "" no, "first" at the beginning of all text
	// alone, "always" behind special tokens too.
	Space  string
	Marks  bool // spaces become ▁ once a text has been cut at special tokens
	Words  bool // each ▁ begins a word, which is encoded by itself
	Bytes  bool // a character that is no token becomes the tokens of its bytes
	Fuse   bool // unknown characters in a row are one unknown token
	Strip  string
	Before []int32 // tokens that take white space before them along
	Behind []int32 // tokens that take white space behind them along
	Late   []int32 // tokens that are looked for in normalized text, not in raw text
}

// Values of Rules.Strip: what Decode takes away from the beginning of a text.
const (
	stripSpace = "space" // a space
	stripMarks = "marks" // all that ▁ of the first token stands for
)

// Alter is a step of normalization: From becomes To, or what Kind says.
type Alter struct{ Kind, From, To string }

// Kinds of [Alter].
const (
	alterPrepend = "prepend" // To comes before a text that is not empty
	alterReplace = "replace" // each From becomes To
	alterSpaces  = "spaces"  // each two or more spaces become To
	alterLeft    = "left"    // white space at the beginning is left out
	alterRight   = "right"   // white space at the end is left out
)

func (a Alter) apply(s string) string {
	switch a.Kind {
	case alterPrepend:
		if s == "" {
			return s
		}
		return a.To + s
	case alterReplace:
		return strings.ReplaceAll(s, a.From, a.To)
	case alterSpaces:
		return replaceRuns(s, a.To)
	case alterLeft:
		return strings.TrimLeftFunc(s, unicode.IsSpace)
	case alterRight:
		return strings.TrimRightFunc(s, unicode.IsSpace)
	}
	return forms[a.Kind].String(s)
}

// replaceRuns replaces each run of two or more spaces.
func replaceRuns(s, by string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "  ")
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i] + by)
		s = strings.TrimLeft(s[i:], " ")
	}
}

func (r *Rules) normalize(s string) string {
	for _, a := range r.Normalize {
		s = a.apply(s)
	}
	return s
}

// check returns what is wrong with rules for n tokens.
func (r *Rules) check(n int) error {
	if r.Size < 1 || r.Size > n {
		return fmt.Errorf("tokenizer: the model has %d tokens, the vocabulary %d", r.Size, n)
	}
	if !slices.Contains([]string{"", "first", "always"}, r.Space) || !slices.Contains([]string{"", stripSpace, stripMarks}, r.Strip) {
		return fmt.Errorf("tokenizer: rules %.40q and %.40q for spaces are unknown", r.Space, r.Strip)
	}
	if r.Space != "" && !r.Marks {
		return errors.New("tokenizer: rules have a space before a text and none within")
	}
	if len(r.Normalize) > maxSteps {
		return fmt.Errorf("tokenizer: %d steps of normalization, at most %d are supported", len(r.Normalize), maxSteps)
	}
	growth := 1.0
	for _, a := range r.Normalize {
		_, form := forms[a.Kind]
		if !form && !slices.Contains([]string{alterPrepend, alterReplace, alterSpaces, alterLeft, alterRight}, a.Kind) {
			return fmt.Errorf("tokenizer: normalization %.40q is unknown", a.Kind)
		}
		switch a.Kind {
		case alterReplace:
			growth *= max(1, float64(len(a.To))/float64(max(1, len(a.From))))
		case alterSpaces:
			growth *= max(1, float64(len(a.To))/2)
		}
		// Text may become longer, but steps one after another make no page of a character.
		if growth > maxGrowth || len(a.To) > maxReplacement || a.Kind == alterReplace && a.From == "" || !utf8.ValidString(a.From+a.To) {
			return fmt.Errorf("tokenizer: normalization of %.40q to %.40q is not supported", a.From, a.To)
		}
	}
	for _, list := range [][]int32{r.Before, r.Behind, r.Late} {
		for _, id := range list {
			if id < 0 || int(id) >= n {
				return fmt.Errorf("tokenizer: rules name token %d, the vocabulary has 0 to %d", id, n-1)
			}
		}
	}
	return nil
}

const (
	maxSteps       = 16
	maxReplacement = 16 // bytes
	maxGrowth      = 64
)

// cutter finds special tokens as Hugging Face's tokenizers do: from the left, of several that begin at a place the longest.
type cutter struct {
	first [256][]int // by first byte: the lengths that such tokens have, the longest first
	token map[string]added
}

// added is a token that is looked for in text.
type added struct {
	id             int32
	always         bool // even if special tokens are not allowed
	before, behind bool // takes white space along
}

func newCutter() *cutter { return &cutter{token: map[string]added{}} }

func (c *cutter) add(text string, a added) {
	if text == "" {
		return
	}
	if _, have := c.token[text]; have {
		return
	}
	c.token[text] = a
	if l := &c.first[text[0]]; !slices.Contains(*l, len(text)) {
		*l = append(*l, len(text))
		slices.SortFunc(*l, func(a, b int) int { return cmp.Compare(b, a) })
	}
}

// part is a part of a text, or if id >= 0 a token; begin is where it begins in the text.
type part struct {
	text  string
	id    int32
	begin int
}

// cut calls use with the parts of a text.
func (c *cutter) cut(text string, allowed bool, use func(part)) {
	done := 0
	for at := 0; at < len(text); at++ {
		for _, n := range c.first[text[at]] {
			if at+n > len(text) {
				continue
			}
			a, ok := c.token[text[at:at+n]]
			if !ok {
				continue
			}
			begin, end := at, at+n
			at = end - 1 // the search goes on behind it, also if it is not allowed
			if !a.always && !allowed {
				break
			}
			if a.before {
				begin = max(done, len(strings.TrimRightFunc(text[:begin], unicode.IsSpace)))
			}
			if a.behind {
				end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			}
			if done < begin {
				use(part{text[done:begin], -1, done})
			}
			use(part{id: a.id})
			done = end
			break
		}
	}
	if done < len(text) {
		use(part{text[done:], -1, done})
	}
}

// ruled encodes text by rules.
type ruled struct {
	*Rules
	raw, late *cutter
	model     interface {
		// encode appends the tokens of a word, which is valid UTF-8 and not empty.
		encode(word string, out []int32) []int32
	}
}

func newRuled(s *Spec, kinds []tokenTraits) *ruled {
	rules := *s.Rules
	r := &ruled{Rules: &rules, raw: newCutter(), late: newCutter()}
	late := map[int32]bool{}
	for _, id := range r.Late {
		late[id] = true
	}
	for id, k := range kinds {
		if k&(isUnknown|isControl|isUserDefined) == 0 {
			continue
		}
		id := int32(id)
		a := added{id, k&(isUnknown|isControl) == 0, slices.Contains(r.Before, id), slices.Contains(r.Behind, id)}
		if text := s.text(int(id)); late[id] {
			r.late.add(r.normalize(text), a)
		} else {
			r.raw.add(text, a)
		}
	}
	if s.Model == characters {
		r.model = newCharacters(s)
	} else {
		r.model = newUnigrams(s)
	}
	return r
}

func (r *ruled) encode(text string, special bool) []int32 {
	out := []int32{}
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // each byte that is no character becomes U+FFFD
	}
	r.raw.cut(text, special, func(p part) {
		if p.id >= 0 {
			out = append(out, p.id)
			return
		}
		first := p.begin == 0
		r.late.cut(r.normalize(p.text), special, func(p part) {
			if p.id >= 0 {
				out = append(out, p.id)
				return
			}
			out = r.words(p.text, first && p.begin == 0, out)
		})
	})
	return out
}

// words encodes a text without special tokens.
func (r *ruled) words(text string, first bool, out []int32) []int32 {
	if r.Marks {
		text = strings.ReplaceAll(text, " ", spaceMark)
		if (r.Space == "always" || r.Space == "first" && first) && !strings.HasPrefix(text, spaceMark) {
			text = spaceMark + text
		}
	}
	for r.Words && text != "" {
		next := strings.Index(text[1:], spaceMark) // not the one that it begins with, whose first byte is left out
		if next < 0 {
			break
		}
		out = r.model.encode(text[:next+1], out)
		text = text[next+1:]
	}
	if text == "" {
		return out
	}
	return r.model.encode(text, out)
}
