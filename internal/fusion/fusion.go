package fusion

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/internal/dataflow"
	"github.com/mlxc/mlxc/internal/isel"
	"github.com/mlxc/mlxc/internal/slab"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Options of a run.
type Options struct {
	Library    *isel.Library // nil: the builtin one
	Cost       *Cost         // nil: DefaultCost
	Generate   bool          // kernels for elementwise groups that no kernel computes
	Unrounded  bool          // rewrite round is allowed (docs/terms.md)
	MaxThreads int64         // that a pipeline of the device has in a threadgroup; 0: 1024
	Tried      *int64        // if not nil, counts the groups looked at
}

// Remark says what became of a group.
type Remark struct {
	Node ir.Node // the fused dispatch, or the command that stays apart
	Done bool
	Text string
}

// Limits on groups.
const (
	maxMembers = 5
	maxSpan    = 128 // nodes from the first member to the last
	maxWindow  = 12  // commands among which horizontal partners are sought
	maxRounds  = 32
)

// Run fuses what it can, in place, and returns the flow of what came of it.
func Run(g *ir.Graph, o Options) ([]Remark, *dataflow.Flow) {
	if o.Library == nil {
		o.Library = isel.Builtin()
	}
	if o.Cost == nil {
		o.Cost = &DefaultCost
	}
	if o.MaxThreads == 0 {
		o.MaxThreads = 1024
	}
	f := &fuser{g: g, o: o, m: isel.NewMatcher(o.Library), kinds: map[kind]uint16{}, outlooks: map[string]isel.Outlook{}, traffic: map[*isel.Match]float64{},
		kernels: map[*isel.Match]ir.KernelID{}, verdicts: map[string]*verdict{}, forms: map[*decl.Form]*shape{}, decls: map[*decl.Decl]uint16{}, unrounded: map[ir.Node]bool{}}
	f.m.Unrounded = o.Unrounded
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && len(d.From) > 1 {
			f.unrounded[d] = true // an earlier run may have left some out
		}
	}
	if o.Library == isel.Builtin() {
		f.declared = msl.NewCache(g)
		f.m.Declared = f.declared
	}
	f.flow = dataflow.Build(g)
	first := true // every group is new
	for range maxRounds {
		r := f.look(first)
		first = false
		r.vertical()
		r.horizontal()
		if r.apply() {
			continue
		}
		if !o.Generate || f.m.Generate || !r.elementwise() {
			break
		}
		// The library's kernels first: they are known to be fast, and a norm that
		// loses its product to a sum stays a dispatch.
		f.m = isel.NewMatcher(o.Library)
		f.m.Declared, f.m.Generate, f.m.Unrounded = f.declared, true, o.Unrounded
		clear(f.outlooks)
		clear(f.verdicts)
		first = true
	}
	return f.remarks(), f.flow
}

// elementwise reports whether there are two commands that a generated kernel may
// compute together.
func (r *round) elementwise() bool {
	n, known := 0, map[*decl.Decl]bool{}
	for _, c := range r.cmds {
		if c == nil || c.gone || c.in == nil {
			continue
		}
		ok, seen := known[c.in.Decl]
		if !seen {
			ok = isel.Elementwise(c.in.Decl)
			known[c.in.Decl] = ok
		}
		if ok {
			n++
		}
		if n == 2 {
			return true
		}
	}
	return false
}

// remarks returns those of what was fused, only the last step of what was fused
// again, then the misses.
func (f *fuser) remarks() (out []Remark) {
	for _, x := range f.done {
		if !x.cmd.gone {
			out = append(out, x.Remark)
		}
	}
	for _, m := range f.missed {
		if !m.node.gone && !m.with.gone {
			id, _ := ir.NodeID(m.with.node)
			out = append(out, Remark{m.node.node, false, fmt.Sprintf("not fused with %s: %s", id, m.text)})
		}
	}
	return out
}

