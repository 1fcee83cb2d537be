package ir

import (
	"math/bits"

	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/invariants"
)

// memo remembers what a check accepted, so that the views, regions and extents
// of params that graphs repeat a million times are decided once. A table has one
// place for each hash, and a new entry replaces the old one: so a hostile graph cannot
// make it grow.
type memo struct {
	views   []acceptedView
	regions []acceptedRegion
	extents []acceptedExtent
	empty   []acceptedPromise
	size    int  // of each table, made when it is needed
	shift   uint // a hash shifted right by this is an index: its high bits depend on all that was hashed
}

type acceptedView struct {
	View
	ok bool
}

type acceptedRegion struct {
	Region
	ok bool
}

type acceptedExtent struct {
	Extent
	as DType // of a scalar; Invalid for a grid
	ok bool
}

// newMemo returns a memo for a graph of so many commands.
func newMemo(commands int) *memo {
	log := bits.Len(uint(4 * min(commands, 500)))
	return &memo{size: 1 << log, shift: uint(64 - log)}
}

// view returns the place of v, and whether v was accepted before.
func (m *memo) view(v View) (place *acceptedView, accepted bool) {
	if m.views == nil {
		m.views = make([]acceptedView, m.size)
	}
	h := v.Len.Hash(v.Off.Hash(uint64(v.Mem)))
	place = &m.views[h>>m.shift]
	return place, invariants.Caches && place.ok && place.Equal(v)
}

func (m *memo) region(r Region) (place *acceptedRegion, accepted bool) {
	if m.regions == nil {
		m.regions = make([]acceptedRegion, m.size)
	}
	h := r.Run.Hash(r.Off.Hash(uint64(r.Mem)))
	for i := range r.Dims {
		h = r.Dims[i].Count.Hash(mix.Word(h, uint64(r.Dims[i].Stride)))
	}
	place = &m.regions[h>>m.shift]
	return place, invariants.Caches && place.ok && place.Equal(r)
}

func (m *memo) extent(e Extent, as DType) (place *acceptedExtent, accepted bool) {
	if m.extents == nil {
		m.extents = make([]acceptedExtent, m.size)
	}
	h := e.Num.Hash(mix.Word(uint64(as), uint64(e.Div)))
	place = &m.extents[h>>m.shift]
	return place, invariants.Caches && place.ok && place.as == as && place.Equal(e)
}

// idSet holds the ids that a graph has used: as bits where they are dense.
type idSet struct {
	bits   []uint64
	sparse map[ID]bool
}

func newIDSet(commands int) *idSet { return &idSet{bits: make([]uint64, commands/4+16)} }

// add reports whether id is new.
func (s *idSet) add(id ID) bool {
	if i := int(id / 64); i < len(s.bits) {
		b := uint64(1) << (id % 64)
		fresh := s.bits[i]&b == 0
		s.bits[i] |= b
		return fresh
	}
	if s.sparse == nil {
		s.sparse = map[ID]bool{}
	}
	if s.sparse[id] {
		return false
	}
	s.sparse[id] = true
	return true
}

// acceptedPromise is a must-write of Region that is empty where a grid's numerator
// is 0.
type acceptedPromise struct {
	grid Affine
	Region
	ok bool
}

func (m *memo) promise(grid Affine, r *Region) (place *acceptedPromise, accepted bool) {
	if m.empty == nil {
		m.empty = make([]acceptedPromise, m.size)
	}
	h := r.Run.Hash(r.Off.Hash(grid.Hash(uint64(r.Mem))))
	for i := range r.Dims {
		h = r.Dims[i].Count.Hash(mix.Word(h, uint64(r.Dims[i].Stride)))
	}
	place = &m.empty[h>>m.shift]
	return place, invariants.Caches && place.ok && place.grid.Equal(grid) && place.Region.Equal(*r)
}
