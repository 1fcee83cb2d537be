package values

import (
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/ir"
)

// Space maps all scratch memory of a graph into one range of addresses: the root memories with their current
// contents, followed by bytes that may be added. Each byte belongs to a web or is free; a free byte has the
// level of the last command that touched it.
type Space struct {
	base  []int64 // address of each root; −1 if it is not scratch
	rooms []room
	bytes interval.Partition[block]
	heap  []hole // free blocks, lowest level first; some entries are out of date

	extra int64
	added [2]int   // by storage mode: the index of the room of added bytes, −1 if none
	used  [2]int64 // by storage mode: how many added bytes were handed out
}

// room is a range of addresses that belongs to one memory, or to the added bytes of a storage mode.
type room struct {
	mem     ir.MemID // NoMem for the added bytes
	lo, end int64
	align   int64
	storage ir.Storage
	held    bool // no web may move into it, see Hold
}

// block is the state of a run of bytes: the web that has them or, if free, their level.
type block struct {
	web   int32 // −1: free
	level int32 // of the last access, if free
}

// hole is an entry of the heap: a free block as it was when the entry was made.
type hole struct {
	lo, end int64
	level   int32
}

// Candidate is a possible place for a web: the address of its first byte, and the level of the last
// command that touched the bytes there.
type Candidate struct {
	At    int64
	Level int32
}

// stride is the min alignment of rooms in bytes; a memory that is aligned to more gets more. So an address is as
// aligned as the byte of memory that it stands for.
const stride = int64(1) << 20

// NewSpace lays out the scratch memory of g. Up to extra bytes may be added in all, over all storage modes that the
// scratch memory has, aligned as strictly as the memories of that mode. If kept is set, webs can move only into
// added bytes.
func NewSpace(g *ir.Graph, extra int64, kept bool) *Space {
	s := &Space{base: make([]int64, len(g.Memories)), extra: min(extra, 1<<50), added: [2]int{-1, -1}}
	at := int64(0)
	add := func(mem ir.MemID, size, align int64, storage ir.Storage) {
		step := max(stride, align)
		at = (at + step - 1) / step * step
		s.rooms = append(s.rooms, room{mem, at, at + size, align, storage, false})
		if mem != ir.NoMem {
			s.base[mem] = at
		}
		if size > 0 && (mem == ir.NoMem || !kept) {
			s.bytes.Set(at, at+size, block{-1, 0})
			if mem != ir.NoMem {
				s.push(hole{at, at + size, 0})
			}
		}
		at += size + 1
	}
	var strictest [2]int64
	for i := range g.Memories {
		m := &g.Memories[i]
		s.base[i] = -1
		if m.Kind == ir.Scratch && m.Alias == ir.NoMem {
			align := m.Align
			if align == 0 {
				align = DefaultAlign
			}
			strictest[m.Storage] = max(strictest[m.Storage], align)
			add(ir.MemID(i), m.Size, align, m.Storage)
		}
	}
	for c, align := range strictest {
		if align > 0 && s.extra > 0 {
			s.added[c] = len(s.rooms)
			add(ir.NoMem, s.extra, align, ir.Storage(c))
		}
	}
	return s
}

// Hold keeps webs from moving into a root memory for which [Set.Held] gives a reason. A kernel without
// declaration binds a view there of which it touches no byte. If a value that the kernel uses moved into the view, the
// kernel would seem to touch it through that view.
func (s *Space) Hold(m ir.MemID) { s.room(s.base[m]).held = true }

// Recorded returns where a web lies in the recording.
func (s *Space) Recorded(w *Web) int64 { return s.base[w.Mem] + w.Lo }

// room returns the room of an address.
func (s *Space) room(at int64) *room {
	lo, end := 0, len(s.rooms)
	for end-lo > 1 {
		if mid := (lo + end) / 2; s.rooms[mid].lo <= at {
			lo = mid
		} else {
			end = mid
		}
	}
	return &s.rooms[lo]
}

// Locate returns the byte of a root memory that an address stands for or, for added bytes, NoMem, the storage mode
// and the offset in the added memory.
func (s *Space) Locate(at int64) (root ir.MemID, storage ir.Storage, off int64) {
	r := s.room(at)
	return r.mem, r.storage, at - r.lo
}

// Used returns how many bytes were added of a storage mode.
func (s *Space) Used(storage ir.Storage) int64 { return s.used[storage] }

// first returns the first address from lo on at which w is aligned and has room for its overhang, and whether it ends
// by `end` there.
func (s *Space) first(w *Web, lo, end int64) (int64, bool) {
	r := s.room(lo)
	if r.held || r.align < w.Align && r.mem != w.Mem {
		return 0, false
	}
	lo = max(lo, r.lo+w.Before)
	rest := w.Lo % w.Align
	at := (lo-rest+w.Align-1)/w.Align*w.Align + rest
	return at, at+w.Size() <= min(end, r.end-w.After)
}

// Fits reports whether a web may lie at an address, by alignment and overhang.
func (s *Space) Fits(w *Web, at int64) bool {
	x, ok := s.first(w, at, at+w.Size())
	return ok && x == at
}

// Free returns the level of the bytes [at, at+size), if no web has them.
func (s *Space) Free(at, size int64) (level int32, ok bool) {
	ok = true
	s.bytes.Each(at, at+size, func(_, _ int64, b block) bool {
		ok = b.web < 0
		level = max(level, b.level)
		return ok
	})
	return level, ok
}