// fuser is what lasts from round to round.
type fuser struct {
	g        *ir.Graph
	o        Options
	m        *isel.Matcher
	flow     *dataflow.Flow
	declared *msl.Cache // of the builtin library; nil for another
	carried  []*command // by index of the command, from the round before
	kinds    map[kind]uint16
	outlooks map[string]isel.Outlook // by sketch
	verdicts map[string]*verdict     // by sketch, forms and layout
	forms    map[*decl.Form]*shape
	decls    map[*decl.Decl]uint16
	pairs    [][]uint8 // see pairing
	traffic  map[*isel.Match]float64
	kernels  map[*isel.Match]ir.KernelID // by the first match of a kind
	missed   []miss
	done     []done
	key      []byte
	slots    []placed
	stack    []int32 // of producers, see grow
	ids      []byte

	commands   slab.Slab[command]
	spans      slab.Slab[isel.Span]
	dispatches slab.Slab[ir.Dispatch]
	froms      slab.Slab[ir.ID]
	reads      []ir.Region // room for the effects of one command
	writes     []ir.Write

	// unrounded are dispatches whose terms lack roundings that were recorded.
	unrounded map[ir.Node]bool
}

// kind is what the outlook of a group depends on in one member.
type kind struct {
	d    *decl.Decl
	ones uint32 // arguments that are weights of ones
}

// done is a remark on a dispatch that was fused, which may be fused again.
type done struct {
	Remark
	cmd *command
}

// miss is why a command was not fused with one before it.
type miss struct {
	node, with *command
	text       string
}

// command is what is known of one command.
type command struct {
	*shape
	node    ir.Node
	in      *decl.Instance // nil: it is no member of any group
	spans   []isel.Span    // by argument
	effects *ir.Effects
	kind    uint16
	fresh   bool // fused in the round before, or blocked
	missed  bool // there is a remark on it
	gone    bool // it is part of another
	// stuck: it is the last member of a group that found no place; what was fused
	// since may have made room.
	stuck bool
}

// shape is what commands of one form have in common.
type shape struct {
	id uint32 // 0: it is of one command only
	// Arguments (of in.Decl.Args) behind the reads and writes of the effects.
	reads, writes []int
	decl          uint16
	traffic       float64 // bytes
	// spans, relative to views that begin at a constant.
	spans  []isel.Span
	usable bool
}

// round is one look at the graph.
type round struct {
	*fuser
	cmds   []*command // by index in flow.Commands
	at     []int32    // its place in g.Nodes
	buffer []int32    // commits and pillars before it: a group stays within one
	took   []bool
	near   []bool // it is fresh, or a value that it reads comes from a fresh one, a few steps away
	first  bool   // every command is fresh
	// links are, for each read of each command, the def that it is, if it sees all
	// of one must-write and nothing else (see link).
	links  []link
	linkAt []int32
	cur    []ir.Node // g.Nodes with what was fused so far in this round
	from   []int32   // the command at each node; −1 for marks
	groups []group
	fused  []dataflow.Replacement
}

// link is a def: command −1 for none.
type link struct{ command, write int32 }

// group is a candidate: members (commands, ascending) and the dispatch that
// replaces them.
type group struct {
	list [maxMembers]int32
	n    int32
	v    *verdict
}

func (gr *group) members() []int32 { return gr.list[:gr.n] }

// linksOf are the links of the reads of command i.
func (r *round) linksOf(i int32) []link { return r.links[r.linkAt[i]:r.linkAt[i+1]] }

