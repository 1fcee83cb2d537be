package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// A SentencePiece vocabulary (in GGUF files the model "llama") has texts with scores in place of merges. Encoding begins
// with the characters of a text, in which ▁ stands for each space, and joins the two neighbours that are together the
// token with the highest score, until no two are one. A character that is no token becomes the tokens of its bytes.

const spaceMark = "▁"

// pieces is a vocabulary of texts with scores.
type pieces struct {
	id    map[string]int32
	score []float32  // by ID
	bytes [256]int32 // the tokens of bytes; -1: there is none
	// together are the pairs of characters that are neighbours in a token. Between any others a text may be cut, because
	// nothing is joined across, and what is short is encoded faster. Two pairs that look the same here only cut less.
	together map[uint64]bool
}

// charLen returns the length of the character that begins at a place: as llama.cpp, which takes it from the first byte,
// whatever follows.
func charLen(text string, at int) int {
	return min(int("\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x02\x02\x03\x04"[text[at]>>4]), len(text)-at)
}

// packed returns the bytes of a character as a number.
func packed(char string) (n uint64) {
	for i := range len(char) {
		n = n<<8 | uint64(char[i])
	}
	return n
}

func newPieces(texts []string, scores []float32, tokenID map[string]int32) *pieces {
	p := &pieces{id: tokenID, score: scores}
	if p.score == nil {
		p.score = make([]float32, len(texts))
	}
	p.together = map[uint64]bool{}
	for text := range tokenID {
		last := uint64(0)
		for at := 0; at < len(text); {
			n := charLen(text, at)
			next := packed(text[at : at+n])
			if at > 0 {
				p.together[last<<32|next] = true
			}
			last, at = next, at+n
		}
	}
	for b := range p.bytes {
		p.bytes[b] = -1
		for _, text := range []string{fmt.Sprintf("<0x%02X>", b), string([]byte{byte(b)})} {
			if id, ok := tokenID[text]; ok {
				p.bytes[b] = id
				break
			}
		}
	}
	return p
}

// span is a part of the text: one character at first, later a token.
type span struct {
	begin, end int32 // end = 0 once it was joined to its left neighbour
	prev, next int32 // -1 at the ends
}

// join is a pair of neighbouring spans whose texts, put together, are a token.
type join struct {
	score       float32
	left, right int32
	size        int32 // of both: the pair is stale if one of them has grown
}

func (a join) before(b join) bool { return a.score > b.score || a.score == b.score && a.left < b.left }

// speller holds the buffers for encoding one text after another.
type speller struct {
	*pieces
	spans []span
	queue heap[join]
}

// encode appends the IDs of a text, in which spaces have been replaced.
func (s *speller) encode(text string, out []int32) []int32 {
	begin, last := 0, uint64(0)
	for at := 0; at < len(text); {
		n := charLen(text, at)
		next := packed(text[at : at+n])
		if at > 0 && !s.together[last<<32|next] {
			out = s.part(text[begin:at], out)
			begin = at
		}
		last, at = next, at+n
	}
	return s.part(text[begin:], out)
}

// part is encode for what may be joined as a whole. Every join takes a span away and adds at most
// two to the queue, so a text of n characters takes O(n log n) time.
func (s *speller) part(text string, out []int32) []int32 {
	s.spans, s.queue = s.spans[:0], s.queue[:0]
	for at := 0; at < len(text); {
		n := charLen(text, at)
		i := int32(len(s.spans))
		s.spans = append(s.spans, span{int32(at), int32(at + n), i - 1, i + 1})
		at += n
	}
	if len(s.spans) == 0 {
		return out
	}
	s.spans[len(s.spans)-1].next = -1
	for i := range len(s.spans) - 1 {
		s.consider(text, int32(i), int32(i)+1)
	}
	for len(s.queue) > 0 {
		j := s.queue.pop()
		left, right := &s.spans[j.left], &s.spans[j.right]
		if left.end == 0 || right.end == 0 || right.end-left.begin != j.size || left.next != j.right {
			continue
		}
		left.end, left.next = right.end, right.next
		right.end = 0
		if left.next >= 0 {
			s.spans[left.next].prev = j.left
		}
		s.consider(text, left.prev, j.left)
		s.consider(text, j.left, left.next)
	}
	for i := int32(0); i >= 0; i = s.spans[i].next {
		piece := text[s.spans[i].begin:s.spans[i].end]
		if id, ok := s.id[piece]; ok {
			out = append(out, id)
			continue
		}
		for _, b := range []byte(piece) {
			if id := s.bytes[b]; id >= 0 {
				out = append(out, id)
			}
		}
	}
	return out
}

func (s *speller) consider(text string, l, r int32) {
	if l < 0 || r < 0 {
		return
	}
	begin, end := s.spans[l].begin, s.spans[r].end
	if end-begin > maxTokenLen {
		return
	}
	if id, ok := s.id[text[begin:end]]; ok {
		s.queue.push(join{s.score[id], l, r, end - begin})
	}
}

// spelling returns the bytes that a token's text stands for.
func spelling(text string) string { return strings.ReplaceAll(text, spaceMark, " ") }

// missing returns the bytes that have no token.
func (p *pieces) missing() []byte {
	var out []byte
	for b, id := range p.bytes {
		if id < 0 {
			out = append(out, byte(b))
		}
	}
	return slices.Clip(out)
}
