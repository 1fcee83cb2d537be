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

// The nodes of a graph are most of its file: a recording of a million commands is
// read in pieces at once, and what its commands repeat, layer after layer and step
// after step, is read once.

// nodesPerPiece is how many nodes one reader reads at least.
const nodesPerPiece = 1 << 14

// nodes reads the n nodes of d's graph, which are next.
func (d *decoder) nodes(n int) {
	pieces := min(runtime.GOMAXPROCS(0), n/nodesPerPiece)
	starts, end := []int{d.pos}, 0
	if pieces > 1 {
		starts, end = d.cut(n, pieces)
	}
	if len(starts) < 2 {
		// Few of them; or they are no values, and reading one after another says why.
		r := newNodeReader(d)
		for i := 0; i < n && d.err == nil; i++ {
			d.g.Nodes = extend(d.g.Nodes, n)
			d.g.Source.Nodes = extend(d.g.Source.Nodes, n)
			r.at(i)
		}
		return
	}
	// INVARIANT: each of the n values has a byte at least, so this is in proportion to
	// the file.
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
			defer mmap.Catch(&stopped[p])() // the section lies in a mapped file
			for i := p * each; i < until && c.err == nil; i++ {
				readers[p].at(i)
			}
		})
	}
	wg.Wait()
	for p := range readers { // the first error of the file is the error
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

// cut returns where pieces of equally many nodes begin, and where the last one
// ends; nothing if the section does not hold n values.
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

// at reads node i, which is next.
func (r *nodeReader) at(i int) {
	r.polls.Poll(r.ctx, 64)
	r.enter(0, "node", i)
	r.g.Source.Nodes[i].Offset = r.base + int64(r.pos)
	r.g.Nodes[i] = r.node()
	r.leave(0)
}

// shared keeps what was read, by its bytes in the section: equal bytes mean the same everywhere
// in a graph. Where little is repeated it gives up, as looking would cost more than it saves.
type shared[T any] struct {
	of    map[uint64]reading[T]
	reads int
	hits  int
}

type reading[T any] struct {
	bytes []byte
	value T
}

const (
	maxShared  = 1 << 16
	worthwhile = 8 // of so many reads at least one is a repetition
)

// read returns the next value, of the last equal one or as read has it.
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
