package bitcode

import "math"

// entry is a metadata string, node or value, by its number.
type entry struct {
	kind entryKind
	a, b uint32 // of a string: offset and length in data; of a node: first operand and their number; of a value: its number
}

type entryKind uint8

const (
	opaque entryKind = iota // anything else, such as a debug location
	isString
	isNode
	isValue
)

// The record codes of METADATA_BLOCK_ID.
const (
	mdValue            = 2
	mdNode             = 3
	mdName             = 4
	mdDistinctNode     = 5
	mdKind             = 6
	mdNamedNode        = 10
	mdStrings          = 35
	mdGlobalAttachment = 36
	mdIndexOffset      = 38
	mdIndex            = 39
	mdLast             = 49
)

func (m *reader) readMetadata() {
	b := m.enter()
	name, named := "", false
	for {
		switch m.next(b) {
		case blockEnds:
			return
		case subblock:
			m.skipBlock()
			continue
		}
		r := &m.fetched
		if r.count > maxOperands {
			m.fail("metadata record %d has %d operands, at most %d are read", r.code, r.count, maxOperands)
		}
		switch r.code {
		case mdStrings:
			m.metadataStrings()
		case mdNode, mdDistinctNode:
			if len(m.operands)+len(r.ops) > maxNodeOperands {
				m.fail("metadata nodes have more than %d operands", maxNodeOperands)
			}
			m.define(entry{isNode, uint32(len(m.operands)), uint32(len(r.ops))})
			for _, op := range r.ops {
				m.operands = append(m.operands, m.reference(op))
			}
		case mdValue:
			if len(r.ops) != 2 || r.ops[1] >= maxValues {
				m.fail("a metadata value has no type and value")
			}
			m.define(entry{kind: isValue, a: uint32(r.ops[1])})
		case mdName:
			name, named = m.text(r.ops), true
		case mdNamedNode:
			if !named {
				m.fail("a named metadata node has no name")
			}
			if len(m.operands)+len(r.ops) > maxNodeOperands {
				m.fail("metadata nodes have more than %d operands", maxNodeOperands)
			}
			if len(m.named) == maxSymbols {
				m.fail("there are more than %d named metadata nodes", maxSymbols)
			}
			m.named = append(m.named, namedNode{name, uint32(len(m.operands)), uint32(len(r.ops))})
			for _, op := range r.ops {
				if op >= maxMetadata {
					m.fail("named metadata %q refers to metadata %d", name, op)
				}
				m.operands = append(m.operands, uint32(op)+1)
			}
			named = false
		case mdKind, mdGlobalAttachment, mdIndexOffset, mdIndex:
			// These define no metadata with a number.
		default:
			if r.code == 0 || r.code > mdLast {
				m.fail("metadata record %d is of no known sort, and those behind it could not be counted", r.code)
			}
			m.define(entry{})
		}
	}
}

type namedNode struct {
	name         string
	first, count uint32 // in operands
}

func (m *reader) define(e entry) {
	if len(m.entries) == maxMetadata {
		m.fail("there is more metadata than %d nodes, strings and values", maxMetadata)
	}
	m.entries = append(m.entries, e)
}

// reference checks a metadata number plus one, or 0 for none. The metadata may be defined later.
func (m *reader) reference(op uint64) uint32 {
	if op > maxMetadata {
		m.fail("a node refers to metadata %d", op-1)
	}
	return uint32(op)
}

// text returns the string whose characters are the operands of a record.
func (m *reader) text(ops []uint64) string {
	b := make([]byte, len(ops))
	for i, op := range ops {
		if op > math.MaxUint8 {
			m.fail("a name has a character of number %d", op)
		}
		b[i] = byte(op)
	}
	return string(b)
}

// metadataStrings reads the record of all strings, which comes first: their number, the offset in the blob at which
// their characters begin, and the blob, which begins with their lengths.
func (m *reader) metadataStrings() {
	r := &m.fetched
	if len(r.ops) != 2 || r.blob == nil {
		m.fail("metadata strings come without number, place and bytes")
	}
	n, chars, size := r.ops[0], r.ops[1], uint64(len(r.blob))
	if chars > size {
		m.fail("the characters of metadata strings begin at %d of %d bytes", chars, size)
	}
	// A length takes six bits at least.
	if n > chars*8/6 || n > maxMetadata {
		m.fail("%d metadata strings have %d bytes of lengths", n, chars)
	}
	lengths := cursor{data: r.blob[:chars], base: m.base + int64(r.at), end: chars * 8}
	at := chars
	for range n {
		length := lengths.vbr(6)
		if length > size-at {
			lengths.fail("a metadata string has %d bytes, %d are left", length, size-at)
		}
		m.define(entry{isString, uint32(r.at + at), uint32(length)})
		at += length
	}
}

// Node is a metadata node, or a named one.
type Node struct {
	m            *Module
	first, count uint32
}

// Len returns how many operands the node has.
func (n Node) Len() int { return int(n.count) }

// Operand returns an operand. It is the zero Operand if the node does not have it, or it is null.
func (n Node) Operand(i int) Operand {
	if i < 0 || i >= n.Len() {
		return Operand{}
	}
	id := n.m.operands[n.first+uint32(i)]
	if id == 0 || int(id) > len(n.m.entries) {
		return Operand{}
	}
	return Operand{n.m, id}
}

// Operand is what a node refers to: a string, a node, or a value.
type Operand struct {
	m  *Module
	id uint32 // plus one
}

func (o Operand) entry() entry {
	if o.m == nil {
		return entry{}
	}
	return o.m.entries[o.id-1]
}

// Text returns the operand, if it is a string.
func (o Operand) Text() (string, bool) {
	e := o.entry()
	if e.kind != isString {
		return "", false
	}
	return string(o.m.data[e.a : e.a+e.b]), true
}

// Node returns the operand, if it is a node. Nodes may be cyclic.
func (o Operand) Node() (Node, bool) {
	e := o.entry()
	if e.kind != isNode {
		return Node{}, false
	}
	return Node{o.m, e.a, e.b}, true
}

func (o Operand) value() (value, bool) {
	e := o.entry()
	if e.kind != isValue || int(e.a) >= len(o.m.values) {
		return value{}, false
	}
	return o.m.values[e.a], true
}

// Int returns the operand, if it is an integer constant of at most 64 bits, sign-extended.
func (o Operand) Int() (int64, bool) {
	v, ok := o.value()
	return v.n, ok && v.kind == isInteger
}

// Bool returns the operand, if it is a constant of one bit.
func (o Operand) Bool() (b, ok bool) {
	v, ok := o.value()
	ok = ok && v.kind == isInteger && o.m.types.list[v.typ].n == 1
	return v.n&1 != 0, ok
}

// Function returns the operand, if it is a function.
func (o Operand) Function() (*Func, bool) {
	v, ok := o.value()
	if !ok || v.kind != isFunction {
		return nil, false
	}
	return &o.m.Functions[v.n], true
}

// Global returns the operand, if it is a global variable.
func (o Operand) Global() (*Global, bool) {
	v, ok := o.value()
	if !ok || v.kind != isGlobal {
		return nil, false
	}
	return &o.m.Globals[v.n], true
}
