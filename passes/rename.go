package passes

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes/internal/values"
)

type renameOptions struct{ budget scratchBudget }

// The default budget doubles the recorded scratch at most. Activations are small compared with
// weights, and the pass plan frees what the schedule does not need.
var renamePass = New(Pass{Name: "rename", Summary: "break false dependences: scratch values get bytes of their own", Default: true}, rename,
	Parsed("budget", "1x", "scratch to add at most: 0, 4096, 64MiB, 1x (as much again), unlimited", parseBudget, func(o *renameOptions) *scratchBudget { return &o.budget }))

// rename breaks false dependences. A scratch value whose bytes were used before moves to bytes that
// no command touches at that time, so that it waits for nothing but its operands. Values are the
// webs of package values.
//
// It visits the list once and gives each command its level, which is the length of the longest
// chain of conflicts that ends in it. A value whose first command would have level b otherwise
// takes bytes that were last touched below level b, which adds a dependence but raises no level:
// its recorded bytes if possible, else other old bytes, else new ones. When the budget is used up,
// values whose command can be delayed without lengthening the longest chain get old bytes first;
// after them, the values that wait least. So new bytes go to the critical path. If a value now
// follows another one in bytes that the recording kept apart, a barrier is added unless one stands
// between the two. The pass barriers finds which of the other barriers are still needed.
func rename(ctx context.Context, state *State, o renameOptions) error {
	g := state.Graph
	scratch := scratchBytes(g)
	if scratch == 0 {
		return nil
	}
	extra := o.budget.of(scratch)
	f := state.dataflow(ctx)
	if i := f.Pillar(); i >= 0 {
		state.changed = ir.NoChange
		state.Not(f.Commands[i], "nothing is renamed: %s, so it may touch every byte of scratch", f.Why(i))
		return nil
	}
	_, floor := f.Levels()
	table := state.hazards(ctx)
	if _, depth := table.Levels(); depth == int(floor) {
		state.changed = ir.NoChange
		state.keep(f)
		state.keepTable(table)
		state.NotAbout("scratch", "nothing to gain: no false dependence makes a chain longer than values do (%d commands)", floor)
		return nil
	}
	n := newRenamer(values.Build(ctx, f), extra)
	before := n.attempt(ctx, attempt{stay: true})
	best := before
	try := func(target int32) {
		for _, kept := range []bool{false, true} {
			if kept && extra == 0 {
				continue
			}
			if x := n.attempt(ctx, attempt{target: target, kept: kept}); x != nil && (x.depth < best.depth || x.depth == best.depth && x.used < best.used) {
				best = x
			}
		}
	}
	try(n.floor)
	if depth := best.depth; depth > n.floor {
		try(depth)
		try((depth + n.floor) / 2)
	}
	if best.depth < before.depth {
		n.apply(best, state)
		if added := mend(ctx, g); added > 0 {
			state.About("scratch", "%d barriers added: values now lie where others were, and no barrier stood between", added)
		}
	} else {
		state.changed = ir.NoChange
	}
	n.explain(best, state)
	return nil
}

// scratchBudget is how much scratch may be added: a multiple of the recorded scratch, and a number
// of bytes.
type scratchBudget struct {
	times float64
	bytes int64
}

func (b scratchBudget) of(scratch int64) int64 { return int64(b.times*float64(scratch)) + b.bytes }

// parseBudget parses "0", "4096", "64MiB", "2x", "unlimited".
func parseBudget(s string) (b scratchBudget, err error) {
	wrong := errors.New("want bytes (4096, 64KiB, 64MiB, 1GiB), a multiple of the recording's scratch (1x, 0.5x) or unlimited")
	if s == "unlimited" {
		return scratchBudget{bytes: math.MaxInt64}, nil
	}
	if x, ok := strings.CutSuffix(s, "x"); ok {
		b.times, err = strconv.ParseFloat(x, 64)
		if err != nil || !(b.times >= 0) || b.times > 1e6 {
			return b, wrong
		}
		return b, nil
	}
	unit := int64(1)
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if x, ok := strings.CutSuffix(s, u.name); ok {
			s, unit = x, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return b, wrong
	}
	return scratchBudget{bytes: n * unit}, nil
}

