package mmap

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"unsafe"
)

// FaultError says that bytes of a mapped file can no longer be read.
type FaultError struct {
	Path   string // as given to [Open]
	Offset int64  // the offset of the byte that was read
	Had    int64  // the length of the file when it was mapped
}

func (e *FaultError) Error() string {
	what := "its disk, or the network to it, fails"
	if st, err := os.Stat(e.Path); err == nil && st.Size() < e.Had {
		what = fmt.Sprintf("it has %d bytes now, it had %d: it was cut while it was in use", st.Size(), e.Had)
	}
	return fmt.Sprintf("%s: byte %d cannot be read any more: %s (replace a file by renaming another one over it, which disturbs nobody)", e.Path, e.Offset, what)
}

// open holds the live mappings, to find the one that an address lies in, and the last
// ones that were closed: before a panic is recovered, deferred calls may close the very
// file that faulted.
var open struct {
	sync.Mutex
	maps   []*Map
	closed [64]closedMap // the newest one is at next-1
	next   int
}

type closedMap struct {
	path string
	data span
}

// span says where a mapping lies or lay.
type span struct{ first, size uintptr }

func (m *Map) span() span {
	return span{uintptr(unsafe.Pointer(unsafe.SliceData(m.data))), uintptr(len(m.data))}
}

func (s span) holds(addr uintptr) bool { return addr >= s.first && addr-s.first < s.size }

func (m *Map) register() {
	open.Lock()
	open.maps = append(open.maps, m)
	open.Unlock()
}

func (m *Map) forget() {
	open.Lock()
	if len(m.data) > 0 {
		open.closed[open.next] = closedMap{m.path, m.span()}
		open.next = (open.next + 1) % len(open.closed)
	}
	open.maps = slices.DeleteFunc(open.maps, func(o *Map) bool { return o == m })
	open.Unlock()
}

// at returns the error for reading addr; nil if addr lies in no mapping.
func at(addr uintptr) *FaultError {
	open.Lock()
	defer open.Unlock()
	fault := func(path string, s span) *FaultError {
		return &FaultError{Path: path, Offset: int64(addr - s.first), Had: int64(s.size)}
	}
	for _, m := range open.maps {
		if s := m.span(); s.holds(addr) {
			return fault(m.path, s)
		}
	}
	for i := range open.closed {
		m := open.closed[(open.next+len(open.closed)-1-i)%len(open.closed)]
		if !m.data.holds(addr) {
			continue
		}
		// If the file was not shortened, the mapping was read after Close. That is a
		// bug of the program, not an error to report.
		if st, err := os.Stat(m.path); err == nil && st.Size() < int64(m.data.size) {
			return fault(m.path, m.data)
		}
	}
	return nil
}

// InUse reports whether this process has mapped the file at path, under whatever name.
func InUse(path string) bool {
	st, err := os.Stat(path)
	if err != nil {
		return false
	}
	open.Lock()
	defer open.Unlock()
	return slices.ContainsFunc(open.maps, func(m *Map) bool { return os.SameFile(st, m.info) })
}

// Guard runs f on this goroutine. If f reads bytes of a mapping that no longer exist,
// Guard returns a [*FaultError] instead of letting the process die. It does nothing for
// goroutines that f starts; each of them needs its own Guard.
func Guard(f func() error) (err error) {
	defer Catch(&err)()
	return f()
}

// Catch is Guard for a function with a named error, which it is deferred in:
//
//	defer mmap.Catch(&err)()
func Catch(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			e := Fault(r)
			if e == nil {
				panic(r)
			}
			*err = e
		}
	}
}

// Fault returns the error for a recovered panic if reading a mapping caused it,
// otherwise nil. The goroutine must have called [debug.SetPanicOnFault].
func Fault(recovered any) error {
	if f, ok := recovered.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		if e := at(f.Addr()); e != nil {
			return e
		}
	}
	return nil
}

// Explain replaces err by a better error if a system call failed because it could not
// read data, which are bytes of a mapping. Such a call returns EFAULT, and nothing
// panics.
func Explain(err error, data []byte) error {
	if !errors.Is(err, syscall.EFAULT) || len(data) == 0 {
		return err
	}
	if e := at(uintptr(unsafe.Pointer(unsafe.SliceData(data)))); e != nil {
		return e
	}
	return err
}

// Containing returns the whole mapping that data lies in, or nil if it lies in none.
func Containing(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	open.Lock()
	defer open.Unlock()
	for _, m := range open.maps {
		if s := m.span(); s.holds(first) && s.holds(first+uintptr(len(data))-1) {
			return m.data
		}
	}
	return nil
}

// Reach returns how many bytes from its first on a mapping, or memory that is none, may be
// read: the system maps whole pages, whose last one is zeros behind the file.
func Reach(data []byte) int64 {
	n := int64(len(data))
	if whole := Containing(data); pages && len(whole) == len(data) && unsafe.SliceData(whole) == unsafe.SliceData(data) {
		page := int64(os.Getpagesize())
		n = (n + page - 1) / page * page
	}
	return n
}
