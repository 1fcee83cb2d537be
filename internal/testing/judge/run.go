package judge

import (
	"slices"
	"sort"

	"github.com/mlxc/mlxc/ir"
)

// addr is a cell of a memory: the index of the root memory in the high bits, the cell
// in the low ones.
type addr int64

func address(m ir.MemID, cell int64) addr { return addr(int64(m)<<40 | cell) }

func (a addr) mem() int    { return int(a >> 40) }
func (a addr) cell() int64 { return int64(a) & (1<<40 - 1) }

// ref is a value that a command reads: a cell or, if fixed is set, a constant (a run of a
// weight).
type ref struct {
	at    addr
	fixed value
}

type target struct {
	at   addr
	must bool
	i    int // the cell's number among those that the command writes, whatever their addresses
}

// instance is a command in one replay of a stream.
type instance struct {
	*command
	replay int
	reads  []ref
	writes []target
	cells  *cellSets // one for all replays
	steps  []step    // of a command that stands for others

	// The state while it runs:
	begun bool
	in    []value
	old   []value
}

// cellSets are the cells that a command writes, and those that it reads or writes, both
// sorted. They tell which commands conflict, and are computed only when needed.
type cellSets struct{ written, touched []addr }

func (x *instance) sets() *cellSets {
	s := x.cells
	if s.touched == nil {
		for _, w := range x.writes {
			s.written = append(s.written, w.at)
		}
		s.touched = slices.Clone(s.written)
		for _, r := range x.reads {
			if r.fixed == none {
				s.touched = append(s.touched, r.at)
			}
		}
		slices.Sort(s.written)
		slices.Sort(s.touched)
		s.touched = slices.Compact(s.touched)
	}
	return s
}

// step is a part of what a command of known terms computes. Its cells are in memories of
// the command, or in private ones.
type step struct {
	code value
	// each, if set, computes an element of the result. The reads are the cells of its two operands, element by element.
	each   func(a, b []value) []value
	reads  []ref
	writes []target
}

// machine runs streams of replays of one graph.
type machine struct {
	g     *ir.Graph
	terms bool  // see [Options.Terms]
	unit  int64 // the length of a cell in bytes; with terms it divides an element
	roots []ir.MemID
	ids   []value // hashes of the memories' names; scratch memory has the names of before's
	own   []value // hashes of the memories' own names
	mem   [][]cellValue
	// past holds, by output and by replay except the last, what commands wrote there.
	// The host has read it before the next replay writes.
	past [][][]cellValue
	// strict: a command of unknown effects touches every memory. Otherwise it does not
	// touch scratch memory that it does not bind.
	strict bool

	templates map[*command]*instance
	// values, if not nil, collects what each command of known effects wrote, as one
	// value.
	values map[value]*instance
	spare  []value
	// The number of replays in the submission: carries copy, except in the last replay.
	replays int
	fixed   []bool // [ir.Graph.Fixed]
}

type cellValue struct {
	t      value
	replay int // the replay that wrote it
}

func newMachine(g *ir.Graph, names []string, terms bool, unit int64, strict bool) *machine {
	m := &machine{g: g, terms: terms, unit: unit, strict: strict, templates: map[*command]*instance{}, fixed: g.Fixed()}
	for i := range g.Memories {
		m.ids, m.own = append(m.ids, ofText(names[i])), append(m.own, ofText(g.Memories[i].Name))
		if g.Memories[i].Alias == ir.NoMem {
			m.roots = append(m.roots, ir.MemID(i))
		}
	}
	// Sorted by name, with scratch memory last, so that an unknown command sees the
	// same list in every graph with the same interface.
	scratch := func(i ir.MemID) bool { return g.Memories[i].Kind == ir.Scratch }
	sort.SliceStable(m.roots, func(i, j int) bool {
		a, b := m.roots[i], m.roots[j]
		if scratch(a) != scratch(b) {
			return scratch(b)
		}
		return names[a] < names[b]
	})
	m.mem = make([][]cellValue, len(g.Memories))
	m.past = make([][][]cellValue, len(g.Memories))
	return m
}

