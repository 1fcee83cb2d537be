package ggufwrite

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
)

// File collects pairs and tensors. The zero File is an empty file of version 3 with the
// default alignment; a pair "general.alignment" (uint32) changes the alignment.
type File struct {
	Version uint32 // 0 means 3

	alignment uint64
	kvs       []byte
	keys      int
	tensors   []tensor
	err       error // the first mistake; Bytes returns it
}

type tensor struct {
	name   string
	typ    ggufio.Type
	dims   []uint64
	data   []byte
	offset *uint64 // stored in place of the right offset, relative to the data; nil: directly after the tensor before
}

// KV adds a pair. The Go type of v is the type in the file: uint8 … float64,
// bool, string, or a slice of one of these.
func (f *File) KV(key string, v any) {
	if a, ok := v.(uint32); ok && key == "general.alignment" {
		f.alignment = uint64(a)
	}
	b := appendString(f.kvs, key)
	b, err := appendValue(b, v)
	if err != nil {
		f.fail("key %q: %w", key, err)
		return
	}
	f.kvs = b
	f.keys++
}

// Tensor adds a tensor after those already there. dims are innermost first.
func (f *File) Tensor(name string, typ ggufio.Type, dims []uint64, data []byte) {
	f.tensors = append(f.tensors, tensor{name: name, typ: typ, dims: dims, data: data})
}

// TensorAt is Tensor with an offset that the caller chooses, for a file that is wrong
// about where its data lies.
func (f *File) TensorAt(name string, typ ggufio.Type, dims []uint64, offset uint64, data []byte) {
	f.tensors = append(f.tensors, tensor{name: name, typ: typ, dims: dims, data: data, offset: &offset})
}

// Bytes returns the whole file.
func (f *File) Bytes() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	version := f.Version
	if version == 0 {
		version = 3
	}
	align := f.alignment
	if align == 0 {
		align = 32
	}
	le := binary.LittleEndian
	b := append([]byte(nil), "GGUF"...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint64(b, uint64(len(f.tensors)))
	b = le.AppendUint64(b, uint64(f.keys))
	b = append(b, f.kvs...)
	next := uint64(0)
	for _, t := range f.tensors {
		offset := next
		if t.offset != nil {
			offset = *t.offset
		}
		b = appendString(b, t.name)
		b = le.AppendUint32(b, uint32(len(t.dims)))
		for _, d := range t.dims {
			b = le.AppendUint64(b, d)
		}
		b = le.AppendUint32(b, uint32(t.typ))
		b = le.AppendUint64(b, offset)
		next += pad(uint64(len(t.data)), align)
	}
	if len(f.tensors) == 0 {
		return b, nil
	}
	b = append(b, make([]byte, pad(uint64(len(b)), align)-uint64(len(b)))...)
	for i, t := range f.tensors {
		b = append(b, t.data...)
		if i < len(f.tensors)-1 { // no padding after the last tensor, so that every byte matters
			n := uint64(len(t.data))
			b = append(b, make([]byte, pad(n, align)-n)...)
		}
	}
	return b, nil
}

// WriteFile writes the file at path.
func (f *File) WriteFile(path string) error {
	b, err := f.Bytes()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("ggufwrite: %w", err)
	}
	return nil
}

func (f *File) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("ggufwrite: "+format, args...)
	}
}

// pad rounds n up to a multiple of align, which need not be a power of two.
func pad(n, align uint64) uint64 { return (n + align - 1) / align * align }

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// appendValue appends the value's type and the value.
func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []uint8:
		return appendArray(b, v), nil
	case []int8:
		return appendArray(b, v), nil
	case []uint16:
		return appendArray(b, v), nil
	case []int16:
		return appendArray(b, v), nil
	case []uint32:
		return appendArray(b, v), nil
	case []int32:
		return appendArray(b, v), nil
	case []uint64:
		return appendArray(b, v), nil
	case []int64:
		return appendArray(b, v), nil
	case []float32:
		return appendArray(b, v), nil
	case []float64:
		return appendArray(b, v), nil
	case []bool:
		return appendArray(b, v), nil
	case []string:
		return appendArray(b, v), nil
	}
	t, ok := typeOf(v)
	if !ok {
		return nil, fmt.Errorf("Go type %T has no GGUF type", v)
	}
	return appendBare(binary.LittleEndian.AppendUint32(b, uint32(t)), v), nil
}

func appendArray[T any](b []byte, vs []T) []byte {
	var zero T
	t, _ := typeOf(zero)
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(ggufio.Array))
	b = le.AppendUint32(b, uint32(t))
	b = le.AppendUint64(b, uint64(len(vs)))
	for _, v := range vs {
		b = appendBare(b, v)
	}
	return b
}

func typeOf(v any) (ggufio.ValueType, bool) {
	switch v.(type) {
	case uint8:
		return ggufio.Uint8, true
	case int8:
		return ggufio.Int8, true
	case uint16:
		return ggufio.Uint16, true
	case int16:
		return ggufio.Int16, true
	case uint32:
		return ggufio.Uint32, true
	case int32:
		return ggufio.Int32, true
	case uint64:
		return ggufio.Uint64, true
	case int64:
		return ggufio.Int64, true
	case float32:
		return ggufio.Float32, true
	case float64:
		return ggufio.Float64, true
	case bool:
		return ggufio.Bool, true
	case string:
		return ggufio.String, true
	}
	return 0, false
}

// appendBare appends the value without its type. INVARIANT: typeOf knows v.
func appendBare(b []byte, v any) []byte {
	le := binary.LittleEndian
	switch v := v.(type) {
	case uint8:
		return append(b, v)
	case int8:
		return append(b, byte(v))
	case uint16:
		return le.AppendUint16(b, v)
	case int16:
		return le.AppendUint16(b, uint16(v))
	case uint32:
		return le.AppendUint32(b, v)
	case int32:
		return le.AppendUint32(b, uint32(v))
	case uint64:
		return le.AppendUint64(b, v)
	case int64:
		return le.AppendUint64(b, uint64(v))
	case float32:
		return le.AppendUint32(b, math.Float32bits(v))
	case float64:
		return le.AppendUint64(b, math.Float64bits(v))
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case string:
		return appendString(b, v)
	}
	panic(fmt.Sprintf("ggufwrite: %T", v))
}
