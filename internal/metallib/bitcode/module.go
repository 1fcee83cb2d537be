package bitcode

import (
	"encoding/binary"
	"fmt"
)

// Module is the result of [Read]. It refers to the bytes that were given.
type Module struct {
	Triple, DataLayout string
	Globals            []Global
	Functions          []Func

	data     []byte // from the magic number on
	types    typeTable
	values   []value
	entries  []entry
	operands []uint32 // numbers of metadata plus one; 0 is none
	named    []namedNode
}

// Global is a global variable.
type Global struct {
	Name         string
	AddressSpace uint64
	Constant     bool
	// Size and Align are those of the value, in bytes. Size is -1 if the type has no size.
	Size, Align int64
	// ExternallyInitialized says that its value comes from outside the module.
	ExternallyInitialized bool

	typ       uint64
	name      span
	alignment uint64 // as declared; 0 for that of the type
}

// Func is a function.
type Func struct {
	Name    string
	Defined bool // it has a body
	Params  int

	name span
}

// span is a name's place in the string table.
type span struct{ offset, size uint64 }

// value is a global value or constant, by its number.
type value struct {
	kind valueKind
	typ  uint32
	n    int64 // an integer's value, or the index in Globals or Functions
}

type valueKind uint8

const (
	otherValue valueKind = iota
	isInteger
	isGlobal
	isFunction
)

// Blocks.
const (
	moduleBlock    = 8
	constantsBlock = 11
	metadataBlock  = 15
	typeBlock      = 17
	strtabBlock    = 23
)

// The record codes of MODULE_BLOCK_ID.
const (
	moduleVersion    = 1
	moduleTriple     = 2
	moduleLayout     = 3
	moduleGlobalVar  = 7
	moduleFunction   = 8
	moduleAliasOld   = 9
	moduleAlias      = 14
	moduleIFunc      = 15
	moduleVersionTwo = 2
)

// reader is the state of the reading of a module.
type reader struct {
	stream
	*Module
}

const (
	wrapperMagic = 0x0B17C0DE
	wrapperSize  = 20
	magic        = "BC\xC0\xDE"
)

// Wrapped reports what the wrapper around bitcode says: where in data the bitcode begins,
// and how many bytes it has. Without a wrapper that is all of data.
func Wrapped(data []byte) (offset, size int64, err error) {
	if len(data) < 4 || binary.LittleEndian.Uint32(data) != wrapperMagic {
		return 0, int64(len(data)), nil
	}
	if len(data) < wrapperSize {
		return 0, 0, &Error{0, fmt.Sprintf("the wrapper of the bitcode has %d bytes, %d are expected", len(data), wrapperSize)}
	}
	off, n := binary.LittleEndian.Uint32(data[8:]), binary.LittleEndian.Uint32(data[12:])
	if int64(off)+int64(n) > int64(len(data)) || off < wrapperSize {
		return 0, 0, &Error{8, fmt.Sprintf("the wrapper says that the bitcode has %d bytes from offset %d, there are %d", n, off, len(data))}
	}
	return int64(off), int64(n), nil
}

// Read reads a module. data must not change as long as the module is used.
func Read(data []byte) (m *Module, err error) {
	off, n, err := Wrapped(data)
	if err != nil {
		return nil, err
	}
	data = data[off : off+n : off+n]
	switch {
	case len(data) < len(magic) || string(data[:len(magic)]) != magic:
		return nil, &Error{off, "is no LLVM bitcode: it does not begin with 42 43 C0 DE"}
	case len(data)%4 != 0:
		return nil, &Error{off + n, fmt.Sprintf("bitcode comes in words of 4 bytes, here are %d bytes", n)}
	case len(data) > maxModule:
		return nil, &Error{off, fmt.Sprintf("a module of %d bytes, at most %d are read", n, maxModule)}
	}
	defer caught(&err)
	r := reader{Module: &Module{data: data}}
	r.stream = stream{cursor: cursor{data: data, base: off, pos: uint64(len(magic)) * 8, end: uint64(n) * 8}, info: map[uint64][]abbreviation{}}
	r.file()
	return r.Module, nil
}

// file reads the blocks of the file.
func (m *reader) file() {
	top := &block{top: true, width: 2, end: m.end}
	var names []byte
	modules := 0
	for m.next(top) != blockEnds {
		switch m.entering.id {
		case blockInfo:
			m.readInfo()
		case moduleBlock:
			if modules++; modules > 1 {
				m.fail("there is a second module")
			}
			m.module()
		case strtabBlock:
			names = m.strings()
		default:
			m.skipBlock()
		}
	}
	if modules == 0 {
		m.fail("there is no module")
	}
	m.finish(names)
}

// strings reads the string table.
func (m *reader) strings() (table []byte) {
	b := m.enter()
	for {
		switch m.next(b) {
		case blockEnds:
			return table
		case subblock:
			m.skipBlock()
		case isRecord:
			const strtabBlob = 1
			if r := &m.fetched; r.code == strtabBlob {
				table = r.blob
			}
		}
	}
}

