package hazard

import (
	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// liveness says which commands, and which writes, may reach an output or state.
type liveness struct {
	command []bool // by command: its results may
	seen    []bool // by access of the table: a write of which some byte may
}

// liveBytes says, at one position of the list, which bytes may still be read by a
// command whose results reach an output or state, or are themselves such a result when
// the list ends.
type liveBytes struct {
	t     *Table
	roots []liveRoot
	era   int32 // counts commands of unknown effects, which may read every byte
	of    *replay
}

// replay is one assignment of the params. Liveness of a replay is proved: a byte that
// counts as live is. Without a replay it is possible: bytes that do not count as live
// are live for no values of the params.
type replay struct {
	params []uint32
	walk   int // how many more runs of strided regions may be looked at
}

// walkRuns bounds the runs of strided regions that the liveness of one replay looks at.
const walkRuns = 1 << 18

// run calls yield with the runs of a. complete is false if they are too many, and then
// nothing is yielded.
func (p *replay) run(t *Table, a *bytestate.Access, yield func(lo, end int64) bool) (complete bool) {
	if a.Region == 0 {
		yield(a.Lo, a.End)
		return true
	}
	r := &t.facts.At(a.Region).Region
	n := int64(1)
	for i := range r.Dims {
		if n *= max(0, r.Dims[i].Count.Eval(p.params)); n > min(maxWalk, int64(p.walk)) {
			return false
		}
	}
	p.walk -= int(n)
	r.Runs(p.params, yield)
	return true
}

type liveRoot struct {
	bytes interval.Partition[bool]
	era   int32 // the era in which bytes was last emptied
	rest  bool  // whether bytes that are in no interval are live
}

func (l *liveBytes) at(root int32) *liveRoot {
	r := &l.roots[root]
	if r.era != l.era {
		r.bytes.Reset()
		r.era, r.rest = l.era, true
	}
	return r
}

// meets reports whether some byte of [lo, end) is live.
func (l *liveBytes) meets(root int32, lo, end int64) bool {
	r := l.at(root)
	if a, z, live, ok := r.bytes.At(lo); ok && a <= lo && end <= z {
		return live
	}
	found, at := false, lo
	r.bytes.Each(lo, end, func(a, z int64, live bool) bool {
		found = live || r.rest && at < a
		at = z
		return !found
	})
	return found || r.rest && at < end
}

// touches reports whether some byte of a is live. If a has many runs, bytes between
// them count too.
func (l *liveBytes) touches(a *bytestate.Access) (live bool) {
	l.pieces(a, func(lo, end int64) bool {
		live = lo < end && l.meets(a.Root, lo, end)
		return !live
	})
	return live
}

// need marks the bytes of a as live.
func (l *liveBytes) need(a *bytestate.Access) {
	r := l.at(a.Root)
	l.pieces(a, func(lo, end int64) bool {
		if lo < end {
			r.bytes.Set(lo, end, true)
		}
		return true
	})
}

// pieces is [Table.pieces] or, for a replay, the runs of a or nothing.
func (l *liveBytes) pieces(a *bytestate.Access, yield func(lo, end int64) bool) {
	if l.of == nil {
		l.t.pieces(a, yield)
		return
	}
	l.of.run(l.t, a, yield)
}

// kill notes that what the bytes of a held before is seen by nobody from here on.
func (l *liveBytes) kill(a *bytestate.Access) {
	r := l.at(a.Root)
	if l.of != nil {
		dead := func(lo, end int64) bool {
			if lo < end {
				r.bytes.Set(lo, end, false)
			}
			return true
		}
		if !l.of.run(l.t, a, dead) {
			x := placeOf(&l.t.facts.At(a.Region).Region, l.of.params)
			dead(x.lo, x.end)
		}
		return
	}
	if x := l.t.facts.At(a.Region); a.Region != 0 && !x.Region.HasRuns(maxRuns) {
		r.bytes.Set(x.CoreLo, x.CoreEnd, false)
		return
	}
	l.t.pieces(a, func(lo, end int64) bool {
		r.bytes.Set(lo, end, false)
		return true
	})
}

// pieces calls yield with ranges that together contain every byte of a: exactly its
// runs if these are few and no param moves them, else its hull.
func (t *Table) pieces(a *bytestate.Access, yield func(lo, end int64) bool) {
	if x := t.facts.At(a.Region); a.Region != 0 && x.Region.HasRuns(maxRuns) {
		x.Runs(nil, yield)
		return
	}
	yield(a.Lo, a.End)
}

// maxRuns is the number of runs up to which a constant strided region is looked at run
// by run.
const maxRuns = 32

// liveness goes through the list once, backwards.
func (t *Table) liveness() *liveness {
	l := &liveness{command: make([]bool, t.Len()), seen: make([]bool, len(t.accesses))}
	t.backward(l, nil, nil)
	return l
}

// livenessOf is what surely reaches an output or state in a replay with these params.
func (t *Table) livenessOf(params []uint32) *liveness {
	l := &liveness{command: make([]bool, t.Len()), seen: make([]bool, len(t.accesses))}
	t.backward(l, nil, &replay{params, walkRuns})
	return l
}

// eachLive calls visit with every command, from the last to the first, and with the
// bytes that are live after it.
func (t *Table) eachLive(visit func(i int32, l *liveBytes)) { t.backward(nil, visit, nil) }

func (t *Table) backward(out *liveness, visit func(i int32, l *liveBytes), of *replay) {
	l := &liveBytes{t: t, of: of, roots: make([]liveRoot, len(t.g.Memories))}
	for i := range l.roots {
		k := t.g.Memories[i].Kind
		l.roots[i].rest = k == ir.Output || k == ir.State || k == ir.Input // something may be carried to an input, for the next replay
	}
	var polls interrupt.Every
	for i := int32(t.Len()) - 1; i >= 0; i-- {
		polls.Poll(t.ctx, 64)
		if visit != nil {
			visit(i, l)
		}
		c := &t.commands[i]
		live := c.pillar
		for k := c.first; k < c.end; k++ {
			if a := &t.accesses[k]; a.Write && l.touches(a) {
				live = true
				if out != nil {
					out.seen[k] = true
				}
			}
		}
		if out != nil {
			out.command[i] = live
		}
		if c.pillar {
			l.era++ // a command of unknown effects may read every byte
			continue
		}
		for k := c.first; k < c.end; k++ {
			if a := &t.accesses[k]; a.Must {
				l.kill(a)
			}
		}
		if !live {
			continue
		}
		for k := c.first; k < c.end; k++ {
			if a := &t.accesses[k]; !a.Must { // a may-write depends on the old bytes
				l.need(a)
			}
		}
	}
}