// maxLook bounds the free blocks that one search examines.
const maxLook = 64

// Find returns a place within one free block whose level is below `before`: in the block that leaves the fewest
// bytes over and, among equals, in the one with the highest level. Added bytes that were never used are not
// free blocks; see Fresh.
func (s *Space) Find(w *Web, before int32, storage ir.Storage) (Candidate, bool) {
	for {
		best, waste, stale := Candidate{}, int64(-1), -1
		looked := 0
		var visit func(k int) bool
		visit = func(k int) bool {
			if k >= len(s.heap) || s.heap[k].level >= before || looked >= maxLook {
				return true
			}
			h := s.heap[k]
			looked++
			if !s.current(h) {
				stale = k
				return false
			}
			if at, ok := s.first(w, h.lo, h.end); ok && s.room(h.lo).storage == storage {
				x := h.end - h.lo - w.Size()
				if waste < 0 || x < waste || x == waste && (h.level > best.Level || h.level == best.Level && at < best.At) {
					best, waste = Candidate{at, h.level}, x
				}
			}
			return visit(2*k+1) && visit(2*k+2)
		}
		if visit(0) {
			return best, waste >= 0
		}
		s.remove(stale)
	}
}

// maxWindow bounds the blocks of a space in which Window searches.
const maxWindow = 128

// Window returns, among places that may span several free blocks, the one with the lowest level. It finds none
// in a space of more than maxWindow blocks.
func (s *Space) Window(w *Web, storage ir.Storage) (best Candidate, found bool) {
	if s.bytes.Len() > maxWindow {
		return best, false
	}
	s.bytes.Each(-1, 1<<62, func(lo, end int64, b block) bool {
		if b.web >= 0 || s.room(lo).storage != storage {
			return true
		}
		at, ok := s.first(w, lo, 1<<62)
		if !ok || at >= end {
			return true
		}
		if level, ok := s.Free(at, w.Size()); ok && (!found || level < best.Level) {
			best, found = Candidate{at, level}, true
		}
		return true
	})
	return best, found
}

// Fresh returns a place in added bytes that were never used.
func (s *Space) Fresh(w *Web, storage ir.Storage) (at int64, ok bool) {
	k := s.added[storage]
	if k < 0 {
		return 0, false
	}
	r := &s.rooms[k]
	return s.first(w, r.lo+s.used[storage], r.end)
}

// IsAdded reports whether an address is of added bytes.
func (s *Space) IsAdded(at int64) bool { return s.room(at).mem == ir.NoMem }

// Take gives bytes to web number id.
func (s *Space) Take(at int64, w *Web, id int32) {
	end := at + w.Size()
	s.bytes.Set(at, end, block{id, 0})
	r := s.room(at)
	fresh := int64(1) << 62 // where the bytes begin that were never used
	if r.mem == ir.NoMem {
		c := r.storage
		s.used[c] = max(s.used[c], end+w.After-r.lo)
		fresh = r.lo + s.used[c]
		if k := s.added[1-c]; k >= 0 { // both storage modes share the budget
			s.rooms[k].end = s.rooms[k].lo + s.extra - s.used[c]
		}
	}
	// What is left of the blocks on both sides is entered again with its new bounds.
	s.bytes.Each(at-1, end+1, func(lo, hi int64, b block) bool {
		if b.web < 0 && (hi <= at || lo >= end) && hi <= fresh {
			s.push(hole{lo, hi, b.level})
		}
		return true
	})
}

// Give frees bytes, whose last access had the given level.
func (s *Space) Give(at, size int64, level int32) {
	lo, end := at, at+size
	// Adjacent free blocks of the same level become one.
	s.bytes.Each(at-1, at+size+1, func(a, z int64, b block) bool {
		if b.web < 0 && b.level == level {
			lo, end = min(lo, a), max(end, z)
		}
		return true
	})
	s.bytes.Set(lo, end, block{-1, level})
	s.push(hole{lo, end, level})
}

// current reports whether an entry of the heap still describes a free block.
func (s *Space) current(h hole) (ok bool) {
	s.bytes.Each(h.lo, h.lo+1, func(lo, end int64, b block) bool {
		ok = lo == h.lo && end == h.end && b.web < 0 && b.level == h.level
		return false
	})
	return ok
}

func (s *Space) push(h hole) {
	s.heap = append(s.heap, h)
	s.up(len(s.heap) - 1)
}

func (s *Space) less(i, j int) bool {
	a, b := s.heap[i], s.heap[j]
	return a.level < b.level || a.level == b.level && a.lo < b.lo
}

func (s *Space) up(i int) {
	for i > 0 && s.less(i, (i-1)/2) {
		s.heap[i], s.heap[(i-1)/2] = s.heap[(i-1)/2], s.heap[i]
		i = (i - 1) / 2
	}
}

func (s *Space) remove(i int) {
	n := len(s.heap) - 1
	s.heap[i] = s.heap[n]
	s.heap = s.heap[:n]
	if i == n {
		return
	}
	s.up(i)
	for {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && s.less(c+1, c) {
			c++
		}
		if !s.less(c, i) {
			return
		}
		s.heap[i], s.heap[c] = s.heap[c], s.heap[i]
		i = c
	}
}
