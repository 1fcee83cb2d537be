package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Error is what is wrong with a file.
type Error struct {
	File   string // as given to [Load]; empty from [Read]
	Offset int64  // of the byte at fault, from the beginning of the array
	Err    error
}

func (e *Error) Error() string {
	if e.File == "" {
		return fmt.Sprintf("npy: offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("npy: %s: offset %d: %v", e.File, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

const (
	magic = "\x93NUMPY"

	// maxHeader is the longest header of version 1. Only structured types, which
	// are not supported, need more.
	maxHeader = 1<<16 - 1

	// chunk is how many bytes are allocated before any of them were read.
	chunk = 256 << 10
)

// Load reads the array that is all of a file.
func Load(path string) (*Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	defer f.Close()
	rest := int64(-1)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		rest = info.Size()
	}
	r := &reader{from: f, rest: rest, whole: true}
	a, err := r.array()
	if err != nil {
		return nil, &Error{path, r.offset, err}
	}
	return a, nil
}

// Read reads one array and nothing after it.
func Read(r io.Reader) (*Array, error) {
	rd := &reader{from: r, rest: -1}
	switch r := r.(type) { // readers that know how many bytes are left
	case *bytes.Reader:
		rd.rest = int64(r.Len())
	case *bytes.Buffer:
		rd.rest = int64(r.Len())
	case *strings.Reader:
		rd.rest = int64(r.Len())
	}
	a, err := rd.array()
	if err != nil {
		return nil, &Error{"", rd.offset, err}
	}
	return a, nil
}

// A reader reads an array. If it fails, offset says where.
type reader struct {
	from   io.Reader
	offset int64
	rest   int64 // bytes that from has left; -1 if unknown
	whole  bool  // nothing may follow the array
}

// read fills p, which what names in errors.
func (r *reader) read(p []byte, what string) error {
	n, err := io.ReadFull(r.from, p)
	r.offset += int64(n)
	if r.rest >= 0 {
		r.rest -= int64(n)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s wants %d bytes, %d are there", io.ErrUnexpectedEOF, what, len(p), n)
	}
	return err
}

func (r *reader) array() (*Array, error) {
	h, err := r.header()
	if err != nil {
		return nil, err
	}
	size, err := dataSize(h.dtype, h.shape)
	if err != nil {
		return nil, err
	}
	if r.rest >= 0 && int64(size) > r.rest || r.whole && r.rest >= 0 && int64(size) != r.rest {
		return nil, fmt.Errorf("shape %s of %v wants %d bytes, %d follow the header", tuple(h.shape), h.dtype, size, r.rest)
	}
	from := *r
	if r.rest < 0 && size > chunk {
		// Not all the memory is allocated before the bytes have been seen.
		got, err := r.chunks(size)
		if err != nil {
			return nil, err
		}
		from = reader{from: got, offset: r.offset, rest: int64(size)}
	}
	a := &Array{h.dtype, h.shape, make([]byte, size)}
	if h.fortran && len(h.shape) > 1 {
		err = from.fortran(a)
	} else {
		err = from.read(a.Data, "the array")
	}
	if err != nil {
		r.offset = from.offset
		return nil, err
	}
	if r.whole && r.rest < 0 {
		if n, _ := io.ReadFull(r.from, make([]byte, 1)); n > 0 {
			return nil, fmt.Errorf("more follows the %d bytes of shape %s of %v", size, tuple(h.shape), h.dtype)
		}
	}
	if h.bigEndian {
		for e, n := 0, h.dtype.Size(); e < size; e += n {
			slices.Reverse(a.Data[e : e+n])
		}
	}
	return a, nil
}

// header reads everything before the elements.
func (r *reader) header() (header, error) {
	var start [8]byte
	if err := r.read(start[:], "the magic string and version"); err != nil {
		return header{}, err
	}
	if string(start[:6]) != magic {
		r.offset = 0
		return header{}, fmt.Errorf("magic string is %q, want %q", start[:6], magic)
	}
	var length [4]byte
	switch {
	case start[7] != 0, start[6] < 1, start[6] > 3:
		r.offset = 6
		return header{}, fmt.Errorf("version is %d.%d, want 1.0, 2.0 or 3.0", start[6], start[7])
	case start[6] == 1:
		if err := r.read(length[:2], "the header's length"); err != nil {
			return header{}, err
		}
	default:
		if err := r.read(length[:], "the header's length"); err != nil {
			return header{}, err
		}
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxHeader {
		r.offset = 8
		return header{}, fmt.Errorf("header has %d bytes, the limit is %d", n, maxHeader)
	}
	text := make([]byte, n)
	begin := r.offset
	if err := r.read(text, "the header"); err != nil {
		return header{}, err
	}
	h, at, err := parseHeader(text)
	if err != nil {
		r.offset = begin + int64(at)
	}
	return h, err
}

// chunks reads size bytes piece by piece, so that memory grows only with what was read.
func (r *reader) chunks(size int) (io.Reader, error) {
	var parts []io.Reader
	for left := size; left > 0; {
		p := make([]byte, min(chunk, left))
		if err := r.read(p, "the array"); err != nil {
			return nil, err
		}
		parts = append(parts, bytes.NewReader(p))
		left -= len(p)
	}
	return io.MultiReader(parts...), nil
}

// fortran reads elements whose first index runs fastest.
func (r *reader) fortran(a *Array) error {
	size := a.DType.Size()
	steps := make([]int, len(a.Shape)) // bytes between neighbours of a dimension
	for i, s := len(steps)-1, size; i >= 0; i-- {
		steps[i], s = s, s*a.Shape[i]
	}
	index := make([]int, len(a.Shape))
	buf := make([]byte, min(len(a.Data), chunk))
	for left, to := len(a.Data), 0; left > 0; left -= len(buf) {
		buf = buf[:min(len(buf), left)]
		if err := r.read(buf, "the array"); err != nil {
			return err
		}
		for e := 0; e < len(buf); e += size {
			copy(a.Data[to:to+size], buf[e:e+size])
			for i := range index { // the next element, in the file's order
				index[i]++
				to += steps[i]
				if index[i] < a.Shape[i] {
					break
				}
				to -= index[i] * steps[i]
				index[i] = 0
			}
		}
	}
	return nil
}
