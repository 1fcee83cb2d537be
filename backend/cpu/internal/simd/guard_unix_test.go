//go:build linux || darwin

package simd

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A guard hands out slices which lie against an inaccessible page, so that the
// first byte read or written past that end is a fault.
type guard struct {
	atEnd bool // the slices end at the page; else they begin after it
	maps  [][]byte
}

// guards are the placements that a test tries.
var guards = []struct {
	name  string
	atEnd bool
}{{"end", true}, {"begin", false}}

func (g *guard) bytes(n int) []byte {
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	g.maps = append(g.maps, m)
	inner := m[page : page+size]
	if size > 0 {
		if err := unix.Mprotect(inner, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			panic(err)
		}
	}
	if g.atEnd {
		return inner[size-n : size : size]
	}
	return inner[:n:n]
}

func (g *guard) floats(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(g.bytes(4*n)))), n)
}

func (g *guard) halves(n int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(g.bytes(2*n)))), n)
}

func (g *guard) release() {
	for _, m := range g.maps {
		if err := unix.Munmap(m); err != nil {
			panic(err)
		}
	}
	g.maps = nil
}