// look begins a round.
func (f *fuser) look(first bool) *round {
	r := &round{fuser: f, first: first}
	n := len(r.flow.Commands)
	if first {
		f.carried = make([]*command, n)
	}
	r.cmds, r.took, r.near = f.carried, make([]bool, n), make([]bool, n)
	r.at, r.buffer, r.linkAt = make([]int32, n), make([]int32, n), make([]int32, 0, n+1)
	r.cur, r.from = slices.Clone(f.g.Nodes), make([]int32, len(f.g.Nodes))
	i, buffer := 0, int32(0)
	for at, node := range f.g.Nodes {
		r.from[at] = -1
		switch node.(type) {
		case *ir.Commit:
			buffer++
			continue
		case *ir.Barrier, *ir.GroupBegin, *ir.GroupEnd:
			continue
		}
		r.from[at], r.at[i] = int32(i), int32(at)
		if r.flow.Unknown(i) {
			buffer++
		}
		r.buffer[i] = buffer
		if r.flow.Unknown(i) {
			buffer++
		}
		if first {
			r.cmds[i] = r.bind(node, i)
		}
		c := r.cmds[i]
		c.fresh, c.stuck = c.fresh || c.stuck, false
		i++
	}
	steps := make([]int8, n)
	for i := range r.cmds {
		r.linkAt = append(r.linkAt, int32(len(r.links)))
		steps[i] = maxMembers
		if r.cmds[i].fresh {
			steps[i] = 0
		}
		r.link(i)
		for _, l := range r.links[r.linkAt[i]:] {
			if l.command >= 0 {
				steps[i] = min(steps[i], steps[l.command]+1)
			}
		}
		r.near[i] = steps[i] < maxMembers
	}
	r.linkAt = append(r.linkAt, int32(len(r.links)))
	return r
}

// link finds the producers of command i.
func (r *round) link(i int) {
	c := r.cmds[i]
	if c.in == nil {
		return
	}
	uses := r.flow.Reads(i)
	for k, j := range c.reads {
		l := link{-1, -1}
		if s, ok := uses[k].Single(); ok {
			p := r.cmds[s.Command]
			if p.in != nil && uses[k].Region.Equal(r.flow.Writes(int(s.Command))[s.Write].Region) &&
				element(p.in, p.writes[s.Write]) == element(c.in, j) {
				l = link{s.Command, s.Write}
			}
		}
		r.links = append(r.links, l)
	}
}

func element(in *decl.Instance, arg int) ir.DType { return in.Decl.Args[arg].Elem }

// bind gives command i its declaration if it can be a member: its effects are
// complete and those of the declaration.
func (r *round) bind(node ir.Node, i int) *command {
	c := r.commands.One()
	c.node, c.effects, c.fresh = node, ir.NodeEffects(node), true
	var in *decl.Instance
	var err error
	switch n := node.(type) {
	case *ir.Dispatch:
		if !c.effects.Known() || !r.g.Kernels[n.Kernel].Library.Declared() {
			return c
		}
		var e *ir.Effects
		if r.declared != nil {
			in, err = r.declared.Bind(n)
		} else {
			in, err = r.o.Library.Bind(r.g, n)
		}
		if err != nil {
			return c
		}
		if form := in.Form(); form != nil {
			// Nothing of a form is allocated for each of its commands.
			r.reads, r.writes = slices.Grow(r.reads[:0], form.Reads())[:form.Reads()], slices.Grow(r.writes[:0], form.Writes())[:form.Writes()]
			form.Effects(n, r.reads, r.writes)
			e = &ir.Effects{Complete: true, Reads: r.reads, Writes: r.writes}
		} else if e, err = in.Effects(); err != nil {
			return c
		}
		if !e.Equal(c.effects) {
			return c
		}
		if form := in.Form(); form != nil {
			s, ok := r.forms[form]
			if !ok {
				s = r.shape(in, c.effects)
				s.id = uint32(len(r.forms) + 1)
				r.forms[form] = s
			}
			c.shape = s
		} else {
			c.shape = r.shape(in, c.effects)
		}
	case *ir.Copy:
		if in, err = isel.Copy(r.g, n, r.copied(i)); err != nil {
			return c
		}
		c.shape = r.shape(in, c.effects)
	default:
		return c
	}
	if !c.usable {
		return c
	}
	k := kind{d: in.Decl}
	c.spans = r.spans.Take(len(in.Decl.Args))
	for j := range in.Decl.Args {
		rel := &c.shape.spans[j]
		if rel.Root == ir.NoMem {
			c.spans[j] = *rel
			continue
		}
		if v := &in.Views[j]; rel.Lo <= rel.End && v.Off.IsConst() {
			root, off := r.g.Root(v.Mem)
			at := v.Off.AddConst(off)
			c.spans[j] = isel.Span{Root: root, At: at, Lo: at.Const + rel.Lo, End: at.Const + rel.End}
		} else if c.spans[j], err = isel.SpanOf(in, j); err != nil {
			return c
		}
		if isel.Ones(in, j) {
			k.ones |= 1 << min(j, 31)
		}
	}
	id, ok := r.kinds[k]
	if !ok {
		id = uint16(len(r.kinds))
		r.kinds[k] = id
	}
	c.in, c.kind = in, id
	return c
}

