package ggufio

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/files/mmap"
)

// File is an open GGUF file. Its methods may be used by several goroutines at
// once, except Close.
type File struct {
	Name      string   // as given to Open
	Version   uint32   // 2 or 3
	Alignment uint64   // of tensor data, bytes; a power of two
	DataStart int64    // byte offset in the file of the tensor data
	KV        *KV      // metadata, in file order
	Tensors   []Tensor // in file order

	data    []byte // the whole file; nil once closed
	mapping *mmap.Map
}

// Tensor is one row of the tensor table.
type Tensor struct {
	Name   string
	Type   Type
	Dims   []uint64 // innermost first, as stored; at most 4; none for a scalar
	Offset int64    // absolute byte offset in the file
	Size   int64    // bytes
}

// Elements is the product of the dims (1 for a scalar).
func (t Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d // cannot overflow: Parse checked the product
	}
	return n
}

// Open maps the file at path and checks all of its metadata and tensor table.
func Open(path string) (*File, error) {
	f, m, err := mmap.Parsed(path, Parse)
	if err != nil {
		return nil, err
	}
	f.mapping = m
	return f, nil
}

// Parse is Open for bytes that are already in memory. It keeps data, and never writes
// to it. name stands for the file in errors.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name, data: data}
	f.KV = &KV{file: f}
	if err := (&parser{file: f}).run(); err != nil {
		return nil, err
	}
	return f, nil
}

// Close releases the mapping. Slices returned by Data must not be used after that
// (reading one is a memory fault); methods of KV return errors.
func (f *File) Close() error {
	f.data = nil
	if f.mapping == nil {
		return nil
	}
	m := f.mapping
	f.mapping = nil
	return m.Close()
}

// Data returns the tensor's bytes: a slice of the mapping, not a copy, which is valid
// until Close and must not be written to. It panics if the file is closed, or if t is
// not one of f.Tensors and does not lie within the file. Both are mistakes of the
// program, not of the file.
func (f *File) Data(t Tensor) []byte {
	if f.data == nil {
		panic(fmt.Sprintf("ggufio: %s: Data(%q) after Close", f.Name, t.Name))
	}
	end := t.Offset + t.Size
	return f.data[t.Offset:end:end]
}

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	for _, t := range f.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}