// renamer tries placements of one graph's webs.
type renamer struct {
	set   *values.Set
	extra int64
	floor int32    // the longest chain of dependences between values, which renaming cannot shorten
	tail  []int32  // by command: the longest chain of values after it
	mem   ir.MemID // a root of scratch; all scratch is treated as one range of addresses in it
}

func newRenamer(set *values.Set, extra int64) *renamer {
	n := &renamer{set: set, extra: extra, mem: ir.NoMem}
	f, g := set.Flow, set.Graph
	_, n.floor = f.Levels()
	n.tail = make([]int32, len(f.Commands))
	for i := len(f.Commands) - 1; i >= 0; i-- {
		for _, d := range f.Writes(i) {
			for _, x := range d.Readers {
				n.tail[i] = max(n.tail[i], 1+n.tail[x.Command])
			}
		}
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Scratch && m.Alias == ir.NoMem {
			n.mem = ir.MemID(i)
			break
		}
	}
	return n
}

// attempt is one way to choose places.
type attempt struct {
	stay   bool  // no value moves
	kept   bool  // values move to added bytes only, never to bytes that became free
	target int32 // commands may be delayed unless a chain becomes longer than this
}

// placement is the result of an attempt.
type placement struct {
	at    []int64 // by web: its address
	level []int32 // by command: its level
	late  []late  // the commands that wait for more than their values
	depth int32
	used  int64 // added bytes
	space *values.Space
}

// late is a command that has to wait longer than for its values, because of one access: number
// index of its reads or writes.
type late struct {
	command int32
	read    bool
	index   int32
}

// attempt returns nil if it finds no place for some value.
func (n *renamer) attempt(ctx context.Context, a attempt) *placement {
	s, f := n.set, n.set.Flow
	p := &placement{at: make([]int64, len(s.Webs)), level: make([]int32, len(f.Commands)),
		space: values.NewSpace(s.Graph, n.extra, a.kept)}
	for m := range s.Graph.Memories {
		if s.Held(ir.MemID(m)) != "" {
			p.space.Hold(ir.MemID(m))
		}
	}
	levels := values.NewLevels(ctx, f)
	last := make([]int32, len(s.Webs)) // by web: the level of its last access so far
	handed := make([]bool, len(s.Webs))
	for w := range s.Webs {
		x := &s.Webs[w]
		p.at[w] = -1
		if a.stay || x.Pinned() {
			p.at[w] = p.space.Recorded(x)
		}
		if x.Pinned() && !a.stay && !a.kept {
			p.space.Take(p.at[w], x, int32(w))
		}
	}
	var fresh []int32
	for i := range f.Commands {
		us, ds := f.Reads(i), f.Writes(i)
		value, level, cause := int32(0), int32(0), late{command: -1}
		wait := func(w int32, r ir.Region, read bool, k int) {
			if x := levels.After(n.region(p, w, r), !read); x > level {
				level, cause = x, late{int32(i), read, int32(k)}
			}
		}
		fresh = fresh[:0]
		for k := range us {
			for _, x := range us[k].Sources {
				value = max(value, p.level[x.Command])
			}
			if us[k].Update < 0 {
				if w := s.OfRead(i, k); w < 0 || p.at[w] >= 0 {
					wait(w, us[k].Region, true, k)
				}
			}
		}
		for k := range ds {
			if w := s.OfWrite(i, k); w < 0 || p.at[w] >= 0 {
				wait(w, ds[k].Region, false, k)
			} else {
				fresh = append(fresh, w)
			}
		}
		for _, w := range fresh {
			if p.at[w] >= 0 {
				continue // both are writes of one web
			}
			at, from, ok := n.place(a, p, levels, i, w, level+1, last)
			if !ok {
				return nil
			}
			p.at[w] = at
			if from >= 0 {
				handed[from] = true
			}
			x := &s.Webs[w]
			if !a.kept || p.space.IsAdded(at) {
				p.space.Take(at, x, w)
			}
			for k := range ds {
				if s.OfWrite(i, k) == w {
					wait(w, ds[k].Region, false, k)
				}
			}
		}
		if level > value && cause.command >= 0 {
			p.late = append(p.late, cause)
		}
		level++
		p.level[i] = level
		p.depth = max(p.depth, level)
		enter := func(w int32, r ir.Region, write bool) {
			levels.Add(n.region(p, w, r), write, level)
			if w >= 0 {
				last[w] = max(last[w], level)
			}
		}
		for k := range us {
			if us[k].Update < 0 {
				enter(s.OfRead(i, k), us[k].Region, false)
			}
		}
		for k := range ds {
			enter(s.OfWrite(i, k), ds[k].Region, true)
		}
		if a.stay {
			continue
		}
		done := func(w int32) {
			if w < 0 || handed[w] {
				return
			}
			if x := &s.Webs[w]; x.Last == int32(i) && !x.Pinned() && (!a.kept || p.space.IsAdded(p.at[w])) {
				handed[w] = true
				p.space.Give(p.at[w], x.Size(), last[w])
			}
		}
		for k := range us {
			if us[k].Update < 0 {
				done(s.OfRead(i, k))
			}
		}
		for k := range ds {
			done(s.OfWrite(i, k))
		}
	}
	p.used = p.space.Used(ir.Shared) + p.space.Used(ir.Private)
	return p
}

