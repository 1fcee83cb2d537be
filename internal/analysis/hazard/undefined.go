package hazard

import (
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// undefined finds reads of bytes of scratch memory or outputs that nothing can have written before.
// If params move ranges, it tries the mins and the maxes of the params: a read that is undefined
// for some values is a fault.
func (j *judge) undefined() {
	if !j.moves() {
		j.undefinedAt(nil)
		return
	}
	for _, p := range j.samples()[:min(2, len(j.samples()))] {
		if j.undefinedAt(p); len(j.Undefined) > 0 {
			return
		}
	}
}

// moves reports whether params move something that commands do.
func (j *judge) moves() bool {
	for n := range int32(j.t.facts.Len()) {
		if x := j.t.facts.At(n); n > 0 && x.Moves {
			return true
		}
	}
	return false
}

// begins reports whether a memory is undefined at the beginning of a replay.
func begins(m *ir.Memory) bool { return m.Kind == ir.Scratch || m.Kind == ir.Output }

// written holds the bytes of a root memory that some command may have written.
type written struct {
	bytes interval.Partition[struct{}]
}

// add adds [lo, end). It joins intervals that touch, so that hole finds one interval.
func (w *written) add(lo, end int64) {
	if lo >= end {
		return
	}
	if a, z, _, ok := w.bytes.At(lo); ok {
		if end <= z {
			return
		}
		lo = a
	} else if a, _, _, ok := w.bytes.At(lo - 1); ok {
		lo = a
	}
	if _, z, _, ok := w.bytes.At(end); ok {
		end = z
	}
	w.bytes.Set(lo, end, struct{}{})
}

// hole returns the first bytes of [lo, end) that are not in w. ok is false if there are
// none.
func (w *written) hole(lo, end int64) (from, to int64, ok bool) {
	if _, z, _, found := w.bytes.At(lo); found {
		lo = z
	}
	if lo >= end {
		return 0, 0, false
	}
	w.bytes.Each(lo, end, func(a, _ int64, _ struct{}) bool {
		end = a
		return false
	})
	return lo, end, true
}

// extent is where a region lies for given values of the params.
type extent struct {
	lo, end int64 // the hull
	known   bool
}

// undefinedAt looks for undefined reads in a replay with the given params.
func (j *judge) undefinedAt(params []uint32) {
	t := j.t
	var live []bool // of this replay; looked at only where a read is undefined
	reaches := func(i int32) bool {
		if live == nil {
			live = t.livenessOf(params).command
		}
		return live[i]
	}
	roots := make([]written, len(t.g.Memories))
	places := make([]extent, t.facts.Len())
	hull := func(a *bytestate.Access) (lo, end int64) {
		if a.Region == 0 {
			return a.Lo, a.End
		}
		p := &places[a.Region]
		if !p.known {
			*p = placeOf(&t.facts.At(a.Region).Region, params)
		}
		return p.lo, p.end
	}
	var polls interrupt.Every
	for i := range int32(t.Len()) {
		polls.Poll(t.ctx, 64)
		c := &t.commands[i]
		if c.pillar {
			return // a command of unknown effects may have written everything
		}
		for k := c.first; k < c.end && j.live.command[i]; k++ {
			a := &t.accesses[k]
			if a.Must || !begins(&t.g.Memories[a.Root]) {
				continue
			}
			lo, end := hull(a)
			from, to, ok := roots[a.Root].hole(lo, end)
			if ok && a.Region != 0 {
				from, to, ok = roots[a.Root].missing(&t.facts.At(a.Region).Region, params)
			}
			if ok && reaches(i) {
				j.Undefined = append(j.Undefined, Undefined{i, ir.MemID(a.Root), from, to, slices.Clone(params)})
				if len(j.Undefined) >= maxJudged {
					return
				}
				break
			}
		}
		for k := c.first; k < c.end; k++ {
			a := &t.accesses[k]
			if !a.Write || !begins(&t.g.Memories[a.Root]) {
				continue
			}
			if w := &roots[a.Root]; a.Region != 0 && t.facts.At(a.Region).Region.HasRuns(maxRuns) {
				t.facts.At(a.Region).Runs(params, func(lo, end int64) bool {
					w.add(lo, end)
					return true
				})
			} else {
				w.add(hull(a))
			}
		}
	}
}

func placeOf(r *ir.Region, params []uint32) extent {
	p := extent{known: true, lo: r.Off.Eval(params)}
	p.end = p.lo + r.Run.Eval(params)
	if p.end <= p.lo {
		p.end = p.lo
		return p
	}
	for _, d := range r.Dims {
		n := d.Count.Eval(params)
		if n <= 0 {
			p.end = p.lo
			return p
		}
		p.end += (n - 1) * d.Stride
	}
	return p
}

// maxWalk bounds the runs of a strided region that are looked at.
const maxWalk = 1 << 12

// missing returns bytes of a strided region that are not in w. ok is false if none were
// found.
func (w *written) missing(r *ir.Region, params []uint32) (from, to int64, ok bool) {
	left := maxWalk
	r.Runs(params, func(lo, end int64) bool {
		from, to, ok = w.hole(lo, end)
		left--
		return !ok && left > 0
	})
	return from, to, ok
}
