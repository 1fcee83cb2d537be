package ggufio

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/mlxc/mlxc/frontend"
)

// Bounds on what a file may ask for. The first two keep the tables of Parse
// below 10 MB (TestAllocationIsBounded); real files have some 40 keys and at
// most some thousand tensors.
const (
	maxKeys      = 1 << 14
	maxTensors   = 1 << 15
	maxKeyLen    = 1<<16 - 1 // specification
	maxNameLen   = 64        // specification
	maxDims      = 4         // GGML_MAX_DIMS
	maxNesting   = 4         // arrays within arrays; no known file has any
	maxAlignment = 1 << 30
	minKVSize    = 8 + 1 + 4 + 1              // key of 1 byte, type, value of 1 byte
	minTensorRow = 8 + 1 + 4 + 0*8 + 4 + 8    // name of 1 byte, no dims
	defaultAlign = 32                         // specification
	alignmentKey = "general.alignment"        // specification
	maxElements  = uint64(math.MaxInt64)      // ggml counts in int64
	maxFileBytes = uint64(math.MaxInt64) >> 1 // sums of two sizes cannot wrap below this
)

// predecessors are the magic numbers of the formats before GGUF, as they appear on
// disk.
var predecessors = map[string]string{
	"lmgg": "GGML", "fmgg": "GGMF", "tjgg": "GGJT", "algg": "GGLA",
}

// parser walks the file once from the front. INVARIANT: 0 ≤ off ≤ len(data).
type parser struct {
	file *File
	off  int
	rows []int // offset of each tensor's row in the table, for messages
}

func (p *parser) run() error {
	counts, err := p.header()
	if err != nil {
		return err
	}
	if err := p.keys(counts.keys); err != nil {
		return err
	}
	if err := p.alignment(); err != nil {
		return err
	}
	if err := p.tensorRows(counts.tensors); err != nil {
		return err
	}
	return p.place()
}

// what describes a field in messages. It is formatted only when needed: nearly every
// field is right, and formatting them all would cost more than parsing.
type what struct {
	text string
	name string // printed quoted when not empty
	i    int    // printed when there is no name and it is not negative
}

func (w what) String() string {
	switch {
	case w.name != "":
		return fmt.Sprintf("%s %.80q", w.text, w.name)
	case w.i >= 0:
		return fmt.Sprintf("%s %d", w.text, w.i)
	}
	return w.text
}

func (p *parser) left() int { return len(p.file.data) - p.off }

func (p *parser) errAt(off int, format string, args ...any) error {
	return &frontend.Error{File: p.file.Name, Offset: int64(off), Reason: fmt.Sprintf(format, args...)}
}

// take returns the next n bytes.
func (p *parser) take(n int, w what) ([]byte, error) {
	if n > p.left() {
		return nil, p.errAt(p.off, "%s needs %d bytes, %d are left", w, n, p.left())
	}
	b := p.file.data[p.off : p.off+n]
	p.off += n
	return b, nil
}

