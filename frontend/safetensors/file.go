package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// Bounds of a file: those of the format's own reader, and of tensors and dimensions what no known file comes near.
const (
	maxHeader  = 100_000_000
	maxTensors = 1 << 18
	maxDims    = 8
)

// Tensor is one of a file.
type Tensor struct {
	Name   string
	Type   ir.DType
	Shape  []int64 // outermost first
	Offset int64   // of its first byte in the file
	Size   int64   // bytes
}

// File is an open file of the format safetensors: the length of a header, the header as JSON, and the bytes of its
// tensors, one behind another without a gap.
type File struct {
	Name    string
	Tensors []Tensor // in the order of their bytes
	data    []byte
	mapping *mmap.Map
}

// dtypes are the element types of the format that models use here.
var dtypes = map[string]ir.DType{
	"BOOL": ir.Bool, "U8": ir.U8, "I8": ir.I8, "U16": ir.U16, "I16": ir.I16, "U32": ir.U32, "I32": ir.I32, "U64": ir.U64, "I64": ir.I64,
	"F16": ir.F16, "BF16": ir.BF16, "F32": ir.F32,
}

// Open maps the file at path. Close must be called.
func Open(path string) (*File, error) {
	f, m, err := mmap.Parsed(path, Parse)
	if err != nil {
		return nil, err
	}
	f.mapping = m
	return f, nil
}

// Close unmaps the file.
func (f *File) Close() error {
	f.data = nil
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Data returns the bytes of a tensor, which must not be changed.
func (f *File) Data(t Tensor) []byte { return f.data[t.Offset : t.Offset+t.Size : t.Offset+t.Size] }

// Parse is Open for bytes that are in memory, which it keeps. name stands for the file in errors.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name, data: data}
	if len(data) < 8 {
		return nil, f.fail(0, "the file has %d bytes, too few for the length of a header", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, f.fail(0, "the header has %d bytes: want at most %d, and no more than the file has", n, maxHeader)
	}
	header := data[8 : 8+n]
	if len(header) == 0 || header[0] != '{' {
		return nil, f.fail(8, "the header does not begin with {")
	}
	if err := f.readHeader(header); err != nil {
		return nil, err
	}
	return f, f.checkPlaces(8 + int64(n))
}

func (f *File) fail(at int64, format string, args ...any) error {
	return &frontend.Error{File: f.Name, Offset: at, Reason: fmt.Sprintf(format, args...)}
}

// readHeader reads the entries one by one, because a JSON object may not name one twice.
func (f *File) readHeader(header []byte) error {
	d := json.NewDecoder(bytes.NewReader(header))
	bad := func(err error) error { return f.fail(8+d.InputOffset(), "the header: %v", err) }
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return bad(err)
		}
		name := key.(string) // of an object the decoder allows no other
		if seen[name] {
			return f.fail(8+d.InputOffset(), "%.60q stands twice in the header", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			var notes map[string]string
			if err := d.Decode(&notes); err != nil {
				return bad(err)
			}
			continue
		}
		if len(f.Tensors) == maxTensors {
			return f.fail(8+d.InputOffset(), "the header has more than %d tensors", maxTensors)
		}
		var entry struct {
			DType   string    `json:"dtype"`
			Shape   []int64   `json:"shape"`
			Offsets *[2]int64 `json:"data_offsets"`
		}
		if err := d.Decode(&entry); err != nil {
			return bad(err)
		}
		t := Tensor{Name: name, Type: dtypes[entry.DType], Shape: entry.Shape}
		if t.Type == ir.Invalid {
			return f.fail(8+d.InputOffset(), "tensor %.60q has the type %.20q, which is not supported", name, entry.DType)
		}
		if entry.Offsets == nil || len(t.Shape) > maxDims {
			return f.fail(8+d.InputOffset(), "tensor %.60q has no offsets, or more than %d dimensions", name, maxDims)
		}
		size := t.Type.Size()
		for _, n := range t.Shape {
			if n < 0 || n > 0 && size > int64(len(f.data))/n {
				return f.fail(8+d.InputOffset(), "tensor %.60q %v does not fit the file", name, t.Shape)
			}
			size *= n
		}
		t.Offset, t.Size = entry.Offsets[0], entry.Offsets[1]-entry.Offsets[0]
		if t.Offset < 0 || t.Offset > int64(len(f.data)) || t.Size != size {
			return f.fail(8+d.InputOffset(), "tensor %.60q %s%v lies at bytes %d to %d: want %d bytes", name, t.Type, t.Shape, t.Offset, entry.Offsets[1], size)
		}
		f.Tensors = append(f.Tensors, t)
	}
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	if rest := bytes.TrimRight(header[d.InputOffset():], " "); len(rest) > 0 {
		return f.fail(8+d.InputOffset(), "the header has more than one object")
	}
	return nil
}

// checkPlaces makes offsets those in the file, and sees to it that the tensors cover all bytes behind the header, each
// once.
func (f *File) checkPlaces(begin int64) error {
	slices.SortStableFunc(f.Tensors, func(a, b Tensor) int {
		if a.Offset != b.Offset {
			return int(min(1, max(-1, a.Offset-b.Offset)))
		}
		return int(min(1, max(-1, a.Size-b.Size)))
	})
	at := begin
	for i := range f.Tensors {
		t := &f.Tensors[i]
		t.Offset += begin
		if t.Offset != at {
			return f.fail(t.Offset, "tensor %.60q begins at byte %d of the file, want %d: tensors leave no gap and do not overlap", t.Name, t.Offset, at)
		}
		at += t.Size
		if at > int64(len(f.data)) {
			return f.fail(t.Offset, "tensor %.60q ends at byte %d, the file has %d", t.Name, at, len(f.data))
		}
	}
	if at != int64(len(f.data)) {
		return f.fail(at, "%d bytes behind the last tensor belong to none", int64(len(f.data))-at)
	}
	return nil
}
