package bitcode

import (
	"math/bits"
	"strconv"
	"strings"
)

// typeKind is the kind of a type.
type typeKind uint8

const (
	kindOther typeKind = iota // a label, metadata, a token
	kindVoid
	kindInteger
	kindFloat // of any width, bfloat included
	kindPointer
	kindArray
	kindVector
	kindStruct
	kindFunction
)

// typ is an entry of the type table.
type typ struct {
	kind   typeKind
	packed bool
	// bits of an integer or float, elements of an array or vector, the address space of a
	// pointer.
	n uint64
	// The element of an array, vector or typed pointer, or the result of a function.
	element int64
	first   int32 // index in members of the first member of a struct or parameter of a function
	count   int32
}

type typeTable struct {
	list    []typ
	members []uint32
	sizes   []extent // of list, after lay
}

// extent is the size and alignment of a type's values in memory, in bytes. Size is -1 if they have none, or it is too
// large.
type extent struct{ size, align int64 }

// The record codes of TYPE_BLOCK_ID_NEW.
const (
	typeNumEntry      = 1
	typeVoid          = 2
	typeFloat         = 3
	typeDouble        = 4
	typeInteger       = 7
	typePointer       = 8
	typeHalf          = 10
	typeArray         = 11
	typeVector        = 12
	typeStructAnon    = 18
	typeStructName    = 19
	typeStructNamed   = 20
	typeFunction      = 21
	typeBFloat        = 23
	typeOpaquePointer = 25
)

// readTypes reads the type table.
func (m *reader) readTypes() {
	b := m.enter()
	for {
		switch m.next(b) {
		case blockEnds:
			return
		case subblock:
			m.skipBlock()
		case isRecord:
			m.typeRecord()
		}
	}
}

func (m *reader) typeRecord() {
	t := &m.types
	r := &m.fetched
	at := func(i int) uint64 {
		if i >= len(r.ops) {
			m.fail("type record %d has %d operands", r.code, r.count)
		}
		return r.ops[i]
	}
	// tail makes the operands from index i on the members of a type.
	tail := func(x *typ, i int) {
		n := len(r.ops) - i
		if r.count > maxOperands || n < 0 || len(t.members)+n > maxTypeMembers {
			m.fail("a type has %d members", r.count)
		}
		x.first, x.count = int32(len(t.members)), int32(n)
		for _, id := range r.ops[i:] {
			if id >= maxTypes {
				m.fail("there is no type %d", id)
			}
			t.members = append(t.members, uint32(id))
		}
	}
	x := typ{element: -1}
	switch r.code {
	case typeNumEntry, typeStructName:
		return // these define no type
	case typeVoid:
		x.kind = kindVoid
	case typeHalf, typeBFloat:
		x.kind, x.n = kindFloat, 16
	case typeFloat:
		x.kind, x.n = kindFloat, 32
	case typeDouble:
		x.kind, x.n = kindFloat, 64
	case typeInteger:
		x.kind, x.n = kindInteger, at(0)
		if x.n == 0 || x.n >= 1<<23 {
			m.fail("an integer type has %d bits", x.n)
		}
	case typePointer:
		x.kind, x.element = kindPointer, m.typeID(at(0))
		if len(r.ops) > 1 {
			x.n = at(1)
		}
	case typeOpaquePointer:
		x.kind, x.n = kindPointer, at(0)
	case typeArray, typeVector:
		x.kind, x.n, x.element = kindArray, at(0), m.typeID(at(1))
		if r.code == typeVector {
			x.kind = kindVector
		}
	case typeStructAnon, typeStructNamed:
		x.kind, x.packed = kindStruct, at(0) != 0
		tail(&x, 1)
	case typeFunction:
		x.kind = kindFunction
		x.element = m.typeID(at(1))
		tail(&x, 2)
	}
	if len(t.list) == maxTypes {
		m.fail("there are more than %d types", maxTypes)
	}
	t.list = append(t.list, x)
}

// typeID checks a type's number. The type may be defined later in the table.
func (m *reader) typeID(id uint64) int64 {
	if id >= maxTypes {
		m.fail("there is no type %d", id)
	}
	return int64(id)
}

// typeAt returns a type that is defined already.
func (m *reader) typeAt(id uint64) *typ {
	if id >= uint64(len(m.types.list)) {
		m.fail("there is no type %d, there are %d", id, len(m.types.list))
	}
	return &m.types.list[id]
}

// layout is what a module's data layout says about sizes and alignments.
type layout struct {
	pointers map[uint64]extent // by address space
	integers map[uint64]int64  // alignments, by width in bits
	floats   map[uint64]int64
	vectors  map[uint64]int64
	structs  int64 // minimum alignment of a struct
}

