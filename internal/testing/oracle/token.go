package oracle

import "encoding/binary"

// token is the opaque value of one cell. A cell is a run of bytes that all commands touch
// only as a whole. Equal computations have equal tokens, because equal terms are stored only
// once and a token is the number of a term.
type token int32

// tokens stores each term once and numbers it. The keys are the terms themselves and not
// hashes of them, so two different terms cannot share a token.
type tokens struct {
	leaves  map[leaf]token
	rows    map[row]*[]token // the leaves of small cells, by cell; −1 where there is none yet
	lastRow row              // the row of the last query; cells are mostly asked for in order
	last    *[]token
	// The same for the cells that a command must write, by the token of all that it
	// read.
	written     map[token]*[]token
	lastIn      token
	lastWritten *[]token
	// The same for the cells that a command may write. What such a cell held before
	// mostly follows from what the command read, so there is room for its first value
	// only; the others are in results.
	kept     map[keptRow]*[keptCells]keptCell
	lastRowK keptRow
	lastKept *[keptCells]keptCell
	names    map[string]int32
	lists    map[string]token
	results  map[result]token // the results that are in neither written nor kept
	// tainted terms depend on undefined bytes that a command of known effects certainly
	// reads.
	tainted []bool
	buf     []byte
	terms   bool           // see [Options.Terms]
	ones    map[token]bool // cells of weights that hold nothing but the f32 number 1
}

// leaf is a value that no command computed: what a cell of a memory holds and, if that
// changes from replay to replay, in which replay. For leafRun, replay has another use.
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

// denseCells is the number of cells of a memory whose leaves are kept in an array, which is
// faster than a map. Nearly all values that a judge looks up are among them.
const denseCells = 1 << 16

// The sorts of leaf.
const (
	leafWeight = 'w' // cell is a byte
	leafRun    = 'W' // a whole run of bytes of a weight: cell is its first byte, and replay its length
	leafInput  = 'i'
	leafState  = 's' // what it holds before the first replay
	leafPoison = 'p' // undefined bytes
)

// result is cell i of what a command computed from in. For a may-write old is the
// former value of the cell; for a must-write it is −1.
type result struct {
	in, old token
	i       int32
}

// keptRow is the key of keptCells neighbouring cells that a command may write, which
// computed from the value in.
type keptRow struct {
	in  token
	row int32
}

const keptCells = 32

// keptCell is a cell that may be written: what it held before, and its value then. Both
// are 0 until somebody asks.
type keptCell struct{ old, now token }

func newTokens(terms bool) *tokens {
	return &tokens{leaves: map[leaf]token{}, rows: map[row]*[]token{}, written: map[token]*[]token{}, kept: map[keptRow]*[keptCells]keptCell{}, names: map[string]int32{}, lists: map[string]token{}, results: map[result]token{}, terms: terms, ones: map[token]bool{}}
}

// name returns the number of a memory's name.
func (ts *tokens) name(s string) int32 {
	n, ok := ts.names[s]
	if !ok {
		n = int32(len(ts.names))
		ts.names[s] = n
	}
	return n
}

// add makes a token for a new term.
func (ts *tokens) add(tainted bool) token {
	ts.tainted = append(ts.tainted, tainted)
	return token(len(ts.tainted) - 1)
}

// leaf returns the token of a value that no command computed.
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

// dense is leaf for cells whose tokens are kept in an array.
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

// at returns the token at index i of a list, which is made if there is none.
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

// list returns the value of an ordered list of tokens under a name, such as the text of a
// command that reads them. If certain is set, the reads certainly happen, so that tainted
// tokens taint the result.
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

// bytes returns the value of known bytes.
func (ts *tokens) bytes(b string) token { return ts.list("bytes "+b, nil, true) }

// result returns the value of cell i of what a command computed from in. If the command must
// write the cell, old is −1, else it is the former value of the cell. If certain is set, the
// effects of the command are known, so that a tainted old value taints the result.
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
