package oracle

import "encoding/binary"

// token is an opaque value of one cell (a run of bytes that nothing splits).
// Equal computations have equal tokens: they are numbers of hash-consed terms.
type token int32

// tokens interns terms. Keys are exact, never hashes, so that two different
// terms cannot share a token.
type tokens struct {
	leaves  map[leaf]token
	rows    map[row]*[]token // the leaves of small cells, by cell; −1 where there is none yet
	lastRow row              // the one that was asked for last: cells are asked for in a row
	last    *[]token
	// Likewise the cells of what a command must write, by the value of all of them.
	written     map[token]*[]token
	lastIn      token
	lastWritten *[]token
	// Likewise the cells of what a command may write: what a cell held before mostly
	// follows from what the command read, so the first value of each has a place.
	kept     map[keptRow]*[keptCells]keptCell
	lastRowK keptRow
	lastKept *[keptCells]keptCell
	names    map[string]int32
	lists    map[string]token
	results  map[result]token // of the rest
	// tainted terms depend on undefined bytes by way of a read whose bytes are
	// certain: that of a command of known effects.
	tainted []bool
	buf     []byte
	terms   bool           // see [Options.Terms]
	ones    map[token]bool // cells of weights that hold nothing but the f32 1
}

// leaf is a value that no command computed: what a cell of a memory holds, in a
// given replay where that changes from replay to replay.
type leaf struct {
	sort   byte
	name   int32
	replay int32
	cell   int64
}

// row is what the leaves of one memory have in common.
type row struct {
	sort         byte
	name, replay int32
}

// denseCells is the number of cells of a memory whose leaves have a place of their
// own: nearly every value that a judge looks up is one of them.
const denseCells = 1 << 16

// The sorts of leaf.
const (
	leafWeight = 'w' // cell is a byte
	leafRun    = 'W' // a whole run of a weight: cell is its first byte, replay its length
	leafInput  = 'i'
	leafState  = 's' // before the first replay
	leafPoison = 'p' // undefined
)

// result is cell i of what a command computed from in; old is the cell's former
// value for a may-write, and −1 for a must-write.
type result struct {
	in, old token
	i       int32
}

// keptRow is a row of cells of what a command computed from in.
type keptRow struct {
	in  token
	row int32
}

const keptCells = 32

// keptCell is a cell that may be written: what it held before, and the value then; 0
// and 0 where nobody has asked yet.
type keptCell struct{ old, now token }

func newTokens(terms bool) *tokens {
	return &tokens{leaves: map[leaf]token{}, rows: map[row]*[]token{}, written: map[token]*[]token{}, kept: map[keptRow]*[keptCells]keptCell{}, names: map[string]int32{}, lists: map[string]token{}, results: map[result]token{}, terms: terms, ones: map[token]bool{}}
}

// name is the number of a memory's name.
func (ts *tokens) name(s string) int32 {
	n, ok := ts.names[s]
	if !ok {
		n = int32(len(ts.names))
		ts.names[s] = n
	}
	return n
}

func (ts *tokens) add(tainted bool) token {
	ts.tainted = append(ts.tainted, tainted)
	return token(len(ts.tainted) - 1)
}

func (ts *tokens) leaf(sort byte, name int32, cell int64, replay int) token {
	if sort != leafRun && cell < denseCells {
		return ts.dense(row{sort, name, int32(replay)}, int(cell))
	}
	k := leaf{sort, name, int32(replay), cell}
	t, ok := ts.leaves[k]
	if !ok {
		t = ts.add(sort == leafPoison)
		ts.leaves[k] = t
	}
	return t
}

func (ts *tokens) dense(r row, cell int) token {
	if ts.last == nil || r != ts.lastRow {
		ts.lastRow, ts.last = r, ts.rows[r]
		if ts.last == nil {
			ts.last = new([]token)
			ts.rows[r] = ts.last
		}
	}
	return ts.at(ts.last, cell, r.sort == leafPoison)
}

// at is the token at a place of a list, a new one if there is none yet.
func (ts *tokens) at(list *[]token, i int, tainted bool) token {
	for len(*list) <= i {
		*list = append(*list, -1)
	}
	t := &(*list)[i]
	if *t < 0 {
		*t = ts.add(tainted)
	}
	return *t
}

// list is the value of an ordered list of tokens under a name (the text of a
// command).
func (ts *tokens) list(name string, in []token, certain bool) token {
	k := binary.AppendUvarint(ts.buf[:0], uint64(len(name)))
	k = append(k, name...)
	tainted := false
	for _, t := range in {
		k = binary.AppendUvarint(k, uint64(t))
		tainted = tainted || ts.tainted[t] && certain
	}
	ts.buf = k
	t, ok := ts.lists[string(k)]
	if !ok {
		t = ts.add(tainted)
		ts.lists[string(k)] = t
	}
	return t
}

// bytes is the value of bytes that are known.
func (ts *tokens) bytes(b string) token { return ts.list("bytes "+b, nil, true) }

func (ts *tokens) result(in token, i int, old token, certain bool) token {
	if old < 0 && i < denseCells {
		if ts.lastWritten == nil || in != ts.lastIn {
			ts.lastIn, ts.lastWritten = in, ts.written[in]
			if ts.lastWritten == nil {
				ts.lastWritten = new([]token)
				ts.written[in] = ts.lastWritten
			}
		}
		return ts.at(ts.lastWritten, i, ts.tainted[in])
	}
	var cell *keptCell
	if old >= 0 {
		r := keptRow{in, int32(i / keptCells)}
		if ts.lastKept == nil || r != ts.lastRowK {
			ts.lastRowK, ts.lastKept = r, ts.kept[r]
			if ts.lastKept == nil {
				ts.lastKept = new([keptCells]keptCell)
				ts.kept[r] = ts.lastKept
			}
		}
		if cell = &ts.lastKept[i%keptCells]; cell.now > 0 && cell.old == old {
			return cell.now
		}
	}
	k := result{in, old, int32(i)}
	t, ok := ts.results[k]
	if ok {
		return t
	}
	t = ts.add(ts.tainted[in] || certain && old >= 0 && ts.tainted[old])
	if cell != nil && cell.now == 0 {
		*cell = keptCell{old, t}
	} else {
		ts.results[k] = t
	}
	return t
}
