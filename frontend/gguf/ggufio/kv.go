package ggufio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/mlxc/mlxc/frontend"
)

// ErrMissing is wrapped by an accessor's error when the key is not in the file,
// so that a caller can tell "absent: take the default" from "present but wrong".
var ErrMissing = errors.New("key is missing")

// maxStrings bounds the result of [KV.Strings]. A Go string header (16 bytes) is larger
// than the shortest string in the file (8 bytes); with this bound the difference stays
// below the package's 10 MB.
const maxStrings = 1 << 20

// KV is the metadata of a file: typed values by key, in file order. Values are decoded
// when they are asked for. A method returns a value only if it has exactly the type
// that the method is named after. Otherwise its error says what the value is instead,
// and wraps [ErrMissing] if there is no such key.
type KV struct {
	file    *File
	entries []entry
	index   map[string]int // key → place in entries
}

// entry says where a value lies. INVARIANT: the parser has checked every byte of it.
type entry struct {
	key  string
	typ  ValueType
	elem ValueType // of an array
	n    int       // elements of an array, else 1
	at   int       // offset of the key
	off  int       // offset of the value, of an array's first element
}

// kind is "u32", or "array of u32" for arrays.
func (e entry) kind() string {
	if e.typ == Array {
		return "array of " + e.elem.String()
	}
	return e.typ.String()
}

// Len is the number of keys.
func (kv *KV) Len() int { return len(kv.entries) }

// Has reports whether the key is in the file.
func (kv *KV) Has(key string) bool {
	_, ok := kv.index[key]
	return ok
}

// Keys yields the keys in file order.
func (kv *KV) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, e := range kv.entries {
			if !yield(e.key) {
				return
			}
		}
	}
}

// Type is the value's type; for arrays, elem is the type of the elements and n
// their number. ok is false when there is no such key.
func (kv *KV) Type(key string) (typ, elem ValueType, n int, ok bool) {
	i, ok := kv.index[key]
	if !ok {
		return 0, 0, 0, false
	}
	e := kv.entries[i]
	return e.typ, e.elem, e.n, true
}

// find returns the entry if it is of the wanted type (and element type, for an
// array).
func (kv *KV) find(key string, typ, elem ValueType) (entry, error) {
	want := entry{typ: typ, elem: elem}
	i, ok := kv.index[key]
	if !ok {
		return entry{}, &frontend.Error{File: kv.file.Name, Offset: -1, Err: ErrMissing,
			Reason: fmt.Sprintf("key %.80q is missing (want %s)", key, want.kind())}
	}
	e := kv.entries[i]
	if kv.file.data == nil {
		return entry{}, &frontend.Error{File: kv.file.Name, Offset: -1,
			Reason: fmt.Sprintf("key %.80q is asked for after Close", key)}
	}
	if e.typ != typ || typ == Array && e.elem != elem {
		return entry{}, &frontend.Error{File: kv.file.Name, Offset: int64(e.off),
			Reason: fmt.Sprintf("key %.80q is %s, want %s", key, e.kind(), want.kind())}
	}
	return e, nil
}

// scalar finds a value of fixed size and returns its bytes.
func (kv *KV) scalar(key string, typ ValueType) ([]byte, error) {
	e, err := kv.find(key, typ, 0)
	if err != nil {
		return nil, err
	}
	return kv.file.data[e.off : e.off+valueTypes[typ].size], nil
}

// String returns a string value, copied. It need not be UTF-8.
func (kv *KV) String(key string) (string, error) {
	e, err := kv.find(key, String, 0)
	if err != nil {
		return "", err
	}
	return string(kv.stringAt(e.off)), nil
}

// stringAt returns the string at off. INVARIANT: the parser has checked its length.
func (kv *KV) stringAt(off int) []byte {
	n := int(binary.LittleEndian.Uint64(kv.file.data[off:]))
	return kv.file.data[off+8 : off+8+n]
}

