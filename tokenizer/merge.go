package tokenizer

import "slices"

// symbol numbers a text that occurs while merging: one of the 256 characters of the
// alphabet, a part of a merge, or the result of a merge.
type symbol int32

// merges is the merge table over symbols.
type merges struct {
	texts  []string          // by symbol
	number map[string]symbol // inverse of texts
	bytes  [256]symbol       // the characters of the alphabet
	pairs  map[[2]symbol]merge
	ids    [][]int32 // by symbol: its IDs when no merge applies any more
}

type merge struct {
	rank   int32
	result symbol
}

func newMerges(list []string, tokenID map[string]int32) *merges {
	m := &merges{
		number: make(map[string]symbol, len(list)+256),
		pairs:  make(map[[2]symbol]merge, len(list)),
	}
	for b, r := range alphabet {
		m.bytes[b] = m.symbol(string(r))
	}
	for rank, s := range list {
		left, right, _ := cutMerge(s) // Check has made sure that there are two parts
		pair := [2]symbol{m.symbol(left), m.symbol(right)}
		if _, again := m.pairs[pair]; !again { // of equal merges the first one counts
			m.pairs[pair] = merge{rank: int32(rank), result: m.symbol(left + right)}
		}
	}
	m.ids = make([][]int32, len(m.texts))
	for s, text := range m.texts {
		m.ids[s] = tokensOf(text, tokenID)
	}
	return m
}

func (m *merges) symbol(text string) symbol {
	if s, ok := m.number[text]; ok {
		return s
	}
	s := symbol(len(m.texts))
	m.texts = append(m.texts, text)
	m.number[text] = s
	return s
}

// tokensOf returns the token with this text. If there is none, it looks up the text's
// UTF-8 bytes one by one as llama.cpp does, which finds ASCII characters and loses all
// others.
func tokensOf(text string, tokenID map[string]int32) []int32 {
	if id, ok := tokenID[text]; ok {
		return []int32{id}
	}
	var ids []int32
	for i := range len(text) {
		if id, ok := tokenID[text[i:i+1]]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// node is a symbol in the list that a word consists of at the moment.
type node struct {
	sym        symbol // dead once it was merged into its left neighbour
	prev, next int32  // -1 at the ends
}

const dead symbol = -1

// candidate is a pair of neighbours that a merge could join.
type candidate struct {
	rank     int32
	at       int32 // position of the left node in the word
	l, r     symbol
	rightPos int32
}

func (a candidate) before(b candidate) bool {
	return a.rank < b.rank || a.rank == b.rank && a.at < b.at
}

// merger holds the buffers for merging one word after another.
type merger struct {
	*merges
	nodes []node
	queue heap[candidate]
}

// encode merges one word, given as bytes, and appends its ids.
func (m *merger) encode(word []byte, out []int32) []int32 {
	m.begin()
	for _, b := range word {
		m.add(m.bytes[b])
	}
	m.join()
	for i := int32(0); i >= 0; i = m.nodes[i].next {
		out = append(out, m.ids[m.nodes[i].sym]...)
	}
	return out
}

// begin begins a word, add adds a symbol to it, and join merges them.
func (m *merger) begin() { m.nodes = m.nodes[:0] }

func (m *merger) add(s symbol) {
	i := int32(len(m.nodes))
	m.nodes = append(m.nodes, node{sym: s, prev: i - 1, next: i + 1})
}

// Every merge removes a node and adds at most two candidates, so a word of n symbols takes O(n log n) time.
func (m *merger) join() {
	if len(m.nodes) == 0 {
		return
	}
	m.nodes[len(m.nodes)-1].next = -1
	m.queue = m.queue[:0]
	for i := range len(m.nodes) - 1 {
		m.consider(int32(i), int32(i)+1)
	}
	for len(m.queue) > 0 {
		c := m.queue.pop()
		left, right := &m.nodes[c.at], &m.nodes[c.rightPos]
		// A candidate is stale if either side has changed since it was queued. If both
		// are alive and unchanged, they are still neighbours.
		if left.sym != c.l || right.sym != c.r || left.next != c.rightPos {
			continue
		}
		left.sym = m.pairs[[2]symbol{c.l, c.r}].result
		right.sym = dead
		left.next = right.next
		if right.next >= 0 {
			m.nodes[right.next].prev = c.at
			m.consider(c.at, right.next)
		}
		if left.prev >= 0 {
			m.consider(left.prev, c.at)
		}
	}
}

func (m *merger) consider(l, r int32) {
	ls, rs := m.nodes[l].sym, m.nodes[r].sym
	if p, ok := m.pairs[[2]symbol{ls, rs}]; ok {
		m.queue.push(candidate{rank: p.rank, at: l, rightPos: r, l: ls, r: rs})
	}
}

// missing returns the bytes that have no token of their own.
func (m *merges) missing() []byte {
	var out []byte
	for b, s := range m.bytes {
		if len(m.ids[s]) == 0 {
			out = append(out, byte(b))
		}
	}
	return slices.Clip(out)
}
