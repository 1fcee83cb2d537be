package metallib

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/mlxc/mlxc/internal/air"
)

// Library is a compiled library. It may be used by several goroutines at once.
type Library struct {
	File     string   // as given, for errors
	Version  [2]int   // of the container
	System   [2]int   // version of the system that it was built for
	Kernels  []Kernel // in the order of the file
	Skipped  int      // functions that are no kernels, such as vertex and fragment shaders
	data     []byte
	sections [4]section
	byName   map[string]int32
}

// Kernel is the entry of a kernel in the list of functions.
type Kernel struct {
	Name   string
	Size   int64 // bytes of bitcode
	Hash   [32]byte
	AIR    air.Version
	Metal  air.Version // of the language
	public int64       // offset of public metadata in its section
	offset int64       // of the bitcode in its section
	at     int64       // of the entry in the file
}

// section is a part of the file.
type section struct{ offset, size int64 }

func (s section) end() int64 { return s.offset + s.size }

// The sections, in the order of the header.
const (
	functionList = iota
	publicMetadata
	privateMetadata
	bitcodeSection
)

var sectionNames = [4]string{"the list of functions", "public metadata", "private metadata", "bitcode"}

const (
	magic      = "MTLB"
	headerSize = 88
	// maxName bounds the length of a name. Those of MLX have up to some 200 bytes.
	maxName = 4096
	// minEntry is the minimum size of a function's entry in bytes: its length and ENDT.
	minEntry   = 8
	kernelType = 2
)

// Is reports whether data begins as a library does.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }

// Parse reads the list of functions of a library. The library refers to data, which must not change. file is a name
// for errors.
func Parse(file string, data []byte) (*Library, error) {
	l := &Library{File: file, data: data}
	if !Is(data) {
		return nil, l.errorf(0, "", "%s", strange(data))
	}
	if len(data) < headerSize {
		return nil, l.errorf(int64(len(data)), "", "the file ends in its header, which has %d bytes", headerSize)
	}
	l.Version = [2]int{int(order.Uint16(data[6:])), int(order.Uint16(data[8:]))}
	if l.Version[0] != 2 {
		return nil, l.errorf(6, "", "a container of version %d.%d, version 2 is expected", l.Version[0], l.Version[1])
	}
	l.System = [2]int{int(order.Uint16(data[12:])), int(order.Uint16(data[14:]))}
	if size := order.Uint64(data[16:]); size != uint64(len(data)) {
		what := "it was cut"
		if size < uint64(len(data)) {
			what = "something was appended"
		}
		return nil, l.errorf(16, "", "the header says that the file has %d bytes, it has %d: %s", size, len(data), what)
	}
	for i := range l.sections {
		at := int64(24 + 16*i)
		off, n := order.Uint64(data[at:]), order.Uint64(data[at+8:])
		if off > uint64(len(data)) || n > uint64(len(data))-off || off < headerSize {
			return nil, l.errorf(at, "", "%s: %d bytes from offset %d do not lie behind the header in a file of %d bytes", sectionNames[i], n, off, len(data))
		}
		l.sections[i] = section{int64(off), int64(n)}
	}
	if err := l.list(); err != nil {
		return nil, err
	}
	return l, nil
}

// strange describes a file that is no Metal library.
func strange(data []byte) string {
	for _, k := range []struct{ magic, what string }{
		{"\x89MXG\r\n\x1a\n", "it is a graph (.mlxg)"},
		{"mlxt ", "it is a graph as text (.mlxt)"},
		{"GGUF", "it is a GGUF model"},
		{"PK\x03\x04", "it is a ZIP archive, such as a Python wheel: take the library out of it"},
		{"\x1f\x8b", "it is compressed (gzip)"},
		{"BC\xc0\xde", "it is LLVM bitcode without a container: xcrun metallib makes a library of it"},
		{"\xde\xc0\x17\x0b", "it is LLVM bitcode without a container (.air): xcrun metallib makes a library of it"},
		{"\xca\xfe\xba\xbe", "it is a fat binary: lipo takes one library out of it"},
	} {
		if bytes.HasPrefix(data, []byte(k.magic)) {
			return "is no Metal library: " + k.what
		}
	}
	if len(data) == 0 {
		return "is no Metal library: it is empty"
	}
	return fmt.Sprintf("is no Metal library: it does not begin with %q", magic)
}

