package tokenizer

import (
	"math"
	"unicode/utf8"
)

// A unigram vocabulary has a logarithm of a probability for each token. A word is cut into the tokens whose sum is the
// greatest (Viterbi), in sums of float64 from left to right, as in Hugging Face's tokenizers: of equal sums the one that was found
// first, whose last token is the longer one, counts.

// unknownPenalty is how much less probable an unknown character is than the least probable token.
const unknownPenalty = 10

type unigramModel struct {
	id      map[string]int32
	logs    []float64
	unknown float64
	unk     int32
	bytes   [256]int32
	byByte  bool
	// tree has the beginnings of tokens: of a node and a byte the next node. Node 0 is the empty text.
	tree map[uint64]int32
	ends []int32 // by node: the token that ends there, or −1
}

func newUnigrams(s *Spec) *unigramModel {
	u := &unigramModel{id: modelTokens(s), logs: s.LogProbs, unk: s.Special[UNK], byByte: s.Rules.Bytes, unknown: math.Inf(1), tree: map[uint64]int32{}, ends: []int32{-1}}
	u.bytes = bytesOf(u.id)
	for text, id := range u.id {
		u.unknown = min(u.unknown, u.logs[id])
		at := int32(0)
		for _, b := range []byte(text) {
			next, ok := u.tree[edge(at, b)]
			if !ok {
				next = int32(len(u.ends))
				u.ends = append(u.ends, -1)
				u.tree[edge(at, b)] = next
			}
			at = next
		}
		u.ends[at] = id
	}
	u.unknown -= unknownPenalty
	return u
}

func edge(node int32, b byte) uint64 { return uint64(node)<<8 | uint64(b) }

// reached is the best way to cut a word up to some place.
type reached struct {
	sum   float64
	begin int32 // of its last token; −1: there is no way yet
	id    int32
}

func (u *unigramModel) encode(word string, out []int32) []int32 {
	best := make([]reached, len(word)+1)
	for i := range best {
		best[i].begin = -1
	}
	for at := 0; at < len(word); {
		here := best[at].sum
		_, size := utf8.DecodeRuneInString(word[at:])
		alone := false // the character is a token
		node := int32(0)
		for end := at; end < len(word); {
			next, ok := u.tree[edge(node, word[end])]
			if !ok {
				break
			}
			node = next
			end++
			id := u.ends[node]
			if id < 0 {
				continue
			}
			if b := &best[end]; b.begin < 0 || u.logs[id]+here > b.sum {
				*b = reached{u.logs[id] + here, int32(at), id}
			}
			alone = alone || end-at == size
		}
		if b := &best[at+size]; !alone && (b.begin < 0 || u.unknown+here > b.sum) {
			*b = reached{u.unknown + here, int32(at), u.unk}
		}
		at += size
	}
	first := len(out)
	for end := len(word); end > 0; {
		begin := int(best[end].begin)
		for best[end].id == u.unk && begin > 0 && best[begin].id == u.unk { // unknown characters in a row are one
			begin = int(best[begin].begin)
		}
		out = u.token(word[begin:end], out)
		end = begin
	}
	// The tokens were found from the end.
	for i, j := first, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// token appends the tokens of a part of a word, the last one first.
func (u *unigramModel) token(text string, out []int32) []int32 {
	if id, ok := u.id[text]; ok {
		return append(out, id)
	}
	n := len(out)
	for i := len(text) - 1; u.byByte && i >= 0; i-- {
		id := u.bytes[text[i]]
		if id < 0 {
			return append(out[:n], u.unk)
		}
		out = append(out, id)
	}
	if len(out) == n {
		out = append(out, u.unk)
	}
	return out
}
