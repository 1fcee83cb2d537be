package oracle

import "encoding/binary"

// token is an opaque value of one cell (a run of bytes that nothing splits).
// Equal computations have equal tokens: they are numbers of hash-consed terms.
type token int32

// tokens interns terms. Keys are exact, never hashes, so that two different
// terms cannot share a token.
type tokens struct {
	byKey map[string]token
	// tainted terms depend on undefined bytes by way of a read whose bytes are
	// certain: that of a command of known effects.
	tainted []bool
	buf     []byte
}

func newTokens() *tokens { return &tokens{byKey: map[string]token{}} }

func (ts *tokens) intern(key []byte, tainted bool) token {
	if t, ok := ts.byKey[string(key)]; ok {
		return t
	}
	t := token(len(ts.tainted))
	ts.byKey[string(key)] = t
	ts.tainted = append(ts.tainted, tainted)
	return t
}

// leaf is a value that no command computed: the contents of cell of a memory,
// in a given replay where they change from replay to replay.
func (ts *tokens) leaf(sort byte, name string, cell int64, replay int) token {
	k := append(ts.buf[:0], 'L', sort)
	k = binary.AppendVarint(k, cell)
	k = binary.AppendVarint(k, int64(replay))
	k = append(k, name...)
	ts.buf = k
	return ts.intern(k, sort == leafPoison)
}

// The sorts of leaf.
const (
	leafWeight = 'w'
	leafInput  = 'i'
	leafState  = 's'
	leafPoison = 'p'
)

// list is the value of an ordered list of tokens under a name (the text of a
// command).
func (ts *tokens) list(name string, in []token, certain bool) token {
	k := append(ts.buf[:0], 'T')
	k = binary.AppendUvarint(k, uint64(len(name)))
	k = append(k, name...)
	tainted := false
	for _, t := range in {
		k = binary.AppendUvarint(k, uint64(t))
		tainted = tainted || ts.tainted[t] && certain
	}
	ts.buf = k
	return ts.intern(k, tainted)
}

// result is cell i of what a command computed from in; old is the cell's
// former value for a may-write, and −1 for a must-write.
func (ts *tokens) result(in token, i int, old token, certain bool) token {
	k := append(ts.buf[:0], 'R')
	k = binary.AppendUvarint(k, uint64(in))
	k = binary.AppendUvarint(k, uint64(i))
	k = binary.AppendVarint(k, int64(old))
	ts.buf = k
	return ts.intern(k, ts.tainted[in] || certain && old >= 0 && ts.tainted[old])
}
