package record

import (
	"fmt"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// memories holds what an encoder knows of the memories of its graph in addition to their
// declarations.
type memories struct {
	graph  *ir.Graph
	names  map[string]ir.MemID
	places []rootMemory // by memory
	serial uint32       // the number of the last allocation
	arena
}

// rootMemory is what is known of a root memory, one that is not an alias.
type rootMemory struct {
	buffer backend.Buffer
	bytes  int64  // the size of buffer
	host   []byte // the caller's memory, if [Encoder.Map] declared it
	pool   *Pool
	serial uint32 // the allocation that has this pooled memory now, or 0
	used   uint64 // the number of the last command buffer that binds it
	before uint64 // the number of the one before that
	bound  uint32 // the number of the last recording that binds it
}

// addMemory adds a memory, which must be valid.
func (ms *memories) addMemory(m ir.Memory) ir.MemID {
	id := ir.MemID(len(ms.graph.Memories))
	ms.graph.Memories = append(ms.graph.Memories, m)
	ms.places = append(ms.places, rootMemory{})
	ms.names[m.Name] = id
	return id
}

// unused returns a name that no memory has.
func (ms *memories) unused(name string) string {
	for base, n := name, 2; ; n++ {
		if _, ok := ms.names[name]; !ok {
			return name
		}
		name = fmt.Sprintf("%s.%d", base, n)
	}
}

// generation returns the number of a new allocation, by which its tensors are told apart
// from earlier ones that had the same bytes.
func (ms *memories) generation() uint32 {
	ms.serial++
	return ms.serial
}

// alive reports whether t may be used: its memory was not given back since t was made.
func (ms *memories) alive(t *Tensor) bool {
	if t.serial == 0 {
		return true // declared memory
	}
	if t.stack > 0 {
		return ms.arena.alive(t)
	}
	return int(t.Mem) < len(ms.places) && ms.places[t.Mem].serial == t.serial
}

// sharesPage returns a mapped memory that has bytes in the same host page as data, or
// NoMem. Two read-only memories may share a page.
func (ms *memories) sharesPage(kind ir.MemKind, data []byte) ir.MemID {
	pages := func(b []byte) (lo, end uintptr) {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		return at / hostPage, (at + uintptr(len(b)) + hostPage - 1) / hostPage
	}
	lo, end := pages(data)
	for i := range ms.places {
		host := ms.places[i].host
		if len(host) == 0 || len(data) == 0 || kind.ReadOnly() && ms.graph.Memories[i].Kind.ReadOnly() {
			continue
		}
		if l, h := pages(host); l < end && lo < h {
			return ir.MemID(i)
		}
	}
	return ir.NoMem
}
