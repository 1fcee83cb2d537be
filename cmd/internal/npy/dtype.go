package npy

import "fmt"

// DType is the type of an array's elements.
type DType uint8

// The element types. The zero DType is none of them.
const (
	Bool DType = iota + 1 // one byte; 0 is false
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	Float32
	Float64
)

// dtypes has NumPy's names: kind letter and size in bytes make the type code of
// a header.
var dtypes = [...]struct {
	name string
	kind byte
	size int
}{
	Bool:    {"bool", 'b', 1},
	Int8:    {"int8", 'i', 1},
	Int16:   {"int16", 'i', 2},
	Int32:   {"int32", 'i', 4},
	Int64:   {"int64", 'i', 8},
	Uint8:   {"uint8", 'u', 1},
	Uint16:  {"uint16", 'u', 2},
	Uint32:  {"uint32", 'u', 4},
	Uint64:  {"uint64", 'u', 8},
	Float16: {"float16", 'f', 2},
	Float32: {"float32", 'f', 4},
	Float64: {"float64", 'f', 8},
}

func (d DType) valid() bool { return d >= Bool && int(d) < len(dtypes) }

// Size returns the bytes of an element, 0 for a DType that is none.
func (d DType) Size() int {
	if !d.valid() {
		return 0
	}
	return dtypes[d].size
}

// String returns NumPy's name, such as float32.
func (d DType) String() string {
	if !d.valid() {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// descr is the type code of the little-endian type, as NumPy writes it.
func (d DType) descr() string {
	order := byte('<')
	if d.Size() == 1 {
		order = '|'
	}
	return fmt.Sprintf("%c%c%d", order, dtypes[d].kind, dtypes[d].size)
}

// parseDescr reads a type code: byte order, kind, size.
func parseDescr(s string) (d DType, bigEndian bool, err error) {
	if len(s) == 3 {
		for d := Bool; d.valid(); d++ {
			if s[1] != dtypes[d].kind || int(s[2]-'0') != dtypes[d].size {
				continue
			}
			switch {
			case s[0] == '<', s[0] == '|' && d.Size() == 1:
				return d, false, nil
			case s[0] == '>':
				return d, true, nil
			}
			return 0, false, fmt.Errorf("type %q has no byte order: want < or > before %s", s, s[1:])
		}
	}
	return 0, false, fmt.Errorf("type %q is not one of b1, i1 to i8, u1 to u8, f2, f4 and f8 after a byte order", s)
}
