//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"bytes"
	"fmt"
	"sort"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// The bytes that fill unwritten memory, of the GPU and of the host, and the canaries beside allocations.
const (
	deviceGarbage = 0xff
	hostGarbage   = 0x5b
	canary        = 0xc9
)

// Sizes in bytes of the address ranges that are reserved for the GPU's memory and for pinned memory.
const (
	deviceRange = 1 << 40
	pinnedRange = 1 << 38
)

const page = 1 << 12

// reserve maps n bytes of address space that cannot be accessed.
func reserve(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of addresses: %w", n, err)
	}
	return b, nil
}

// deviceMemory is the GPU's memory: its range of addresses, and what is allocated there.
type deviceMemory struct {
	reserved []byte
	next     uint64
	list     []*allocation // by address
	freed    []*allocation // while pending work used them
	taken    int64
}

// allocation is a piece of device memory that cuMemAlloc has returned.
type allocation struct {
	at    uint64
	size  int64
	room  backend.Buffer // the buffer with its contents
	data  []byte         // the whole buffer
	front int64          // bytes of canary before it
	users int            // pending ops
}

// bytes are the contents of the allocation.
func (m *allocation) bytes() []byte { return m.data[m.front : m.front+m.size] }

func (d *deviceMemory) open() (err error) {
	if d.reserved, err = reserve(deviceRange); err == nil {
		d.next = uint64(uintptr(unsafe.Pointer(&d.reserved[0]))) + 1<<20
	}
	return err
}

func (d *deviceMemory) close() {
	for _, m := range d.freed {
		_ = m.room.Close()
	}
	_ = unix.Munmap(d.reserved)
}

// alloc allocates device memory; nil if too little is free.
func (d *deviceMemory) alloc(g *GPU, size int64) (*allocation, error) {
	if size > g.options.Memory-d.taken {
		return nil, nil
	}
	whole := (size + page - 1) &^ (page - 1)
	// It lies as near to the end of its buffer as the 256 bytes' alignment of cuMemAlloc allows.
	front := (whole - size) &^ 255
	b, err := g.soft.Alloc(backend.BufferSpec{Size: whole, Storage: ir.Shared})
	if err != nil {
		return nil, err
	}
	m := &allocation{at: d.next + uint64(front), size: size, room: b, data: b.Bytes(), front: front}
	d.next += uint64(whole) + page
	fill(m.data[:front], canary)
	fill(m.bytes(), deviceGarbage)
	fill(m.data[front+size:], canary)
	d.list = append(d.list, m)
	d.taken += size
	return m, nil
}