// list reads the list of functions.
func (l *Library) list() error {
	s := l.sections[functionList]
	// The section's size does not include the number of functions at its beginning.
	end := s.end() + 4
	if end > int64(len(l.data)) {
		return l.errorf(s.offset, "", "the list of functions ends %d bytes behind the file", end-int64(len(l.data)))
	}
	count := int64(order.Uint32(l.data[s.offset:]))
	if count > s.size/minEntry {
		return l.errorf(s.offset, "", "%d functions are listed in %d bytes", count, s.size)
	}
	l.Kernels = make([]Kernel, 0, count)
	l.byName = make(map[string]int32, count)
	at := s.offset + 4
	for range count {
		if end-at < minEntry {
			return l.errorf(at, "", "the list of functions ends after %d of %d", len(l.Kernels)+l.Skipped, count)
		}
		n := int64(order.Uint32(l.data[at:]))
		if n < minEntry || n > end-at {
			return l.errorf(at, "", "a function's entry has %d bytes, %d are left", n, end-at)
		}
		k, kind, err := l.entry(at, n)
		if err != nil {
			return err
		}
		if _, twice := l.byName[k.Name]; twice {
			return l.errorf(at, k.Name, "another function has this name")
		}
		if kind == kernelType {
			l.byName[k.Name] = int32(len(l.Kernels))
			l.Kernels = append(l.Kernels, k)
		} else {
			l.byName[k.Name] = -1
			l.Skipped++
		}
		at += n
	}
	if at != end {
		return l.errorf(at, "", "%d bytes follow the last function of the list", end-at)
	}
	return nil
}

// entry reads the entry of a function, of n bytes.
func (l *Library) entry(at, n int64) (k Kernel, kind uint8, err error) {
	k.at = at
	r := records{lib: l, at: at + 4, end: at + n}
	seen := [len(tags)]bool{}
	for {
		tag, p, where, ok, err := r.next()
		if err != nil {
			return k, 0, err
		}
		if !ok {
			break
		}
		for i, t := range tags {
			if t.name != tag {
				continue
			}
			if seen[i] {
				return k, 0, l.errorf(where, k.Name, "a second record %q", tag)
			}
			if seen[i] = true; t.size > 0 && len(p) != t.size {
				return k, 0, l.errorf(where, k.Name, "record %q has %d bytes, %d are expected", tag, len(p), t.size)
			}
		}
		switch tag {
		case "NAME":
			if k.Name, err = l.name(p, where); err != nil {
				return k, 0, err
			}
			r.kernel = k.Name
		case "TYPE":
			kind = p[0]
		case "HASH":
			k.Hash = [32]byte(p)
		case "MDSZ":
			if k.Size = int64(order.Uint64(p)); k.Size < 0 {
				return k, 0, l.errorf(where, k.Name, "bitcode of %d bytes", uint64(k.Size))
			}
		case "OFFT":
			k.public, k.offset = int64(order.Uint64(p)), int64(order.Uint64(p[16:]))
		case "VERS":
			k.AIR = air.Version{Major: int(order.Uint16(p)), Minor: int(order.Uint16(p[2:]))}
			k.Metal = air.Version{Major: int(order.Uint16(p[4:])), Minor: int(order.Uint16(p[6:]))}
		}
	}
	if r.at != r.end {
		return k, 0, l.errorf(r.at, k.Name, "%d bytes follow the records of the function", r.end-r.at)
	}
	for i, t := range tags {
		if !seen[i] {
			return k, 0, l.errorf(at, k.Name, "the function has no record %q", t.name)
		}
	}
	if s := l.sections[bitcodeSection]; k.offset < 0 || k.offset > s.size || k.Size > s.size-k.offset {
		return k, 0, l.errorf(at, k.Name, "%d bytes of bitcode from %d lie outside the section of %d bytes", k.Size, uint64(k.offset), s.size)
	}
	if s := l.sections[publicMetadata]; k.public < 0 || k.public > s.size {
		return k, 0, l.errorf(at, k.Name, "public metadata at %d lies outside the section of %d bytes", uint64(k.public), s.size)
	}
	return k, kind, nil
}

// tags are the records that every function must have, with their sizes in bytes; 0: any size.
var tags = [...]struct {
	name string
	size int
}{{"NAME", 0}, {"TYPE", 1}, {"HASH", 32}, {"MDSZ", 8}, {"OFFT", 24}, {"VERS", 8}}

func (l *Library) name(p []byte, at int64) (string, error) {
	switch n := len(p) - 1; {
	case n < 0 || p[n] != 0:
		return "", l.errorf(at, "", "a name does not end in NUL")
	case n == 0 || n > maxName:
		return "", l.errorf(at, "", "a name has %d bytes, 1 to %d are expected", n, maxName)
	case !printable(string(p[:n])):
		return "", l.errorf(at, "", "the name %q is no text", p[:n])
	}
	return string(p[:len(p)-1]), nil
}

// printable reports whether s is text of one line, which a message may contain.
func printable(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Kernel returns the kernel called name.
func (l *Library) Kernel(name string) (*Kernel, error) {
	i, ok := l.byName[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s has no kernel %q", l.File, name)
	case i < 0:
		return nil, fmt.Errorf("%s: function %q is no kernel", l.File, name)
	}
	return &l.Kernels[i], nil
}