// shape returns what follows from the form of an instance with these effects.
func (f *fuser) shape(in *decl.Instance, e *ir.Effects) *shape {
	s := &shape{}
	if !isel.Selectable(in) {
		return s
	}
	s.spans = make([]isel.Span, len(in.Decl.Args))
	for j := range in.Decl.Args {
		var err error
		if s.spans[j], err = isel.SpanOf(in, j); err != nil {
			s.spans[j].Root = ir.NoMem // as if it were inline
			continue
		}
		if s.spans[j].Root == ir.NoMem {
			continue
		}
		if in.Decl.Args[j].Mode == decl.Read {
			s.reads = append(s.reads, j)
		} else {
			s.writes = append(s.writes, j)
		}
		// Where the view begins at a constant, what it covers ends at one.
		x := &s.spans[j]
		x.Lo, x.End = 1, 0
		if region, err := in.Region(j); err == nil {
			lo, end := region.Hull()
			_, n, ok := f.g.Range(end.Sub(in.Views[j].Off))
			if lo.Equal(in.Views[j].Off) && ok && n >= 0 {
				x.Lo, x.End = 0, n
			}
		}
	}
	if len(s.reads) != len(e.Reads) || len(s.writes) != len(e.Writes) {
		return s
	}
	id, ok := f.decls[in.Decl]
	if !ok {
		id = uint16(len(f.decls))
		f.decls[in.Decl] = id
		f.pairs = append(f.pairs, nil)
	}
	s.decl, s.traffic, s.usable = id, traffic(f.g, e), true
	return s
}

// copied is the type of the elements that a copy moves: what wrote them wrote
// such elements, or what reads them first reads such.
func (r *round) copied(i int) ir.DType {
	if u := r.flow.Reads(i); len(u) == 1 {
		if s, ok := u[0].Single(); ok {
			if p := r.cmds[s.Command]; p.in != nil && p.in.Decl.Args[p.writes[s.Write]].Elem.Size() > 0 {
				return p.in.Decl.Args[p.writes[s.Write]].Elem
			}
		}
	}
	if w := r.flow.Writes(i); len(w) == 1 && len(w[0].Readers) > 0 {
		reader := w[0].Readers[0]
		if d, ok := r.flow.Commands[reader.Command].(*ir.Dispatch); ok {
			if in, err := r.o.Library.Bind(r.g, d); err == nil {
				k := int32(0)
				for j := range in.Decl.Args {
					if a := &in.Decl.Args[j]; a.Kind == ir.DeviceArg && a.Mode == decl.Read && in.Views[j].Mem != ir.NoMem {
						if k == reader.Read && a.Elem.Size() > 0 {
							return a.Elem
						}
						k++
					}
				}
			}
		}
	}
	return ir.U8
}