func (m *reader) module() {
	b := m.enter()
	version := uint64(0)
	for {
		switch m.next(b) {
		case blockEnds:
			if version != moduleVersionTwo {
				m.fail("a module of version %d, version 2 is expected", version)
			}
			return
		case subblock:
			switch m.entering.id {
			case blockInfo:
				m.readInfo()
			case typeBlock:
				if len(m.types.list) > 0 {
					m.fail("there is a second table of types")
				}
				m.readTypes()
			case constantsBlock:
				m.readConstants()
			case metadataBlock:
				m.readMetadata()
			default:
				m.skipBlock()
			}
		case isRecord:
			r := &m.fetched
			switch r.code {
			case moduleVersion:
				version = m.op(0)
			case moduleTriple:
				m.Triple = m.text(r.ops)
			case moduleLayout:
				m.DataLayout = m.text(r.ops)
			case moduleGlobalVar:
				m.globalVar()
			case moduleFunction:
				m.function()
			case moduleAlias, moduleAliasOld, moduleIFunc:
				m.defineValue(value{})
			}
		}
	}
}

// op returns an operand of the current record.
func (m *reader) op(i int) uint64 {
	r := &m.fetched
	if i >= len(r.ops) {
		m.fail("record %d has %d operands, number %d is missing", r.code, r.count, i)
	}
	return r.ops[i]
}

func (m *reader) defineValue(v value) {
	if len(m.values) == maxValues {
		m.fail("there are more than %d values", maxValues)
	}
	m.values = append(m.values, v)
}

func (m *reader) globalVar() {
	if len(m.Globals) == maxSymbols {
		m.fail("there are more than %d global variables", maxSymbols)
	}
	flags := m.op(3)
	const isConst, explicitType = 1, 2
	g := Global{name: span{m.op(0), m.op(1)}, typ: m.op(2), Constant: flags&isConst != 0, AddressSpace: flags >> 2, alignment: m.op(6)}
	if t := m.typeAt(g.typ); flags&explicitType == 0 {
		if t.kind != kindPointer || t.element < 0 {
			m.fail("a global variable is no pointer to its type")
		}
		g.typ, g.AddressSpace = uint64(t.element), t.n
		m.typeAt(g.typ)
	}
	if g.alignment > 33 {
		m.fail("a global variable is aligned to 2^%d bytes", g.alignment-1)
	}
	if len(m.fetched.ops) > 11 {
		g.ExternallyInitialized = m.op(11) != 0
	}
	m.defineValue(value{kind: isGlobal, typ: uint32(g.typ), n: int64(len(m.Globals))})
	m.Globals = append(m.Globals, g)
}

func (m *reader) function() {
	if len(m.Functions) == maxSymbols {
		m.fail("there are more than %d functions", maxSymbols)
	}
	f := Func{name: span{m.op(0), m.op(1)}, Defined: m.op(4) == 0}
	t := m.typeAt(m.op(2))
	if t.kind == kindPointer && t.element >= 0 {
		t = m.typeAt(uint64(t.element))
	}
	if t.kind != kindFunction {
		m.fail("a function has a type that is none of a function")
	}
	f.Params = int(t.count)
	m.defineValue(value{kind: isFunction, n: int64(len(m.Functions))})
	m.Functions = append(m.Functions, f)
}

// readConstants reads constants, of which only integers are kept.
func (m *reader) readConstants() {
	b := m.enter()
	const (
		setType = 1
		null    = 2
		integer = 4
	)
	var t uint64
	typed := false
	for {
		switch m.next(b) {
		case blockEnds:
			return
		case subblock:
			m.skipBlock()
			continue
		}
		r := &m.fetched
		if r.code == setType {
			t, typed = m.op(0), true
			m.typeAt(t)
			continue
		}
		if !typed {
			m.fail("a constant has no type")
		}
		v := value{typ: uint32(t)}
		if k := m.typeAt(t); k.kind == kindInteger && k.n <= 64 {
			switch r.code {
			case null:
				v.kind = isInteger
			case integer:
				v.kind, v.n = isInteger, signed(m.op(0))
			}
		}
		m.defineValue(v)
	}
}

// signed decodes an integer whose lowest bit is the sign.
func signed(v uint64) int64 {
	if v&1 == 0 {
		return int64(v >> 1)
	}
	if v == 1 {
		return -1 << 63
	}
	return -int64(v >> 1)
}

// finish resolves names, whose table follows the module, and lays out the types.
func (m *reader) finish(names []byte) {
	total := uint64(0)
	name := func(s span) string {
		if s.size > uint64(len(names)) || s.offset > uint64(len(names))-s.size {
			m.fail("a name of %d bytes at %d lies outside the string table of %d bytes", s.size, s.offset, len(names))
		}
		if total += s.size; total > maxNames { // names may share their bytes in the file
			m.fail("names have more than %d bytes in all", maxNames)
		}
		return string(names[s.offset : s.offset+s.size])
	}
	m.types.lay(parseLayout(m.DataLayout))
	for i := range m.Globals {
		g := &m.Globals[i]
		g.Name = name(g.name)
		e := m.types.sizes[g.typ]
		g.Size, g.Align = e.size, e.align
		if g.alignment > 0 {
			g.Align = 1 << (g.alignment - 1)
		}
	}
	for i := range m.Functions {
		f := &m.Functions[i]
		f.Name = name(f.name)
	}
}

// Named returns those operands of the named metadata node that are nodes.
func (m *Module) Named(name string) (out []Node) {
	for _, n := range m.named {
		if n.name != name {
			continue
		}
		list := Node{m, n.first, n.count}
		for i := range list.Len() {
			if node, ok := list.Operand(i).Node(); ok {
				out = append(out, node)
			}
		}
	}
	return out
}