func (m *machine) cells(root ir.MemID) int64 {
	return (m.g.Memories[root].Size + m.unit - 1) / m.unit
}

// reset gives every memory its contents before the first replay.
func (m *machine) reset(replays int) {
	for _, r := range m.roots {
		k := &m.g.Memories[r]
		if m.fixed[r] {
			continue
		}
		if m.mem[r] == nil {
			m.mem[r] = make([]cellValue, m.cells(r))
		}
		for i := range m.mem[r] {
			v := cellValue{replay: -1}
			switch k.Kind {
			case ir.State:
				v.t = leaf(ofState, m.own[r], int64(i), 0)
			case ir.Input:
				v.t = leaf(ofInput, m.own[r], int64(i), 0)
			}
			m.mem[r][i] = v
		}
		if k.Kind == ir.Output {
			for len(m.past[r]) < replays {
				m.past[r] = append(m.past[r], make([]cellValue, len(m.mem[r])))
			}
			m.past[r] = m.past[r][:replays]
			for n := range m.past[r] {
				for i := range m.past[r][n] {
					m.past[r][n][i].replay = -1
				}
			}
		}
	}
}

// load returns the value of a cell as a command of a replay sees it. What an earlier
// replay left in an output or in scratch memory is undefined.
func (m *machine) load(a addr, replay int) value {
	k := &m.g.Memories[a.mem()]
	switch k.Kind {
	case ir.Weight:
		return leaf(ofWeight, m.own[a.mem()], a.cell()*m.unit, 0)
	case ir.Input:
		if m.fixed[a.mem()] {
			return leaf(ofInput, m.own[a.mem()], a.cell(), replay)
		}
		return m.mem[a.mem()][a.cell()].t
	}
	v := m.mem[a.mem()][a.cell()]
	if k.Kind != ir.State && v.replay < replay {
		return leaf(undefined, m.ids[a.mem()], a.cell(), replay)
	}
	return v.t
}

// fewCells is how many cells of a weight a dispatch reads one by one, so that they are
// also found in a copy of them.
const fewCells = 64

// refs lists the cells of areas in order. A dispatch reads a long run of a weight, and
// any run of argument memory, as one constant; a copy moves individual cells.
func (m *machine) refs(areas []area, whole bool) (out []ref) {
	for _, a := range areas {
		for _, r := range a.runs {
			if r.bytes != "" {
				// A copy moves as many cells as its destination has.
				size := int64(len(r.bytes))
				if !whole {
					size = m.unit
				}
				for lo := int64(0); lo < int64(len(r.bytes)); lo += size {
					out = append(out, ref{fixed: ofText(r.bytes[lo : lo+size])})
				}
				continue
			}
			if r.mem >= 0 && whole && m.g.Memories[r.mem].Kind == ir.Weight && r.hi-r.lo > fewCells*m.unit {
				out = append(out, ref{fixed: leaf(ofRun, m.own[r.mem], r.lo, int(r.hi-r.lo))})
				continue
			}
			for c := r.lo / m.unit; c < r.hi/m.unit; c++ {
				out = append(out, ref{at: address(r.mem, c)})
			}
		}
	}
	return out
}

func (m *machine) targets(areas []area) (out []target) {
	seen := map[addr]bool{}
	i := 0
	for _, a := range areas {
		for _, r := range a.runs {
			for c := r.lo / m.unit; c < r.hi/m.unit; c++ {
				if at := address(r.mem, c); !seen[at] {
					seen[at] = true
					out = append(out, target{at, a.must && !a.atomic, i})
				}
				i++
			}
		}
	}
	return out
}

// instance returns a command as part of a replay.
func (m *machine) instance(c *command, replay int) *instance {
	t := m.templates[c]
	if t == nil {
		t = m.template(c)
		m.templates[c] = t
	}
	x := *t
	x.replay = replay
	return &x
}