// apply takes groups by gain, the earlier one of two equals, as long as they
// are still possible, and puts their dispatches into the graph.
func (r *round) apply() bool {
	r.byGain()
	for k := range r.groups {
		gr := &r.groups[k]
		if slices.ContainsFunc(gr.members(), func(i int32) bool { return r.took[i] }) {
			continue
		}
		at, why := r.place(gr)
		if why != nil {
			r.cmds[gr.members()[gr.n-1]].stuck = true
			continue
		}
		like := gr.v.hit.Like
		kernel, ok := r.kernels[like]
		if !ok {
			kernel = -1
		}
		ins := make([]*decl.Instance, 0, maxMembers)
		for _, i := range gr.members() {
			ins = append(ins, r.cmds[i].in)
		}
		m := r.m.Again(gr.v.hit, ins, kernel)
		if m == nil {
			m = r.m.Anew(gr.v.hit, r.describe(gr.members()))
		}
		if m == nil {
			continue
		}
		// Built anew, it may be another kernel than its like.
		if same := m.Kernel.Function == like.Kernel.Function && slices.Equal(m.Kernel.Constants, like.Kernel.Constants); !same || !ok {
			kernel = r.kernel(m.Kernel)
			if same {
				r.kernels[like] = kernel
			}
		}
		r.replace(gr, m, kernel, at)
	}
	if len(r.fused) == 0 {
		return false
	}
	out := r.g.Nodes[:0]
	r.carried = make([]*command, 0, len(r.cmds))
	fenced := false // a barrier stands before, and no command since
	for at, n := range r.cur {
		if n == nil {
			continue
		}
		if s, ok := n.(*sequence); ok {
			r.carried = append(r.carried, s.cmd)
			if s.before {
				out, fenced = put(out, &ir.Barrier{}, fenced)
			}
			out, fenced = put(out, s.cmd.node, fenced)
			if s.after {
				out, fenced = put(out, &ir.Barrier{}, fenced)
			}
			continue
		}
		if i := r.from[at]; i >= 0 {
			r.cmds[i].fresh = false
			r.carried = append(r.carried, r.cmds[i])
		}
		out, fenced = put(out, n, fenced)
	}
	clear(r.g.Nodes[len(out):])
	r.g.Nodes = out
	if r.fuser.flow = r.flow.Replace(r.fused); r.fuser.flow == nil {
		r.fuser.flow = dataflow.Build(r.g)
	}
	return true
}

// byGain sorts the groups: the gain follows from the verdict, of which there are
// few.
func (r *round) byGain() {
	var vs []*verdict
	for k := range r.groups {
		if v := r.groups[k].v; v.count == 0 {
			vs = append(vs, v)
		}
		r.groups[k].v.count++
	}
	slices.SortFunc(vs, func(a, b *verdict) int { return cmp.Compare(b.gain, a.gain) })
	at := 0
	type stretch struct{ from, to int }
	var same []stretch
	for k, v := range vs {
		if k > 0 && vs[k-1].gain == v.gain {
			same[len(same)-1].to += v.count
		} else {
			same = append(same, stretch{at, at + v.count})
		}
		n := v.count
		v.count = at // from now on the place of its next group
		at += n
	}
	out := make([]group, len(r.groups))
	for k := range r.groups {
		v := r.groups[k].v
		out[v.count] = r.groups[k]
		v.count++
	}
	for _, v := range vs {
		v.count = 0
	}
	compare := func(a, b group) int { return slices.Compare(a.members(), b.members()) }
	for _, x := range same {
		if gs := out[x.from:x.to]; !slices.IsSortedFunc(gs, compare) {
			slices.SortFunc(gs, compare)
		}
	}
	r.groups = out
}

// put appends a node; of barriers without a command between them it keeps the
// first.
func put(out []ir.Node, n ir.Node, fresh bool) ([]ir.Node, bool) {
	switch n.(type) {
	case *ir.Barrier:
		if fresh {
			return out, true
		}
		return append(out, n), true
	case *ir.GroupBegin, *ir.GroupEnd:
		return append(out, n), fresh
	}
	return append(out, n), false
}

// sequence is a fused dispatch, with barriers, in the place of a node.
type sequence struct {
	*ir.Barrier   // a node
	cmd           *command
	before, after bool
}