// Bool returns a bool value.
func (kv *KV) Bool(key string) (bool, error) {
	b, err := kv.scalar(key, Bool)
	return err == nil && b[0] == 1, err
}

// Uint8 returns a u8 value.
func (kv *KV) Uint8(key string) (uint8, error) { return scalar[uint8](kv, key, Uint8) }

// Int8 returns an i8 value.
func (kv *KV) Int8(key string) (int8, error) { return scalar[int8](kv, key, Int8) }

// Uint16 returns a u16 value.
func (kv *KV) Uint16(key string) (uint16, error) { return scalar[uint16](kv, key, Uint16) }

// Int16 returns an i16 value.
func (kv *KV) Int16(key string) (int16, error) { return scalar[int16](kv, key, Int16) }

// Uint32 returns a u32 value.
func (kv *KV) Uint32(key string) (uint32, error) { return scalar[uint32](kv, key, Uint32) }

// Int32 returns an i32 value.
func (kv *KV) Int32(key string) (int32, error) { return scalar[int32](kv, key, Int32) }

// Uint64 returns a u64 value.
func (kv *KV) Uint64(key string) (uint64, error) { return scalar[uint64](kv, key, Uint64) }

// Int64 returns an i64 value.
func (kv *KV) Int64(key string) (int64, error) { return scalar[int64](kv, key, Int64) }

// Float32 returns an f32 value.
func (kv *KV) Float32(key string) (float32, error) { return scalar[float32](kv, key, Float32) }

// Float64 returns an f64 value.
func (kv *KV) Float64(key string) (float64, error) { return scalar[float64](kv, key, Float64) }

// Strings returns an array of strings, copied. An array of more than 1,048,576
// strings is refused.
func (kv *KV) Strings(key string) ([]string, error) {
	e, err := kv.find(key, Array, String)
	if err != nil {
		return nil, err
	}
	if e.n > maxStrings {
		return nil, &frontend.Error{File: kv.file.Name, Offset: int64(e.off),
			Reason: fmt.Sprintf("key %.80q holds %d strings, at most %d are supported", key, e.n, maxStrings)}
	}
	total := 0
	for i, off := 0, e.off; i < e.n; i++ {
		s := kv.stringAt(off)
		total += len(s)
		off += 8 + len(s)
	}
	// All contents are allocated at once, because a vocabulary has 10^5 short strings.
	all := make([]byte, 0, total)
	for i, off := 0, e.off; i < e.n; i++ {
		s := kv.stringAt(off)
		all = append(all, s...)
		off += 8 + len(s)
	}
	text := string(all)
	out := make([]string, e.n)
	for i, off := 0, e.off; i < e.n; i++ {
		n := len(kv.stringAt(off))
		out[i], text = text[:n], text[n:]
		off += 8 + n
	}
	return out, nil
}

// Bools returns an array of bool, copied.
func (kv *KV) Bools(key string) ([]bool, error) {
	e, err := kv.find(key, Array, Bool)
	if err != nil {
		return nil, err
	}
	out := make([]bool, e.n)
	for i := range out {
		out[i] = kv.file.data[e.off+i] == 1
	}
	return out, nil
}

// Uint8s returns an array of u8, copied.
func (kv *KV) Uint8s(key string) ([]uint8, error) { return array[uint8](kv, key, Uint8) }

// Int8s returns an array of i8, copied.
func (kv *KV) Int8s(key string) ([]int8, error) { return array[int8](kv, key, Int8) }

// Uint16s returns an array of u16, copied.
func (kv *KV) Uint16s(key string) ([]uint16, error) { return array[uint16](kv, key, Uint16) }

// Int16s returns an array of i16, copied.
func (kv *KV) Int16s(key string) ([]int16, error) { return array[int16](kv, key, Int16) }

// Uint32s returns an array of u32, copied.
func (kv *KV) Uint32s(key string) ([]uint32, error) { return array[uint32](kv, key, Uint32) }

// Int32s returns an array of i32, copied.
func (kv *KV) Int32s(key string) ([]int32, error) { return array[int32](kv, key, Int32) }