func (m *machine) template(c *command) *instance {
	_, copies := c.node.(*ir.Copy)
	_, carries := c.node.(*ir.Carry)
	moves := copies || carries
	x := &instance{command: c, reads: m.refs(c.reads, !moves), writes: m.targets(c.writes), cells: &cellSets{}}
	if c.unknown {
		// It touches everything else too. Its declared ranges stay in the list, so that
		// two unknown commands with different ranges differ.
		have := map[addr]bool{}
		for _, w := range x.writes {
			have[w.at] = true
		}
		i := 1 << 20
		others := slices.DeleteFunc(slices.Clone(m.roots), func(r ir.MemID) bool {
			k := m.g.Memories[r].Kind
			return k == ir.Weight || k == ir.Argument || k == ir.Scratch && !m.strict && !slices.Contains(c.bound, r)
		})
		all := 0
		for _, r := range others {
			all += int(m.cells(r))
		}
		x.reads, x.writes = slices.Grow(x.reads, all), slices.Grow(x.writes, all)
		for _, r := range others {
			k := &m.g.Memories[r]
			for n := range m.cells(r) {
				at := address(r, n)
				x.reads = append(x.reads, ref{at: at})
				if !k.Kind.ReadOnly() && !have[at] {
					x.writes = append(x.writes, target{at, false, i})
				}
				i++
			}
		}
	}
	if m.terms {
		x.steps = m.termSteps(c)
	}
	return x
}

// shared lists the cells on which two commands conflict.
func shared(a, b *instance) (out []addr) {
	meet := func(x, y []addr) {
		for len(x) > 0 && len(y) > 0 {
			switch {
			case x[0] < y[0]:
				x = x[1:]
			case x[0] > y[0]:
				y = y[1:]
			default:
				out = append(out, x[0])
				x, y = x[1:], y[1:]
			}
		}
	}
	x, y := a.sets(), b.sets()
	meet(x.written, y.touched)
	meet(x.touched, y.written)
	slices.Sort(out)
	return slices.Compact(out)
}

// event is a part of a command's run. For each byte, a command reads before it writes;
// otherwise the parts may come at any time.
type event struct {
	x     *instance
	reads bool
	write bool
	only  func(addr) bool // nil: everything that is left
}

// do runs an event. Cells that an earlier event of the same run has read or written are
// left out.
func (m *machine) do(e event) {
	x := e.x
	if e.reads {
		if !x.begun {
			x.begun = true
			if x.in == nil {
				x.in, x.old = make([]value, len(x.reads)), make([]value, len(x.writes))
			}
			clear(x.in)
			clear(x.old)
		}
		for i, r := range x.reads {
			switch {
			case x.in[i] != none || r.fixed == none && e.only != nil && !e.only(r.at):
			case r.fixed != none:
				x.in[i] = r.fixed
			default:
				x.in[i] = m.load(r.at, x.replay)
			}
		}
		for i, w := range x.writes {
			if !w.must && x.old[i] == none && (e.only == nil || e.only(w.at)) {
				x.old[i] = m.load(w.at, x.replay)
			}
		}
	}
	if e.write {
		m.spare = m.spare[:0]
		value := m.compute(x)
		for i, w := range x.writes {
			if e.only == nil || e.only(w.at) {
				v := cellValue{value(i), x.replay}
				m.mem[w.at.mem()][w.at.cell()] = v
				m.spare = append(m.spare, v.t)
				if past := m.past[w.at.mem()]; past != nil {
					past[x.replay][w.at.cell()] = v
				}
			}
		}
		if m.values != nil && !x.unknown {
			m.values[list(none, m.spare, false)] = x
		}
	}
}

// compute returns a function for the value of each cell that x writes, given what x has
// read.
func (m *machine) compute(x *instance) func(i int) value {
	if x.steps != nil {
		return m.computeSteps(x)
	}
	if _, ok := x.node.(*ir.Copy); ok {
		return func(i int) value { return x.in[i] }
	}
	if _, ok := x.node.(*ir.Carry); ok {
		if x.replay == m.replays-1 {
			return func(i int) value { return x.old[i] }
		}
		return func(i int) value { return x.in[i] }
	}
	read := slices.Clip(x.in)
	if !x.unknown { // a kernel that may write a range may look at all of it
		for _, v := range x.old {
			if v != none {
				read = append(read, v)
			}
		}
	}
	all := list(x.code, read, !x.unknown)
	if _, ok := x.node.(*ir.Fill); ok {
		return func(int) value { return all } // every byte is the same
	}
	return func(i int) value { return result(all, x.writes[i].i, x.old[i], !x.unknown) }
}

