package mlxg

import (
	"bytes"
	"hash/maphash"
	"runtime"
	"sync"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Most of section META are the nodes of graphs. To read a million commands fast, several
// goroutines each read a piece of the list, and bindings, effects and provenance that many
// commands have in common are decoded only once.

// nodesPerPiece is the min number of nodes for which starting a goroutine pays.
const nodesPerPiece = 1 << 14

// nodes reads the n nodes of d's graph, which begin at the current position.
func (d *decoder) nodes(n int) {
	pieces := min(runtime.GOMAXPROCS(0), n/nodesPerPiece)
	starts, end := []int{d.pos}, 0
	if pieces > 1 {
		starts, end = d.cut(n, pieces)
	}
	if len(starts) < 2 {
		// There are few nodes, or the section is damaged and this finds the first error.
		r := newNodeReader(d)
		for i := 0; i < n && d.err == nil; i++ {
			d.g.Nodes = extend(d.g.Nodes, n)
			d.g.Source.Nodes = extend(d.g.Source.Nodes, n)
			r.at(i)
		}
		return
	}
	// INVARIANT: cut has found n values of at least one byte each, so this allocation is in
	// proportion to the file.
	d.g.Nodes, d.g.Source.Nodes = make([]ir.Node, n), make([]ir.Pos, n)
	each := n / len(starts)
	stopped := make([]error, len(starts))
	readers := make([]*nodeReader, len(starts))
	var wg sync.WaitGroup
	for p, start := range starts {
		c := *d.cursor
		c.pos = start
		piece := *d
		piece.cursor, piece.terms = &c, nil
		readers[p] = newNodeReader(&piece)
		until := (p + 1) * each
		if p == len(starts)-1 {
			until = n
		}
		wg.Go(func() {
			defer interrupt.Catch(&stopped[p])
			defer mmap.Catch(&stopped[p])() // the mapped file may be cut meanwhile
			for i := p * each; i < until && c.err == nil; i++ {
				readers[p].at(i)
			}
		})
	}
	wg.Wait()
	for p := range readers { // of several errors, the first one in the file counts
		if stopped[p] != nil {
			interrupt.Poll(d.ctx)
			if d.err == nil {
				d.err = stopped[p]
			}
		}
		if err := readers[p].err; err != nil && d.err == nil {
			d.err = err
		}
	}
	d.pos = end
}

// cut returns where pieces of equally many nodes begin, and where the last one ends. If the
// section does not hold n values, it returns no pieces.
func (d *decoder) cut(n, pieces int) (starts []int, end int) {
	pos, each := d.pos, n/pieces
	for i := range n {
		if i%each == 0 && len(starts) < pieces {
			starts = append(starts, pos)
		}
		if i%1024 == 0 {
			interrupt.Poll(d.ctx)
		}
		next, ok := d.skip(pos)
		if !ok {
			return nil, 0
		}
		pos = next
	}
	return starts, pos
}

// nodeReader reads nodes one after another.
type nodeReader struct {
	*decoder
	polls      interrupt.Every
	seed       maphash.Seed
	dispatches bump.Allocator[ir.Dispatch]
	bindings   shared[[]ir.Binding]
	effects    shared[*ir.Effects]
	froms      shared[[]ir.ID]
}

func newNodeReader(d *decoder) *nodeReader { return &nodeReader{decoder: d, seed: maphash.MakeSeed()} }

// at reads node i, which begins at the current position.
func (r *nodeReader) at(i int) {
	r.polls.Poll(r.ctx, 64)
	r.enter(0, "node", i)
	r.g.Source.Nodes[i].Offset = r.base + int64(r.pos)
	r.g.Nodes[i] = r.node()
	r.leave(0)
}

// shared remembers decoded values by their bytes in the section, because equal bytes mean
// the same everywhere in a graph. If few values are repeated, it gives up, because the
// lookups would cost more than they save.
type shared[T any] struct {
	of    map[uint64]reading[T] // by a hash of the bytes
	reads int
	hits  int
}

// reading is a value and the bytes that it was decoded from.
type reading[T any] struct {
	bytes []byte
	value T
}

const (
	maxShared  = 1 << 16 // values that are remembered, and reads before it may give up
	worthwhile = 8       // it gives up unless one in so many reads is a repetition
)

// read returns the next value: one with equal bytes that is remembered, or else what the
// function read decodes.
func (s *shared[T]) read(r *nodeReader, read func() T) T {
	end, ok := 0, false
	if s.reads < maxShared || s.hits*worthwhile >= s.reads {
		end, ok = r.skip(r.pos)
	}
	if !ok || r.err != nil {
		return read()
	}
	s.reads++
	raw := r.data[r.pos:end]
	h := maphash.Bytes(r.seed, raw)
	if x, ok := s.of[h]; ok && bytes.Equal(x.bytes, raw) {
		s.hits++
		r.pos = end
		return x.value
	}
	v := read()
	if r.err == nil && len(s.of) < maxShared {
		if s.of == nil {
			s.of = map[uint64]reading[T]{}
		}
		s.of[h] = reading[T]{raw, v}
	}
	return v
}
