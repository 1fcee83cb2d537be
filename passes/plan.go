package passes

import (
	"context"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes/internal/values"
)

var planPass = New(Pass{Name: "plan", Summary: "assign scratch by liveness under the graph's barriers and commits", Default: true}, plan)

// plan packs the values of scratch into one arena for each storage mode. Two values may share bytes
// if the barriers and ordering commits of the graph order every command that touches one value
// before every command that touches the other, within a replay and across its end. So no new order
// is needed. Time is counted in epochs. A chain of commands that each write in place where they
// read is one value. The graph stays as it is unless its scratch shrinks.
func plan(ctx context.Context, s *State, _ struct{}) error {
	g := s.Graph
	f := s.dataflow(ctx)
	if i := f.Pillar(); i >= 0 {
		s.Not(f.Commands[i], "scratch stays as recorded: %s, so it may touch every byte", f.Why(i))
		return nil
	}
	recorded := scratchBytes(g)
	if recorded == 0 {
		return nil
	}
	p := &planner{set: values.Build(ctx, f)}
	p.epoch, p.last = epochNumbers(g)
	p.join()
	p.hold(s)
	total := p.arrange()
	if total >= recorded {
		s.NotAbout("scratch", "its %d bytes stay as they are: a new assignment would take %d (at one time %d are needed)", recorded, total, p.bound)
		return nil
	}
	p.apply(s)
	dropScratch(g, nil)
	s.About("scratch", "%d bytes instead of %d (at one time %d are needed)", total, recorded, p.bound)
	return nil
}

// epochNumbers numbers the commands so that each command is ordered before all commands with larger
// numbers. last is the number at the end of the list; that epoch continues into epoch 0 of the next
// replay. A barrier does not order commands of different command buffers. So a barrier counts only
// if no bare commit stands between the ordering commits before and after it, where the list is seen
// as a cycle.
func epochNumbers(g *ir.Graph) (epoch []int32, last int32) {
	bare := []bool{false} // by stretch between ordering commits: it contains a bare commit
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			if c.Order == ir.OrderNone {
				bare[len(bare)-1] = true
			} else {
				bare = append(bare, false)
			}
		}
	}
	around := bare[0] || bare[len(bare)-1]
	bare[0], bare[len(bare)-1] = around, around
	stretch := 0
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			if !bare[stretch] {
				last++
			}
		case *ir.Commit:
			if n.Order != ir.OrderNone {
				stretch++
				last++
			}
		default:
			if _, ok := n.(ir.Command); ok {
				epoch = append(epoch, last)
			}
		}
	}
	return epoch, last
}

// planner assigns places to the webs of one graph.
type planner struct {
	set   *values.Set
	epoch []int32
	last  int32

	item  []int32 // by web: its item; −1 for a pinned web
	items []values.Item
	// class is the storage mode of each item. Each mode has an arena of its own.
	class   []ir.Storage
	layouts [2]values.Layout
	places  [2][]int32 // by class: its items, in the order of its layout
	fixed   []bool     // memories that keep their place, because a pinned web or a view of no web lies in them
	bound   int64      // the max number of scratch bytes in use at one time
}

// join makes items of the webs: one item for each chain of webs that are written in place.
func (p *planner) join() {
	s := p.set
	p.item = make([]int32, len(s.Webs))
	p.fixed = make([]bool, len(s.Graph.Memories))
	for w := range s.Webs {
		x := &s.Webs[w]
		p.item[w] = -1
		if x.Pinned() {
			continue
		}
		a, b := p.epoch[x.First], p.epoch[x.Last]
		// INVARIANT: webs are in the order of their first commands, so u has its item already.
		if u := p.before(int32(w)); u >= 0 {
			p.item[w] = p.item[u]
			it := &p.items[p.item[u]]
			it.B = max(it.B, b)
			it.Before = max(it.Before, x.Before)
			it.After = max(it.After, x.After)
			it.Align = max(it.Align, x.Align)
			it.Rest = x.Lo % it.Align
			continue
		}
		p.item[w] = int32(len(p.items))
		p.items = append(p.items, values.Item{A: a, B: b, Size: x.Size(), Before: x.Before, After: x.After, Align: x.Align, Rest: x.Lo % x.Align})
		p.class = append(p.class, s.Graph.Memories[x.Mem].Storage)
	}
}