func (m *machine) computeSteps(x *instance) func(i int) value {
	held := map[addr]value{}
	for i, r := range x.reads {
		if r.fixed == none {
			held[r.at] = x.in[i]
		}
	}
	get := func(r ref) value {
		if r.fixed != none {
			return r.fixed
		}
		if t, ok := held[r.at]; ok {
			return t
		}
		// The command does not read this cell, so its value is unknown.
		return leaf(undefined, x.code, int64(r.at), x.replay)
	}
	for _, s := range x.steps {
		in := make([]value, len(s.reads))
		for i, r := range s.reads {
			in[i] = get(r)
		}
		if s.each != nil {
			cells := int(element / m.unit)
			for i := 0; i < len(s.writes); i += cells {
				b := in[2*i+cells:]
				for k, v := range s.each(in[2*i:2*i+cells], b[:cells]) {
					held[s.writes[i+k].at] = v
				}
			}
			continue
		}
		all := list(s.code, in, true)
		for _, w := range s.writes {
			held[w.at] = result(all, w.i, none, true)
		}
	}
	return func(i int) value { return get(ref{at: x.writes[i].at}) }
}

// written runs consecutive replays in written order.
func (m *machine) written(l *lowerer, params [][]uint32) outcome {
	var es []event
	for r, v := range params {
		for _, c := range l.commands(v) {
			es = append(es, event{x: m.instance(c, r), reads: true, write: true})
		}
	}
	return m.run(es, len(params))
}

// run executes events and returns the outcome.
func (m *machine) run(events []event, replays int) outcome {
	m.replays = replays
	m.reset(replays)
	for _, e := range events {
		e.x.begun = false
	}
	for _, e := range events {
		m.do(e)
	}
	out := outcome{}
	for _, r := range m.roots {
		k := &m.g.Memories[r]
		if k.Kind != ir.Output && k.Kind != ir.State {
			continue
		}
		vs := make([]value, m.cells(r))
		for c := range vs {
			vs[c] = m.load(address(r, int64(c)), replays-1)
		}
		out = append(out, final{k.Name, replays - 1, vs})
		for n, past := range m.past[r] {
			if n == replays-1 {
				break
			}
			vs := make([]value, len(past))
			for c, v := range past {
				vs[c] = v.t
				if v.replay < 0 {
					vs[c] = leaf(undefined, m.own[r], int64(c), n)
				}
			}
			out = append(out, final{k.Name, n, vs})
		}
	}
	return out
}

// outcome is, by name, the final contents of every output and state, and what earlier
// replays left in the outputs.
type outcome []final

type final struct {
	name   string
	replay int
	cells  []value
}

// namesOf returns the names of g's memories. The name of scratch memory has no meaning,
// but what an unknown command finds there needs a name. Scratch memory that before does
// not have takes, in order, the name of some scratch memory of before that has the same
// size and that g does not have.
func namesOf(before, g *ir.Graph) []string {
	scratch := func(x *ir.Graph, i int) bool {
		return x.Memories[i].Kind == ir.Scratch && x.Memories[i].Alias == ir.NoMem
	}
	has := func(x *ir.Graph, name string) bool {
		id, ok := x.MemoryNamed(name)
		return ok && scratch(x, int(id))
	}
	out := make([]string, len(g.Memories))
	taken := map[int]bool{}
	for i := range g.Memories {
		out[i] = g.Memories[i].Name
		if !scratch(g, i) || has(before, out[i]) {
			continue
		}
		for k := range before.Memories {
			if scratch(before, k) && !taken[k] && !has(g, before.Memories[k].Name) && before.Memories[k].Size == g.Memories[i].Size {
				taken[k], out[i] = true, before.Memories[k].Name
				break
			}
		}
	}
	return out
}
