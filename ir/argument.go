package ir

import (
	"encoding/binary"
	"slices"
)

// Value is an entry of argument memory: a constant argument that a dispatch would otherwise bind
// inline.
type Value struct {
	Off int64 // first byte in the memory
	// Type is the type of Expr, as in a [Binding]. Of Bytes it is their type, which only people
	// read, or Invalid.
	Type  DType
	Bytes []byte // if nil, the value is Expr
	Expr  Affine
}

// Size is the number of bytes of v.
func (v *Value) Size() int64 {
	if v.Bytes != nil {
		return int64(len(v.Bytes))
	}
	return v.Type.Size()
}

// binding returns v as an inline binding.
func (v *Value) binding(slot uint8) Binding {
	if v.Bytes != nil {
		return BytesArg(slot, v.Bytes)
	}
	return ScalarArg(slot, v.Type, v.Expr)
}

// equal reports whether v and o are the same bytes at the same place, for all
// values of the params.
func (v *Value) equal(o *Value) bool {
	if v.Off != o.Off || (v.Bytes == nil) != (o.Bytes == nil) {
		return false
	}
	if v.Bytes != nil {
		return string(v.Bytes) == string(o.Bytes)
	}
	return v.Type == o.Type && v.Expr.Equal(o.Expr)
}

// ScalarBits returns the bits of the scalar e of type t. An f32 scalar is the value of its one
// param.
func ScalarBits(t DType, e Affine, params []uint32) uint64 {
	if t == F32 {
		return uint64(params[e.Terms()[0].Param])
	}
	return uint64(e.Eval(params))
}

// WriteValues fills dst, the bytes of argument memory m, for given params. Bytes that no value
// covers become zero.
func (m *Memory) WriteValues(dst []byte, params []uint32) {
	var word [8]byte
	at := int64(0) // the end of the previous value
	for i := range m.Init.Values {
		v := &m.Init.Values[i]
		clear(dst[at:v.Off])
		at = v.Off + v.Size()
		if v.Bytes != nil {
			copy(dst[v.Off:], v.Bytes)
			continue
		}
		binary.LittleEndian.PutUint64(word[:], ScalarBits(v.Type, v.Expr, params))
		copy(dst[v.Off:at], word[:])
	}
	clear(dst[at:])
}

// ArgumentAt returns the inline binding (of slot 0) that a view of argument memory stands for:
// bytes, or one whole scalar of params. ok is false for any other view: one of another kind of
// memory, one whose offset depends on params, or one of bytes that several values share. It takes
// O(log n) for n values.
func (g *Graph) ArgumentAt(v View) (b Binding, ok bool) {
	if g.Memories[v.Mem].Kind != Argument || !v.Off.IsConst() || !v.Len.IsConst() {
		return b, false
	}
	root, off := g.Root(v.Mem)
	lo := v.Off.Const + off
	end := lo + v.Len.Const
	values := g.Memories[root].Init.Values
	i, found := slices.BinarySearchFunc(values, lo, func(v Value, at int64) int {
		switch {
		case v.Off < at:
			return -1
		case v.Off > at:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 || lo >= end || end > values[i].Off+values[i].Size() {
		return b, false
	}
	x := &values[i]
	if x.Bytes != nil {
		return BytesArg(0, x.Bytes[lo-x.Off:end-x.Off]), true
	}
	return x.binding(0), lo == x.Off && end == x.Off+x.Size()
}

// Resolve returns b. If b is a view of argument memory that stands for an inline binding
// ([Graph.ArgumentAt]), Resolve returns that.
func (g *Graph) Resolve(b Binding) Binding {
	if b.Kind != BindView {
		return b
	}
	inline, ok := g.ArgumentAt(b.View)
	if !ok {
		return b
	}
	inline.Slot = b.Slot
	return inline
}