func fill(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// damaged reports whether somebody has written to a canary.
func damaged(b []byte) bool { return len(bytes.Trim(b, string([]byte{canary}))) > 0 }

// find returns the allocation in which an address lies, or at whose end: nil if there is none.
func (d *deviceMemory) find(at uint64) *allocation {
	i := sort.Search(len(d.list), func(i int) bool { return d.list[i].at > at })
	if i == 0 {
		return nil
	}
	if m := d.list[i-1]; at <= m.at+uint64(m.size) {
		return m
	}
	return nil
}

// span returns the allocation with the n bytes from an address on, nil if there is none.
func (d *deviceMemory) span(at uint64, n int64) *allocation {
	if m := d.find(at); m != nil && n >= 0 && at+uint64(n) <= m.at+uint64(m.size) {
		return m
	}
	return nil
}

// remove frees an allocation. It notes damaged canaries, and pending work that uses it.
func (d *deviceMemory) remove(g *GPU, m *allocation) {
	i := sort.Search(len(d.list), func(i int) bool { return d.list[i].at >= m.at })
	d.list = append(d.list[:i], d.list[i+1:]...)
	d.taken -= m.size
	if damaged(m.data[:m.front]) || damaged(m.data[m.front+m.size:]) {
		g.note("memory of %d bytes at %#x was written before its beginning or behind its end", m.size, m.at)
	}
	if m.users > 0 {
		if g.sticky == 0 {
			g.note("memory of %d bytes at %#x is freed, and %d operations that have not ended use it", m.size, m.at, m.users)
		}
		d.freed = append(d.freed, m) // pending work still uses the buffer
		return
	}
	_ = m.room.Close()
}

// pinnedMemory is the pinned memory of the host (cuMemAllocHost).
type pinnedMemory struct {
	reserved []byte
	next     int
	list     []*pinned // by address
}

type pinned struct {
	first, end int // in the range
	data       []byte
	users      int
}

func (p *pinnedMemory) open() (err error) {
	p.reserved, err = reserve(pinnedRange)
	return err
}

func (p *pinnedMemory) close() { _ = unix.Munmap(p.reserved) }

func (p *pinnedMemory) alloc(size int) (*pinned, error) {
	whole := (size + page - 1) &^ (page - 1)
	m := &pinned{first: p.next, end: p.next + whole, data: p.reserved[p.next : p.next+size : p.next+size]}
	if err := unix.Mprotect(p.reserved[m.first:m.end], unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, err
	}
	p.next = m.end + page
	if size <= 1<<16 { // larger ones stay as they are, so that only pages in use take memory
		fill(p.reserved[m.first:m.first+size], hostGarbage)
	}
	fill(p.reserved[m.first+size:m.end], canary)
	p.list = append(p.list, m)
	return m, nil
}

// find returns the pinned block in which an address of the host lies, and the offset there; nil if there is none.
func (p *pinnedMemory) find(at uintptr) (m *pinned, off int) {
	begin := uintptr(unsafe.Pointer(&p.reserved[0]))
	if at < begin || at >= begin+pinnedRange {
		return nil, 0
	}
	n := int(at - begin)
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].first > n })
	if i == 0 || n >= p.list[i-1].end {
		return nil, n
	}
	return p.list[i-1], n - p.list[i-1].first
}

// ours reports whether an address of the host lies in the range of pinned memory, freed or not.
func (p *pinnedMemory) ours(at uintptr) bool {
	begin := uintptr(unsafe.Pointer(&p.reserved[0]))
	return at >= begin && at < begin+pinnedRange
}

// remove frees a block, and makes its addresses inaccessible.
func (p *pinnedMemory) remove(m *pinned) {
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].first >= m.first })
	p.list = append(p.list[:i], p.list[i+1:]...)
	b := p.reserved[m.first:m.end]
	_ = unix.Madvise(b, unix.MADV_DONTNEED)
	_ = unix.Mprotect(b, unix.PROT_NONE)
}

func init() {
	register(inside, "cuMemAlloc_v2", 2, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || a[1] == 0 {
			return invalidValue
		}
		m, err := g.memory.alloc(g, int64(a[1]))
		if err != nil {
			g.say("%v", err)
		}
		if m == nil {
			return outOfMemory
		}
		return give(a[0], m.at)
	})
	register(destroys, "cuMemFree_v2", 1, func(g *GPU, a []uintptr) uint32 {
		m := g.memory.find(uint64(a[0]))
		if m == nil || m.at != uint64(a[0]) {
			g.note("cuMemFree: %#x is no memory that was given, or was freed before", a[0])
			return invalidValue
		}
		g.memory.remove(g, m)
		return success
	})
	register(inside, "cuMemAllocHost_v2", 2, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || a[1] == 0 {
			return invalidValue
		}
		m, err := g.pinned.alloc(int(a[1]))
		if err != nil {
			g.say("%v", err)
			return outOfMemory
		}
		return give(a[0], uintptr(unsafe.Pointer(&m.data[0])))
	})
	register(destroys, "cuMemFreeHost", 1, func(g *GPU, a []uintptr) uint32 {
		m, off := g.pinned.find(a[0])
		if m == nil || off != 0 {
			g.note("cuMemFreeHost: %#x is no memory that was given, or was freed before", a[0])
			return invalidValue
		}
		if m.users > 0 && g.sticky == 0 {
			g.note("pinned memory of %d bytes is freed, and %d copies that have not ended use it", len(m.data), m.users)
			g.drain()
		}
		if damaged(g.pinned.reserved[m.first+len(m.data) : m.end]) {
			g.note("pinned memory of %d bytes was written behind its end", len(m.data))
		}
		g.pinned.remove(m)
		return success
	})
}