// parseLayout parses a data layout string. It ignores what does not concern sizes: mangling, native integers, the
// stack.
func parseLayout(text string) layout {
	l := layout{
		pointers: map[uint64]extent{0: {8, 8}},
		integers: map[uint64]int64{1: 1, 8: 1, 16: 2, 32: 4, 64: 4},
		floats:   map[uint64]int64{16: 2, 32: 4, 64: 8, 128: 16},
		vectors:  map[uint64]int64{64: 8, 128: 16},
		structs:  1,
	}
	for part := range strings.SplitSeq(text, "-") {
		head, rest, _ := strings.Cut(part, ":")
		if head == "" {
			continue
		}
		var numbers []int64
		for f := range strings.SplitSeq(rest, ":") {
			n, err := strconv.ParseUint(f, 10, 24)
			if err != nil {
				break
			}
			numbers = append(numbers, int64(n))
		}
		key, err := strconv.ParseUint(head[1:], 10, 24)
		if err != nil && head[1:] != "" || len(numbers) == 0 {
			continue
		}
		aligned := func(in map[uint64]int64) {
			if a := numbers[0] / 8; a > 0 && a&(a-1) == 0 {
				in[key] = a
			}
		}
		switch head[0] {
		case 'p':
			if len(numbers) > 1 && numbers[0] >= 8 {
				if a := numbers[1] / 8; a > 0 && a&(a-1) == 0 {
					l.pointers[key] = extent{numbers[0] / 8, a}
				}
			}
		case 'i':
			aligned(l.integers)
		case 'f':
			aligned(l.floats)
		case 'v':
			aligned(l.vectors)
		case 'a':
			if a := numbers[0] / 8; a > 0 && a&(a-1) == 0 {
				l.structs = a
			}
		}
	}
	return l
}

// lay computes the extents of all types in the order of the table: a type follows those that it contains. If it does
// not (which no writer does), it has no extent.
func (t *typeTable) lay(l layout) {
	t.sizes = make([]extent, len(t.list))
	for i := range t.list {
		t.sizes[i] = t.extent(i, l)
	}
}

var noExtent = extent{-1, 1}

func (t *typeTable) extent(i int, l layout) extent {
	x := &t.list[i]
	of := func(id int64) (extent, bool) {
		if id < 0 || id >= int64(i) || t.sizes[id].size < 0 {
			return noExtent, false
		}
		return t.sizes[id], true
	}
	switch x.kind {
	case kindInteger:
		bytes := int64(x.n+7) / 8
		a, ok := l.integers[x.n]
		if !ok {
			a = l.wider(x.n)
		}
		return extent{up(bytes, a), a}
	case kindFloat:
		return extent{int64(x.n / 8), l.floats[x.n]}
	case kindPointer:
		if e, ok := l.pointers[x.n]; ok {
			return e
		}
		return l.pointers[0]
	case kindArray:
		e, ok := of(x.element)
		if hi, n := bits.Mul64(x.n, uint64(max(e.size, 0))); ok && hi == 0 && n <= maxAllocation {
			return extent{int64(n), e.align}
		}
	case kindVector:
		if _, ok := of(x.element); !ok {
			break
		}
		e := &t.list[x.element]
		width := e.n // of an integer or float
		if e.kind == kindPointer {
			width = uint64(t.sizes[x.element].size) * 8
		} else if e.kind != kindInteger && e.kind != kindFloat {
			break
		}
		hi, n := bits.Mul64(x.n, width)
		if hi != 0 || n == 0 || n > maxAllocation {
			break
		}
		bytes := int64(n+7) / 8
		a, ok := l.vectors[n]
		if !ok {
			a = 1 << bits.Len64(uint64(bytes-1))
		}
		return extent{up(bytes, a), a}
	case kindStruct:
		s := extent{0, 1}
		if !x.packed {
			s.align = l.structs
		}
		for _, id := range t.members[x.first : x.first+x.count] {
			e, ok := of(int64(id))
			if !ok {
				return noExtent
			}
			if !x.packed {
				s.size, s.align = up(s.size, e.align), max(s.align, e.align)
			}
			if s.size += e.size; s.size > maxAllocation {
				return noExtent
			}
		}
		s.size = up(s.size, s.align)
		return s
	}
	return noExtent
}

// wider returns the alignment of an integer of a width that the layout does not list: that of the next larger width
// that is listed, or else of the largest.
func (l layout) wider(n uint64) int64 {
	best, most := uint64(0), uint64(0)
	for w := range l.integers {
		if w > n && (best == 0 || w < best) {
			best = w
		}
		most = max(most, w)
	}
	if best == 0 {
		best = most
	}
	return l.integers[best]
}

// up rounds n up to a multiple of a, a power of two.
func up(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }
