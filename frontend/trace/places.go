package trace

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// An engine may keep a value in another buffer in each step: what has a place of its own is the part that a buffer plays in a
// step, which is its number in the run (run.buffers), whatever buffer plays it. What links the steps is who wrote what a buffer holds
// when a step begins.

// entry is who wrote what a buffer holds when a run begins: a run, in the part of one of its own buffers, or else the host.
type entry struct {
	run     *run     // nil: the host
	role    int      // its buffer of that run
	touched bool     // the host has written some of it since
	several bool     // another run has left some of it
	others  []leaver // who has left the rest of it, at most maxOthers
	none    bool     // the run does not read what it held before
	lost    bool     // dispatches that are in no graph
	version int      // of the host: equal if it is the same writing, 0 if nothing was ever written
	pieces  []piece  // of the host: what it is, ordered
	holds   *piece   // of a run: what it is, if the log says it
}

// given is a buffer that the host writes before each run and that kernels take as constants: its words are numbers of the run,
// as those of inline bytes are.
type given struct {
	role  int
	first int // its first number
	words int
	inert bool // they are no sums of multiples of params: it is an input
}

// maxGiven bounds the size in bytes of a buffer whose words are numbers.
const maxGiven = 256

// give finds the buffers of a group whose words are numbers, and adds these to the numbers of all runs. Constants that the host
// never writes again are weights.
func (g *group) give(k *kernels) error {
	first := g.runs[0]
	g.hard = len(first.numbers)
	constant := make([]bool, len(first.buffers)) // kernels take it in the constant address space, at its begin
	for j := range constant {
		constant[j] = true
	}
	for i := range first.commands {
		c := &first.commands[i]
		var kernel *ir.Kernel
		if c.kind == dispatch {
			out, known, err := k.of(c.code)
			if err != nil {
				return err
			}
			if known {
				kernel = &out
			}
		}
		for n := range c.binds {
			x := &c.binds[n]
			if x.buffer == nil {
				continue
			}
			_, at := x.buffer.root()
			ok := kernel != nil && at+x.offset == 0
			if ok {
				a, listed := kernel.Arg(uint8(x.slot))
				ok = !listed || a.Kind == ir.ConstantArg
			}
			constant[x.part] = constant[x.part] && ok
		}
	}
	for j, ok := range constant {
		b := first.buffers[j]
		if !ok || b.size%4 != 0 || b.size > maxGiven || b.role != "" {
			continue
		}
		// The host may have written what a run has left there by chance: then the log says only what the buffer holds.
		differs, left := false, 0
		for _, r := range g.runs {
			e := &r.entries[j]
			data := e.bytes()
			ok = ok && int64(len(data)) == b.size && r.buffers[j].size == b.size
			differs = differs || !bytes.Equal(data, first.entries[j].bytes())
			left += int(bit(e.run != nil))
		}
		if !ok || 3*left > len(g.runs) || !differs && first.rewritten(j) {
			continue
		}
		g.given = append(g.given, given{role: j, first: len(first.numbers), words: int(b.size / 4)})
		for _, r := range g.runs {
			data := r.entries[j].bytes()
			for i := 0; i < len(data); i += 4 {
				r.numbers, r.grid = append(r.numbers, int64(binary.LittleEndian.Uint32(data[i:]))), append(r.grid, false)
			}
		}
	}
	return nil
}

// rewritten reports whether the host writes a buffer again that it wrote before a run, for nothing that is in the log: if another step uses
// it then, the writing is that step's.
func (r *run) rewritten(j int) bool {
	return r.buffers[j].used == r.at && slices.ContainsFunc(r.buffers[j].host, func(h hostWrite) bool { return !h.holds && h.before > r.at })
}

// bytes returns what a buffer holds that was written as a whole, nil if it is not known.
func (e *entry) bytes() []byte {
	p := e.holds
	if e.none {
		return nil
	}
	if e.run == nil {
		if e.lost || len(e.pieces) != 1 || e.pieces[0].offset != 0 {
			return nil
		}
		p = &e.pieces[0]
	}
	if p == nil || p.n > maxGiven {
		return nil
	}
	if p.data != nil {
		return p.data
	}
	return bytes.Repeat([]byte{p.value}, int(p.n))
}

// givenAt returns the buffer whose words are numbers to which number i belongs.
func (g *group) givenAt(i int) *given {
	for k := range g.given {
		if v := &g.given[k]; v.first <= i && i < v.first+v.words {
			return v
		}
	}
	return nil
}

// givenBy returns how the words of buffer j are numbers; nil: they are not.
func (g *group) givenBy(j int) *given {
	for k := range g.given {
		if v := &g.given[k]; v.role == j && !v.inert {
			return v
		}
	}
	return nil
}

// bySize splits groups whose runs have buffers of several sizes and cannot be one graph.
func (g *group) bySize() (out []*group) {
	if len(g.runs) == 1 {
		return nil
	}
	same := func(a, b *run) bool {
		return slices.EqualFunc(a.buffers, b.buffers, func(x, y *buffer) bool { return x.size == y.size })
	}
	for _, r := range g.runs {
		i := slices.IndexFunc(out, func(o *group) bool { return same(o.runs[0], r) })
		if i < 0 {
			i = len(out)
			out = append(out, &group{name: g.name})
		}
		out[i].runs = append(out[i].runs, r)
	}
	if len(out) == 1 {
		return nil
	}
	return out
}

// steady reports whether the same buffer plays a part in all runs.
func (g *group) steady(j int) bool {
	return !slices.ContainsFunc(g.runs, func(r *run) bool { return r.buffers[j] != g.runs[0].buffers[j] })
}