func (p *parser) u32(w what) (uint32, error) {
	b, err := p.take(4, w)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (p *parser) u64(w what) (uint64, error) {
	b, err := p.take(8, w)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// bytes reads a GGUF string and returns its bytes without copying them.
func (p *parser) bytes(w what, limit int) ([]byte, error) {
	at := p.off
	n, err := p.u64(w)
	if err != nil {
		return nil, err
	}
	if n > uint64(p.left()) {
		return nil, p.errAt(at, "%s is said to be %d bytes long, %d are left", w, n, p.left())
	}
	if n > uint64(limit) {
		return nil, p.errAt(at, "%s is %d bytes long, at most %d are allowed", w, n, limit)
	}
	return p.take(int(n), w)
}

type counts struct{ tensors, keys int }

func (p *parser) header() (counts, error) {
	if uint64(len(p.file.data)) > maxFileBytes {
		return counts{}, p.errAt(0, "%d bytes are more than can be addressed", len(p.file.data))
	}
	magic, err := p.take(4, what{text: "magic", i: -1})
	if err != nil {
		return counts{}, err
	}
	if string(magic) != "GGUF" {
		if name := predecessors[string(magic)]; name != "" {
			return counts{}, p.errAt(0, "this is a %s file, a format before GGUF; convert the model again", name)
		}
		return counts{}, p.errAt(0, "magic is %q, want \"GGUF\": not a GGUF file", magic)
	}
	v, err := p.u32(what{text: "version", i: -1})
	if err != nil {
		return counts{}, err
	}
	switch {
	case v == 2 || v == 3:
	case v == 1:
		return counts{}, p.errAt(4, "GGUF version 1 is not supported (its lengths have 32 bits); convert the model again to version 3")
	case v != 0 && v&0xffff == 0:
		// A small number with its bytes swapped: the same test as ggml's.
		return counts{}, p.errAt(4, "this is a big-endian GGUF file (version %d); only little-endian files are supported", bits.ReverseBytes32(v))
	default:
		return counts{}, p.errAt(4, "GGUF version %d is unknown; versions 2 and 3 are supported", v)
	}
	p.file.Version = v
	nt, err := p.count(what{text: "tensor count", i: -1}, maxTensors, minTensorRow)
	if err != nil {
		return counts{}, err
	}
	nk, err := p.count(what{text: "key count", i: -1}, maxKeys, minKVSize)
	if err != nil {
		return counts{}, err
	}
	return counts{tensors: nt, keys: nk}, nil
}

// count reads the number of things that take at least min bytes each.
func (p *parser) count(w what, limit, min int) (int, error) {
	at := p.off
	n, err := p.u64(w)
	if err != nil {
		return 0, err
	}
	if n > uint64(p.left()/min) {
		return 0, p.errAt(at, "%s is %d, but the %d bytes left hold at most %d", w, n, p.left(), p.left()/min)
	}
	if n > uint64(limit) {
		return 0, p.errAt(at, "%s is %d, at most %d are supported", w, n, limit)
	}
	return int(n), nil
}

func (p *parser) keys(n int) error {
	kv := p.file.KV
	kv.entries = make([]entry, 0, n)
	kv.index = make(map[string]int, n)
	for i := range n {
		at := p.off
		b, err := p.bytes(what{text: "key", i: i}, maxKeyLen)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return p.errAt(at, "key %d is empty", i)
		}
		for _, c := range b {
			if c <= ' ' || c > '~' {
				return p.errAt(at, "key %d (%.80q) holds byte 0x%02x; keys are printable ASCII", i, b, c)
			}
		}
		e := entry{key: string(b)}
		if first, dup := kv.index[e.key]; dup {
			return p.errAt(at, "key %.80q appears a second time; first at offset %d", e.key, kv.entries[first].at)
		}
		e.at = at
		if err := p.value(&e); err != nil {
			return err
		}
		kv.index[e.key] = len(kv.entries)
		kv.entries = append(kv.entries, e)
	}
	return nil
}

// value reads the type of a value and checks the value, which it skips.
func (p *parser) value(e *entry) error {
	t, err := p.valueType(what{text: "value of", name: e.key})
	if err != nil {
		return err
	}
	e.typ = t
	if t == Array {
		return p.array(e, 1)
	}
	e.off, e.n = p.off, 1
	return p.skip(e.key, t)
}

func (p *parser) valueType(w what) (ValueType, error) {
	at := p.off
	v, err := p.u32(w)
	if err != nil {
		return 0, err
	}
	if t := ValueType(v); t.Known() {
		return t, nil
	}
	return 0, p.errAt(at, "%s has type number %d; GGUF has 0 to %d", w, v, len(valueTypes)-1)
}

// skip skips one value that is not an array.
func (p *parser) skip(key string, t ValueType) error {
	if t == String {
		_, err := p.bytes(what{text: "value of", name: key}, math.MaxInt)
		return err
	}
	at := p.off
	b, err := p.take(valueTypes[t].size, what{text: "value of", name: key})
	if err != nil {
		return err
	}
	if t == Bool && b[0] > 1 {
		return p.errAt(at, "value of %.80q is a bool of value %d, want 0 or 1", key, b[0])
	}
	return nil
}

// array skips an array at the given nesting depth. At depth 1 it also records the
// element type, count and offset in e.
func (p *parser) array(e *entry, depth int) error {
	if depth > maxNesting {
		return p.errAt(p.off, "%.80q nests arrays deeper than %d", e.key, maxNesting)
	}
	elem, err := p.valueType(what{text: "elements of", name: e.key})
	if err != nil {
		return err
	}
	size := valueTypes[elem].size
	least := size
	switch elem {
	case String:
		least = 8 // its length
	case Array:
		least = 4 + 8 // its element type and count
	}
	at := p.off
	n, err := p.count(what{text: "element count of", name: e.key}, math.MaxInt, least)
	if err != nil {
		return err
	}
	if depth == 1 {
		e.elem, e.n, e.off = elem, n, p.off
	}
	switch elem {
	case Array:
		for range n {
			if err := p.array(e, depth+1); err != nil {
				return err
			}
		}
	case String:
		for i := range n {
			at := p.off
			l, err := p.u64(what{text: "length of a string of", name: e.key})
			if err != nil {
				return err
			}
			if l > uint64(p.left()) {
				return p.errAt(at, "string %d of %.80q is said to be %d bytes long, %d are left", i, e.key, l, p.left())
			}
			p.off += int(l)
		}
	default:
		b, err := p.take(n*size, what{text: "elements of", name: e.key}) // n*size does not overflow: count compared n with the length of the file
		if err != nil {
			return err
		}
		if elem == Bool {
			if i := slices.IndexFunc(b, func(c byte) bool { return c > 1 }); i >= 0 {
				return p.errAt(at+8+i, "element %d of %.80q is a bool of value %d, want 0 or 1", i, e.key, b[i])
			}
		}
	}
	return nil
}

func (p *parser) alignment() error {
	p.file.Alignment = defaultAlign
	if !p.file.KV.Has(alignmentKey) {
		return nil
	}
	a, err := p.file.KV.Uint32(alignmentKey)
	if err != nil {
		return err
	}
	if a == 0 || a&(a-1) != 0 || a > maxAlignment {
		i := p.file.KV.index[alignmentKey]
		return p.errAt(p.file.KV.entries[i].off, "%s is %d, want a power of two of at most %d", alignmentKey, a, maxAlignment)
	}
	p.file.Alignment = uint64(a)
	return nil
}

// tensorRows reads the tensor table. Offsets stay relative to the tensor data until
// place is called.
func (p *parser) tensorRows(n int) error {
	p.rows = make([]int, 0, n)
	p.file.Tensors = make([]Tensor, 0, n)
	seen := make(map[string]int, n)
	for i := range n {
		at := p.off
		b, err := p.bytes(what{text: "name of tensor", i: i}, maxNameLen)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return p.errAt(at, "tensor %d has no name", i)
		}
		if !utf8.Valid(b) {
			return p.errAt(at, "name of tensor %d (%q) is not UTF-8", i, b)
		}
		t := Tensor{Name: string(b)}
		if first, dup := seen[t.Name]; dup {
			return p.errAt(at, "tensor %q appears a second time; first at offset %d", t.Name, p.rows[first])
		}
		seen[t.Name] = i
		if err := p.tensorRow(&t); err != nil {
			return err
		}
		p.rows = append(p.rows, at)
		p.file.Tensors = append(p.file.Tensors, t)
	}
	return nil
}