// hold finds the memories that must keep their place, and remarks why.
func (p *planner) hold(state *State) {
	s := p.set
	why := make([]string, len(p.fixed))
	for w := range s.Webs {
		if x := &s.Webs[w]; x.Pinned() && why[x.Mem] == "" {
			why[x.Mem] = s.Why(x)
		}
	}
	for m := range p.fixed {
		if why[m] == "" {
			why[m] = s.Held(ir.MemID(m))
		}
		if why[m] != "" {
			p.fixed[m] = true
			x := &s.Graph.Memories[m]
			state.NotAbout("%"+ir.QuoteName(x.Name), "its %d bytes stay: %s", x.Size, why[m])
		}
	}
}

// before returns the web whose bytes web w takes over in place, or −1.
func (p *planner) before(w int32) int32 {
	s := p.set
	i := s.Webs[w].First
	for k, u := range s.Flow.Reads(int(i)) {
		if u.Update >= 0 {
			continue
		}
		v := s.OfRead(int(i), k)
		// Nobody else needs the old bytes, because their other readers are ordered before i
		// already.
		if v >= 0 && p.item[v] >= 0 && s.Inplace(v, w, i) {
			return v
		}
	}
	return -1
}

// arrange lays out an arena for each storage mode and returns the resulting number of scratch
// bytes.
func (p *planner) arrange() (total int64) {
	g := p.set.Graph
	for m := range p.fixed {
		if p.fixed[m] {
			total += g.Memories[m].Size
		}
	}
	p.bound = total
	for c := range p.layouts {
		var items []values.Item
		for i := range p.items {
			if p.class[i] == ir.Storage(c) {
				items = append(items, p.items[i])
				p.places[c] = append(p.places[c], int32(i))
			}
		}
		p.layouts[c] = values.Arrange(items, p.last, true)
		total += p.layouts[c].Peak
		p.bound += p.layouts[c].Bound
	}
	return total
}

// apply moves every value to its arena. The arena is the largest memory that has become free, or a
// new one.
func (p *planner) apply(s *State) {
	g := p.set.Graph
	at := make([]int64, len(p.items))
	var arena [2]ir.MemID
	for c := range p.layouts {
		for k, i := range p.places[c] {
			at[i] = p.layouts[c].At[k]
		}
		arena[c] = ir.NoMem
		if len(p.places[c]) == 0 {
			continue
		}
		align := int64(1)
		for m := range g.Memories {
			x := &g.Memories[m]
			if x.Kind != ir.Scratch || x.Alias != ir.NoMem || x.Storage != ir.Storage(c) {
				continue
			}
			align = stricter(align, x.Align)
			if !p.fixed[m] && (arena[c] == ir.NoMem || x.Size > g.Memories[arena[c]].Size) {
				arena[c] = ir.MemID(m)
			}
		}
		if arena[c] == ir.NoMem {
			g.Memories = append(g.Memories, ir.Memory{Name: unusedName(g, "arena"), Kind: ir.Scratch, Storage: ir.Storage(c), Alias: ir.NoMem})
			arena[c] = ir.MemID(len(g.Memories) - 1)
			p.fixed = append(p.fixed, false)
		}
		m := &g.Memories[arena[c]]
		m.Size, m.Align = p.layouts[c].Peak, align
		m.DType, m.Shape = ir.Invalid, nil
	}
	for w := range p.set.Webs {
		if i := p.item[w]; i >= 0 {
			x := &p.set.Webs[w]
			mem, lo := arena[p.class[i]], at[i]
			if mem != x.Mem || lo != x.Lo {
				s.Changed(len(x.Accesses))
			}
			p.set.Move(x, mem, lo)
		}
	}
}