// region returns the place of region r, which belongs to web w (−1: no web), under placement p. All
// scratch is one range of addresses in memory n.mem.
func (n *renamer) region(p *placement, w int32, r ir.Region) ir.Region {
	if w >= 0 {
		r.Mem, r.Off = n.mem, r.Off.AddConst(p.at[w]-n.set.Webs[w].Lo)
	}
	return r
}

// place chooses the address of web w, whose first command is i and would have level born otherwise.
// from is the web whose bytes w takes over in place, or −1.
func (n *renamer) place(a attempt, p *placement, levels *values.Levels, i int, w, born int32, last []int32) (at int64, from int32, ok bool) {
	s, x := n.set, &n.set.Webs[w]
	from = -1
	storage := s.Graph.Memories[x.Mem].Storage
	none := int32(math.MaxInt32)
	stay, stayLevel := p.space.Recorded(x), none
	over, overLevel := int64(-1), none
	for k := range s.Flow.Reads(i) {
		if s.Flow.Reads(i)[k].Update >= 0 {
			continue
		}
		u := s.OfRead(i, k)
		if u < 0 || !s.Inplace(u, w, int32(i)) || s.Webs[u].Pinned() || !p.space.Fits(x, p.at[u]) {
			continue
		}
		over, overLevel, from = p.at[u], last[u], u
	}
	if a.kept {
		// No value moves into recorded bytes, so a value may stay in its own bytes once the
		// conflicts there are over.
		stayLevel = 0
		for k := range s.Flow.Writes(i) {
			if s.OfWrite(i, k) == w {
				r := s.Flow.Writes(i)[k].Region
				r.Mem, r.Off = n.mem, r.Off.AddConst(stay-x.Lo)
				stayLevel = max(stayLevel, levels.After(r, true))
			}
		}
		if over >= 0 && !p.space.IsAdded(over) {
			over, overLevel, from = -1, none, -1 // this is the recorded place
		}
	} else if l, ok := p.space.Free(stay, x.Size()); ok {
		stayLevel = l
	}
	reuse := func(before int32) bool {
		if stayLevel < before {
			at, from = stay, -1
			return true
		}
		if overLevel < before {
			at = over
			return true
		}
		if y, found := p.space.Find(x, before, storage); found {
			at, from = y.At, -1
			return true
		}
		return false
	}
	if reuse(born) {
		return at, from, true
	}
	if slack := a.target - n.tail[i]; n.extra < math.MaxInt64 && slack > born && reuse(slack) {
		return at, from, true
	}
	if y, found := p.space.Fresh(x, storage); found {
		return y, -1, true
	}
	// Take the place for which the value waits least.
	best := none
	if stayLevel < best {
		at, best = stay, stayLevel
	}
	keep := int32(-1)
	if overLevel < best {
		at, best, keep = over, overLevel, from
	}
	if y, found := p.space.Find(x, best, storage); found {
		at, best, keep = y.At, y.Level, -1
	} else if best == none {
		if y, found := p.space.Window(x, storage); found {
			at, best = y.At, y.Level
		}
	}
	return at, keep, best < none
}