// size returns the size of the memory of buffer j: that of the largest of those that played its part.
func (g *group) size(j int) (n int64) {
	if w := g.runs[0].lives[j].window; w != nil {
		return w.hi - w.base
	}
	for _, r := range g.runs {
		n = max(n, r.buffers[j].size)
	}
	return n
}

// part is a buffer of a group, whatever buffer it is in a run.
type part struct {
	g    *group
	role int
}

// leaver is the life of a buffer in a run, some of whose bytes a later run finds.
type leaver struct {
	run  *run
	role int
}

// maxOthers is how many of them are kept, besides the last one.
const maxOthers = 8

// carried says which parts are one state, and what becomes of one when a run ends.
type carried struct {
	up     map[part]part
	groups map[part]map[*group]int // of a root: its part in each group
	copies map[*group][]move       // in order
	first  map[part]*entry         // of a root: what the host wrote into it before its first run
	index  map[part]int            // of a root: the run of first
}

// move is a state that lies in another buffer when a run ends than when it begins.
type move struct {
	from int  // a buffer of the group
	to   part // any part of the state
}

func (c *carried) root(p part) part {
	for {
		q, ok := c.up[p]
		if !ok {
			return p
		}
		p = q
	}
}

// in returns the part that the state of p has in a group.
func (c *carried) in(p part, g *group) (int, bool) {
	p = c.root(p)
	if j, ok := c.groups[p][g]; ok {
		return j, true
	}
	return p.role, p.g == g
}

// join makes two parts one state, unless a group would have two parts of it.
func (c *carried) join(a, b part) bool {
	a, b = c.root(a), c.root(b)
	if a == b {
		return true
	}
	of := func(p part) map[*group]int {
		if m := c.groups[p]; m != nil {
			return m
		}
		return map[*group]int{p.g: p.role}
	}
	all := maps.Clone(of(b))
	for g, j := range of(a) {
		if _, ok := all[g]; ok {
			return false
		}
		all[g] = j
	}
	c.up[a], c.groups[b] = b, all
	return true
}

// carry follows values from step to step. finds says of a part that a run may read what it held before.
// unsure says that as far as it is known what kernels touch: then what stays in one buffer is a state, and nothing else is followed.
func (w *world) carry(ctx context.Context, groups []*group, finds, unsure func(part) bool, remark func(string, ...any)) (*carried, error) {
	c := &carried{map[part]part{}, map[part]map[*group]int{}, map[*group][]move{}, map[part]*entry{}, map[part]int{}}
	type link struct{ from, to part }
	var links []link
	type source struct {
		to part
		of *group
	}
	seen := map[source]part{}
	var polls interrupt.Every
	for _, g := range groups {
		for j, b := range g.runs[0].buffers {
			polls.Poll(ctx, 256)
			p := part{g, j}
			known, said := finds(p), false
			if !known && !(unsure(p) && g.steady(j)) {
				continue
			}
			for n, r := range g.runs {
				e := &r.entries[j]
				if e.several && known && !said {
					said = true
					remark("graph %s: what a run finds in %s several runs have left there: what the last one of them left counts", g.name, w.nameOf(b))
				}
				if e.touched && !said {
					said = true
					remark("graph %s: the host writes a part of %s between the runs", g.name, w.nameOf(b))
				}
				if e.none {
					continue
				}
				if e.run == nil {
					if !said && n > 0 && g.runs[0].entries[j].run == nil && slices.ContainsFunc(g.runs[:n], func(r *run) bool { return r.entries[j].run != nil }) {
						said = true
						remark("graph %s: the host writes %s before a run, which others find as one before them has left it: set the state", g.name, w.nameOf(b))
					}
					continue
				}
				l := link{part{e.run.of, e.role}, p}
				if o, ok := seen[source{p, l.from.g}]; ok {
					if o != l.from && known {
						return nil, w.log.fault(r.offset, "graph %s: what a run finds in %s another has left in %s, where one before it left that in %s", g.name, w.nameOf(b),
							w.nameOf(l.from.g.runs[0].buffers[l.from.role]), w.nameOf(l.from.g.runs[0].buffers[o.role]))
					}
					continue
				}
				seen[source{p, l.from.g}] = l.from
				links = append(links, l)
			}
		}
	}
	// Those that stay where they are first, so that a state has its own place rather than that of one that moves.
	slices.SortStableFunc(links, func(a, b link) int { return int(bit(a.from.g == a.to.g)) - int(bit(b.from.g == b.to.g)) })
	for _, l := range links {
		if l.from != l.to && !c.join(l.from, l.to) {
			c.copies[l.from.g] = append(c.copies[l.from.g], move{l.from.role, l.to})
		}
	}
	// What lies in several memories cannot be found in one.
	for _, g := range groups {
		for j, b := range g.runs[0].buffers {
			p := part{g, j}
			if !finds(p) {
				continue
			}
			for _, r := range g.runs {
				for _, o := range r.entries[j].others {
					if q := (part{o.run.of, o.role}); c.root(q) != c.root(p) && c.root(q) != c.root(part{r.entries[j].run.of, r.entries[j].role}) {
						return nil, w.log.fault(r.offset, "graph %s: what a run finds in %s lies in two places before: %s, and some of it in %s", g.name, w.nameOf(b),
							w.nameOf(r.entries[j].run.buffers[r.entries[j].role]), w.nameOf(o.run.buffers[o.role]))
					}
				}
			}
		}
	}
	for _, g := range groups {
		for j := range g.runs[0].buffers {
			p := part{g, j}
			if !finds(p) && !unsure(p) {
				continue
			}
			root := c.root(p)
			for _, r := range g.runs {
				if at, ok := c.index[root]; r.entries[j].run == nil && !r.entries[j].none && (!ok || r.index < at) {
					c.first[root], c.index[root] = &r.entries[j], r.index
				}
			}
		}
	}
	return c, nil
}