// replace puts the dispatch of a group where member at stands.
func (r *round) replace(gr *group, m *isel.Match, kernel ir.KernelID, at int32) {
	d := r.dispatches.One()
	*d = *m.Dispatch()
	d.Kernel = kernel
	d.ID, _ = ir.NodeID(r.flow.Commands[gr.members()[gr.n-1]])
	n := 0
	var ops [maxMembers]string
	for k, i := range gr.members() {
		from, op, label := provenance(r.flow.Commands[i])
		n += max(len(from), 1)
		ops[k] = op
		if label != "" {
			d.Label = label
		}
	}
	d.From = r.froms.Take(n)[:0]
	for _, i := range gr.members() {
		c := r.flow.Commands[i]
		if from, _, _ := provenance(c); len(from) > 0 {
			d.From = append(d.From, from...)
		} else {
			id, _ := ir.NodeID(c)
			d.From = append(d.From, id)
		}
	}
	slices.Sort(d.From)
	d.Op = gr.v.op(ops)
	if d.Op == "" && m.Kernel.Library.Kind == ir.Generated {
		d.Op = "elementwise" // its function is too long a name
	}
	if r.declared != nil {
		if e, err := r.declared.Effects(d); err == nil {
			d.Effects = e
		}
	} else if e, err := m.Instance.Effects(); err == nil {
		d.Effects = e
	}
	s := &sequence{cmd: r.bind(d, -1)}
	s.before, s.after = r.barriers(gr, at)
	for _, i := range gr.members() {
		if m.Unrounded > 0 || r.unrounded[r.flow.Commands[i]] {
			r.unrounded[d] = true
		}
		r.took[i] = true
		r.cmds[i].gone = true
		r.cur[r.at[i]] = nil
	}
	r.cur[r.at[at]] = s
	r.fused = append(r.fused, dataflow.Replacement{Members: gr.members(), At: at, Command: d})
	r.ids = append(r.ids[:0], "fused"...)
	for _, id := range d.From {
		r.ids = strconv.AppendUint(append(r.ids, " #"...), uint64(id), 10)
	}
	r.ids = append(append(r.ids, " into "...), m.Kernel.Name...)
	if m.Unrounded > 0 {
		what := "1 rounding of an intermediate"
		if m.Unrounded > 1 {
			what = fmt.Sprintf("%d roundings of intermediates", m.Unrounded)
		}
		r.ids = fmt.Appendf(r.ids, ", which leaves out %s (rewrite %s)", what, term.Unrounded)
	}
	r.done = append(r.done, done{Remark{d, true, string(r.ids)}, s.cmd})
}

// provenance returns the recorded commands that n implements, none for itself,
// and its names.
func provenance(n ir.Node) (from []ir.ID, op, label string) {
	switch n := n.(type) {
	case *ir.Dispatch:
		from, op, label = n.From, n.Op, n.Label
	case *ir.Copy:
		from, op, label = n.From, "copy", n.Label
	}
	return from, op, label
}

// kernel returns the graph's kernel that is k, which it adds under a name of
// its own if there is none.
func (r *round) kernel(k ir.Kernel) ir.KernelID {
	names := map[string]bool{}
	for i := range r.g.Kernels {
		x := &r.g.Kernels[i]
		names[x.Name] = true
		if x.Library == k.Library && x.Function == k.Function && slices.Equal(x.Args, k.Args) &&
			slices.EqualFunc(x.Constants, k.Constants, func(a, b ir.FunctionConstant) bool {
				return a.Index == b.Index && a.Type == b.Type && a.Bits == b.Bits
			}) {
			return ir.KernelID(i)
		}
	}
	base := k.Name // its function, or what stands for a generated one
	for n := 2; names[k.Name]; n++ {
		k.Name = fmt.Sprintf("%s_%d", base, n)
	}
	r.g.Kernels = append(r.g.Kernels, k)
	return ir.KernelID(len(r.g.Kernels) - 1)
}