// apply moves the webs of g to their new places.
func (n *renamer) apply(p *placement, state *State) {
	s := n.set
	g := s.Graph
	added := [2]ir.MemID{ir.NoMem, ir.NoMem}
	for c := range added {
		size := p.space.Used(ir.Storage(c))
		if size == 0 {
			continue
		}
		align := int64(1)
		for i := range g.Memories {
			if m := &g.Memories[i]; m.Kind == ir.Scratch && m.Alias == ir.NoMem && m.Storage == ir.Storage(c) {
				align = stricter(align, m.Align)
			}
		}
		g.Memories = append(g.Memories, ir.Memory{Name: unusedName(g, "renamed"), Kind: ir.Scratch, Storage: ir.Storage(c), Size: size, Align: align, Alias: ir.NoMem})
		added[c] = ir.MemID(len(g.Memories) - 1)
	}
	for w := range s.Webs {
		x := &s.Webs[w]
		if p.at[w] == p.space.Recorded(x) {
			continue
		}
		mem, c, lo := p.space.Locate(p.at[w])
		if mem == ir.NoMem {
			mem = added[c]
		}
		s.Move(x, mem, lo)
		state.Did(s.Flow.Commands[x.First], "its value moves from %s to %s", g.FormatView(ir.ViewOf(x.Mem, x.Lo, x.Size())), g.FormatView(ir.ViewOf(mem, lo, x.Size())))
	}
}

// explain remarks what makes the longest chains longer than the values need.
func (n *renamer) explain(p *placement, state *State) {
	s := n.set
	f, g := s.Flow, s.Graph
	if p.depth == n.floor {
		return
	}
	for _, l := range p.late {
		i := l.command
		if p.level[i]+n.tail[i] < p.depth {
			continue // the command is not on a longest chain
		}
		region, w := ir.Region{}, int32(-1)
		if l.read {
			region, w = f.Reads(int(i))[l.index].Region, s.OfRead(int(i), int(l.index))
		} else {
			region, w = f.Writes(int(i))[l.index].Region, s.OfWrite(int(i), int(l.index))
		}
		switch {
		case w < 0:
			state.Not(f.Commands[i], "it waits for an earlier access of %s: %s bytes cannot be renamed", g.FormatRegion(region), g.Memories[region.Mem].Kind)
		case s.Webs[w].Pinned():
			state.Not(f.Commands[i], "it waits for an earlier access of %s: %s", g.FormatRegion(region), s.Why(&s.Webs[w]))
		default:
			state.Not(f.Commands[i], "it waits for an earlier access of the bytes of its %d-byte value: the budget has no others", s.Webs[w].Size())
		}
	}
}

// scratchBytes returns the size of all scratch of g, aliases counted once.
func scratchBytes(g *ir.Graph) (n int64) {
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Scratch && m.Alias == ir.NoMem {
			n += m.Size
		}
	}
	return n
}

// stricter returns the larger of two alignments. 0 is the default alignment.
func stricter(a, b int64) int64 {
	x, y := a, b
	if x == 0 {
		x = values.DefaultAlign
	}
	if y == 0 {
		y = values.DefaultAlign
	}
	if x < y || x == y && b == 0 {
		return b
	}
	return a
}

// unusedName returns base if no memory has that name. Otherwise it appends the smallest number from
// 2 on that makes it unused.
func unusedName(g *ir.Graph, base string) string {
	taken := map[string]bool{} // a set, because a hostile graph may use as many such names as it has memories
	for i := range g.Memories {
		if name := g.Memories[i].Name; strings.HasPrefix(name, base) {
			taken[name] = true
		}
	}
	name := base
	for i := 2; taken[name]; i++ {
		name = base + "." + strconv.Itoa(i)
	}
	return name
}
