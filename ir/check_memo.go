package ir

import (
	"math/bits"

	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/invariants"
)

// memo remembers what a check accepted, so that a view, region or extent of params that a graph
// repeats a million times is decided once. Each table has one entry for each hash, and a new entry
// replaces the old one, so that a hostile graph cannot make it grow.
type memo struct {
	views   []acceptedView
	regions []acceptedRegion
	extents []acceptedExtent
	empty   []acceptedPromise
	size    int  // of each table, which is made when it is first needed
	shift   uint // a hash shifted right by this is an index; the high bits depend on everything that was hashed
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
	as DType // type of a scalar; Invalid for a grid
	ok bool
}

// newMemo returns a memo for a graph with the given number of commands.
func newMemo(commands int) *memo {
	log := bits.Len(uint(4 * min(commands, 500)))
	return &memo{size: 1 << log, shift: uint(64 - log)}
}

// view returns the entry for v, and whether v was accepted before.
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

// idSet is the set of IDs that a graph has used. Dense IDs are kept as bits.
type idSet struct {
	bits   []uint64
	sparse map[ID]bool
}

func newIDSet(commands int) *idSet { return &idSet{bits: make([]uint64, commands/4+16)} }

// add adds id and reports whether it was not in the set.
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

// acceptedPromise is a must-write of Region that was found to be empty where the grid's numerator
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