// Uint64s returns an array of u64, copied.
func (kv *KV) Uint64s(key string) ([]uint64, error) { return array[uint64](kv, key, Uint64) }

// Int64s returns an array of i64, copied.
func (kv *KV) Int64s(key string) ([]int64, error) { return array[int64](kv, key, Int64) }

// Float32s returns an array of f32, copied.
func (kv *KV) Float32s(key string) ([]float32, error) { return array[float32](kv, key, Float32) }

// Float64s returns an array of f64, copied.
func (kv *KV) Float64s(key string) ([]float64, error) { return array[float64](kv, key, Float64) }

// Value returns the value in its own Go type, for printing: uint8 … float64,
// bool, string, or a slice of one of these. Arrays of arrays are refused.
func (kv *KV) Value(key string) (any, error) {
	typ, elem, _, ok := kv.Type(key)
	if !ok {
		_, err := kv.String(key) // returns the error for a missing key
		return nil, err
	}
	switch typ {
	case Uint8:
		return kv.Uint8(key)
	case Int8:
		return kv.Int8(key)
	case Uint16:
		return kv.Uint16(key)
	case Int16:
		return kv.Int16(key)
	case Uint32:
		return kv.Uint32(key)
	case Int32:
		return kv.Int32(key)
	case Uint64:
		return kv.Uint64(key)
	case Int64:
		return kv.Int64(key)
	case Float32:
		return kv.Float32(key)
	case Float64:
		return kv.Float64(key)
	case Bool:
		return kv.Bool(key)
	case String:
		return kv.String(key)
	}
	switch elem {
	case Uint8:
		return kv.Uint8s(key)
	case Int8:
		return kv.Int8s(key)
	case Uint16:
		return kv.Uint16s(key)
	case Int16:
		return kv.Int16s(key)
	case Uint32:
		return kv.Uint32s(key)
	case Int32:
		return kv.Int32s(key)
	case Uint64:
		return kv.Uint64s(key)
	case Int64:
		return kv.Int64s(key)
	case Float32:
		return kv.Float32s(key)
	case Float64:
		return kv.Float64s(key)
	case Bool:
		return kv.Bools(key)
	case String:
		return kv.Strings(key)
	}
	e := kv.entries[kv.index[key]]
	return nil, &frontend.Error{File: kv.file.Name, Offset: int64(e.off),
		Reason: fmt.Sprintf("key %.80q is an array of arrays, which cannot be read", key)}
}

// number is any of the fixed-size Go types of GGUF values.
type number interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64
}

func scalar[T number](kv *KV, key string, typ ValueType) (T, error) {
	b, err := kv.scalar(key, typ)
	if err != nil {
		return 0, err
	}
	return decode[T](b), nil
}

func array[T number](kv *KV, key string, elem ValueType) ([]T, error) {
	e, err := kv.find(key, Array, elem)
	if err != nil {
		return nil, err
	}
	size := valueTypes[elem].size
	out := make([]T, e.n)
	for i := range out {
		out[i] = decode[T](kv.file.data[e.off+i*size:])
	}
	return out, nil
}

// decode reads a T from the beginning of b. It keeps all bits, also those of a NaN.
func decode[T number](b []byte) T {
	var v T
	switch p := any(&v).(type) {
	case *uint8:
		*p = b[0]
	case *int8:
		*p = int8(b[0])
	case *uint16:
		*p = binary.LittleEndian.Uint16(b)
	case *int16:
		*p = int16(binary.LittleEndian.Uint16(b))
	case *uint32:
		*p = binary.LittleEndian.Uint32(b)
	case *int32:
		*p = int32(binary.LittleEndian.Uint32(b))
	case *uint64:
		*p = binary.LittleEndian.Uint64(b)
	case *int64:
		*p = int64(binary.LittleEndian.Uint64(b))
	case *float32:
		*p = math.Float32frombits(binary.LittleEndian.Uint32(b))
	case *float64:
		*p = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return v
}
