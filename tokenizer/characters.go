package tokenizer

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// bytesOf returns the tokens <0x00> to <0xFF> of a model; −1 where there is none.
func bytesOf(tokenID map[string]int32) (out [256]int32) {
	for b := range out {
		out[b] = -1
		if id, ok := tokenID[fmt.Sprintf("<0x%02X>", b)]; ok {
			out[b] = id
		}
	}
	return out
}

// modelTokens returns the IDs of the tokens that a model with rules has.
func modelTokens(s *Spec) map[string]int32 {
	out := make(map[string]int32, s.Rules.Size)
	for id := range s.Rules.Size {
		if s.typ(id) != Unused {
			out[s.Tokens[id]] = int32(id)
		}
	}
	return out
}

// charMerger encodes by merges of characters. Its symbols are the tokens themselves.
type charMerger struct {
	merger
	*charMerges
}

// charMerges is what a charMerger knows. Many goroutines may use it.
type charMerges struct {
	merges merges
	id     map[string]int32
	bytes  [256]int32
	byByte bool  // characters that are no tokens become bytes
	fuse   bool  // unknown characters in a row are one unknown token
	unk    int32 // −1: unknown characters are left out
	// together are the pairs of characters that some merge makes neighbours in a token. Between any others a text may
	// be cut, because no merge joins across, and what is short is encoded faster.
	together map[[2]rune]bool
	free     bool // that holds for characters that become bytes too
	idle     sync.Pool
}

func newCharacters(s *Spec) *charMerges {
	tokenID := modelTokens(s)
	c := &charMerges{id: tokenID, byByte: s.Rules.Bytes, fuse: s.Rules.Fuse, unk: -1, bytes: bytesOf(tokenID), together: map[[2]rune]bool{}}
	if id, ok := s.Special[UNK]; ok {
		c.unk = id
	}
	c.free = c.byByte && !slices.Contains(c.bytes[:], -1)
	c.merges.pairs = make(map[[2]symbol]merge, len(s.Merges))
	for rank, m := range s.Merges {
		left, right, _ := cutMerge(m)
		l, r := tokenID[left], tokenID[right]
		c.merges.pairs[[2]symbol{symbol(l), symbol(r)}] = merge{rank: int32(rank), result: symbol(tokenID[left+right])} // of equal ones the last counts
		x, _ := utf8.DecodeLastRuneInString(left)
		y, _ := utf8.DecodeRuneInString(right)
		c.together[[2]rune{x, y}] = true
		c.free = c.free && !slices.Contains(c.bytes[:], l) && !slices.Contains(c.bytes[:], r)
	}
	c.idle.New = func() any { return &charMerger{merger: merger{merges: &c.merges}, charMerges: c} }
	return c
}

func (c *charMerges) encode(word string, out []int32) []int32 {
	m := c.idle.Get().(*charMerger)
	defer c.idle.Put(m)
	begin, last, lastKnown := 0, rune(-1), false
	for i, r := range word {
		_, known := c.id[string(r)]
		if last >= 0 && (c.free || known && lastKnown) && !c.together[[2]rune{last, r}] {
			out = m.encode(word[begin:i], out)
			begin = i
		}
		last, lastKnown = r, known
	}
	return m.encode(word[begin:], out)
}

func (c *charMerger) encode(word string, out []int32) []int32 {
	c.begin()
	waiting := false // for the unknown token of the last characters
	for _, r := range word {
		text := string(r)
		if id, ok := c.id[text]; ok {
			if waiting {
				c.add(symbol(c.unk))
				waiting = false
			}
			c.add(symbol(id))
			continue
		}
		if c.byByte && c.spelled(text) {
			// The unknown token stays behind these bytes, if one waits: as in Hugging Face's tokenizers.
			for _, b := range []byte(text) {
				c.add(symbol(c.charMerges.bytes[b]))
			}
			continue
		}
		if c.unk >= 0 {
			if waiting && !c.fuse {
				c.add(symbol(c.unk))
			}
			waiting = true
		}
	}
	if waiting {
		c.add(symbol(c.unk))
	}
	c.join()
	for i := range c.nodes {
		if s := c.nodes[i].sym; s != dead {
			out = append(out, int32(s))
		}
	}
	return out
}

// spelled reports whether all bytes of a text are tokens.
func (c *charMerges) spelled(text string) bool {
	for _, b := range []byte(text) {
		if c.bytes[b] < 0 {
			return false
		}
	}
	return true
}