func (p *parser) tensorRow(t *Tensor) error {
	at := p.off
	nd, err := p.u32(what{text: "dimension count of tensor", name: t.Name})
	if err != nil {
		return err
	}
	if nd > maxDims {
		return p.errAt(at, "tensor %q has %d dimensions, at most %d are allowed", t.Name, nd, maxDims)
	}
	if nd > 0 {
		t.Dims = make([]uint64, nd)
	}
	elements := uint64(1)
	dimsAt := p.off
	for i := range t.Dims {
		at := p.off
		d, err := p.u64(what{text: "a dimension of tensor", name: t.Name})
		if err != nil {
			return err
		}
		if d == 0 {
			return p.errAt(at, "dimension %d of tensor %q is 0", i, t.Name)
		}
		hi, lo := bits.Mul64(elements, d)
		if hi != 0 || lo > maxElements {
			return p.errAt(at, "tensor %q has more than %d elements: %d × %d and more", t.Name, maxElements, elements, d)
		}
		t.Dims[i], elements = d, lo
	}
	at = p.off
	typ, err := p.u32(what{text: "type of tensor", name: t.Name})
	if err != nil {
		return err
	}
	t.Type = Type(typ)
	switch {
	case t.Type.Removed():
		return p.errAt(at, "tensor %q has type %s (%d), which ggml removed; quantize the model again", t.Name, t.Type, typ)
	case !t.Type.Known():
		return p.errAt(at, "tensor %q has type number %d, which is not known here", t.Name, typ)
	}
	// ggml stores rows (the innermost dimension) in whole blocks.
	be, bb := t.Type.BlockElements(), t.Type.BlockBytes()
	row := uint64(1)
	if nd > 0 {
		row = t.Dims[0]
	}
	if row%be != 0 {
		return p.errAt(dimsAt, "tensor %q (%s) has rows of %d elements, not a multiple of its block of %d", t.Name, t.Type, row, be)
	}
	hi, size := bits.Mul64(elements/be, bb)
	if hi != 0 || size > uint64(len(p.file.data)) {
		return p.errAt(dimsAt, "tensor %q (%s %v) is larger than the file's %d bytes", t.Name, t.Type, t.Dims, len(p.file.data))
	}
	t.Size = int64(size)
	at = p.off
	rel, err := p.u64(what{text: "offset of tensor", name: t.Name})
	if err != nil {
		return err
	}
	if rel > uint64(len(p.file.data)) {
		return p.errAt(at, "tensor %q starts %d bytes into the data; the file has %d bytes in all", t.Name, rel, len(p.file.data))
	}
	if rel%p.file.Alignment != 0 {
		return p.errAt(at, "tensor %q starts %d bytes into the data, not a multiple of the alignment %d", t.Name, rel, p.file.Alignment)
	}
	t.Offset = int64(rel)
	return nil
}

// place makes offsets absolute, and checks that the tensors lie within the file and do
// not overlap.
func (p *parser) place() error {
	f := p.file
	size := int64(len(f.data))
	a := int64(f.Alignment)
	f.DataStart = (int64(p.off) + a - 1) / a * a // cannot overflow: off < 2^62, a ≤ 2^30
	order := make([]int, len(f.Tensors))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		t.Offset += f.DataStart
		if t.Offset+t.Size > size {
			return p.errAt(p.rows[i], "tensor %q takes bytes %d to %d; the file has %d (cut short?)", t.Name, t.Offset, t.Offset+t.Size, size)
		}
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(f.Tensors[i].Offset, f.Tensors[j].Offset), cmp.Compare(i, j))
	})
	for k := 1; k < len(order); k++ {
		a, b := f.Tensors[order[k-1]], f.Tensors[order[k]]
		if a.Offset+a.Size > b.Offset {
			return p.errAt(p.rows[order[k]], "tensor %q at bytes %d to %d overlaps %q at bytes %d to %d",
				b.Name, b.Offset, b.Offset+b.Size, a.Name, a.Offset, a.Offset+a.Size)
		}
	}
	return nil
}
