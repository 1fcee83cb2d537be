package fusion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/dataflow"
	"github.com/mlxc/mlxc/internal/isel"
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

// Run fuses what it can, in place.
func Run(g *ir.Graph, o Options) []Remark {
	if o.Library == nil {
		o.Library = isel.Builtin()
	}
	if o.Cost == nil {
		o.Cost = &DefaultCost
	}
	if o.MaxThreads == 0 {
		o.MaxThreads = 1024
	}
	var remarks []Remark
	f := &fuser{g: g, o: o, m: isel.NewMatcher(o.Library), kinds: map[kind]uint16{}, outlooks: map[string]isel.Outlook{}, traffic: map[*isel.Match]float64{}, kernels: map[*isel.Match]ir.KernelID{}, unrounded: map[ir.Node]bool{}}
	f.m.Unrounded = o.Unrounded
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && len(d.From) > 1 {
			f.unrounded[d] = true // an earlier run may have left some out
		}
	}
	if o.Library == isel.Builtin() {
		f.declared = msl.NewCache(g)
	}
	first := true // every group is new
	for range maxRounds {
		r := f.look(first)
		first = false
		r.vertical()
		r.horizontal()
		done := r.apply()
		remarks = append(remarks, done...)
		if len(done) > 0 {
			continue
		}
		if !o.Generate || f.m.Generate {
			break
		}
		// The library's kernels first: they are known to be fast, and a norm that
		// loses its product to a sum stays a dispatch.
		f.m = isel.NewMatcher(o.Library)
		f.m.Generate, f.m.Unrounded = true, o.Unrounded
		clear(f.outlooks)
		first = true
	}
	// Of what was fused again, only the last step.
	there := map[ir.Node]bool{}
	for _, n := range g.Nodes {
		there[n] = true
	}
	remarks = slices.DeleteFunc(remarks, func(m Remark) bool { return !there[m.Node] })
	return append(remarks, f.misses(there)...)
}

// fuser is what lasts from round to round.
type fuser struct {
	g        *ir.Graph
	o        Options
	m        *isel.Matcher
	declared *msl.Cache // of the builtin library; nil for another
	carried  []*command // by index of the command, from the round before; nil for new ones
	kinds    map[kind]uint16
	outlooks map[string]isel.Outlook // by sketch
	traffic  map[*isel.Match]float64
	kernels  map[*isel.Match]ir.KernelID // by the first match of a kind
	missed   []miss
	// unrounded are dispatches whose terms lack roundings that were recorded.
	unrounded map[ir.Node]bool
	key       []byte
	// stuck are the last members of groups that found no place: what was fused
	// since may have made room.
	stuck map[*command]bool
}

// kind is what the outlook of a group depends on in one member.
type kind struct {
	d    *decl.Decl
	ones uint32 // arguments that are weights of ones
}

// miss is why a command was not fused with one before it.
type miss struct {
	node, with ir.Node
	text       string
}

// command is what is known of one command.
type command struct {
	in *decl.Instance // nil: it is no member of any group
	// Arguments (of in.Decl.Args) behind the reads and writes of the effects.
	reads, writes []int
	spans         []isel.Span // by argument
	effects       *ir.Effects
	kind          uint16
	traffic       float64 // bytes
	missed        bool    // there is a remark on it
}

// round is one look at the graph.
type round struct {
	*fuser
	flow   *dataflow.Flow
	cmds   []*command // by index in flow.Commands
	at     []int32    // its place in g.Nodes
	buffer []int32    // commits and pillars before it: a group stays within one
	took   []bool
	fresh  []bool // fused in the round before, or blocked
	near   []bool // it is fresh, or a value that it reads comes from a fresh one, a few steps away
	first  bool   // every command is fresh
	// links are, for each read of each command, the def that it is, if it sees all
	// of one must-write and nothing else (see linked).
	links  [][]link
	cur    []ir.Node // g.Nodes with what was fused so far in this round
	from   []int32   // the command at each node; −1 for marks
	groups []group
}

// link is a def: command −1 for none.
type link struct{ command, write int32 }

// group is a candidate: members (commands, ascending) and the dispatch that
// replaces them.
type group struct {
	members []int
	hit     *isel.Candidate
	source  map[isel.Operand]isel.Operand
	gain    float64
}

// look begins a round.
func (f *fuser) look(first bool) *round {
	r := &round{fuser: f, flow: dataflow.Build(f.g), first: first}
	n := len(r.flow.Commands)
	if first {
		f.carried = make([]*command, n)
	}
	r.cmds, r.took, r.fresh, r.near = f.carried, make([]bool, n), make([]bool, n), make([]bool, n)
	r.at, r.buffer, r.links = make([]int32, n), make([]int32, n), make([][]link, n)
	r.cur, r.from = slices.Clone(f.g.Nodes), make([]int32, len(f.g.Nodes))
	i, buffer := 0, int32(0)
	for at, node := range f.g.Nodes {
		r.from[at] = -1
		if _, ok := node.(*ir.Commit); ok {
			buffer++
		}
		if _, ok := ir.NodeID(node); !ok {
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
		if r.fresh[i] = r.cmds[i] == nil || f.stuck[r.cmds[i]]; r.cmds[i] == nil {
			r.cmds[i] = r.bind(i)
		}
		i++
	}
	f.stuck = map[*command]bool{}
	var steps []int8
	for i := range r.cmds {
		steps = append(steps, maxMembers)
		if r.fresh[i] {
			steps[i] = 0
		}
		r.link(i)
		for _, l := range r.links[i] {
			if l.command >= 0 {
				steps[i] = min(steps[i], steps[l.command]+1)
			}
		}
		r.near[i] = steps[i] < maxMembers
	}
	return r
}

// link finds the producers of command i.
func (r *round) link(i int) {
	c := r.cmds[i]
	if c.in == nil {
		return
	}
	uses := r.flow.Reads(i)
	r.links[i] = make([]link, len(c.reads))
	for k, j := range c.reads {
		r.links[i][k] = link{-1, -1}
		s, ok := uses[k].Single()
		if !ok {
			continue
		}
		p := r.cmds[s.Command]
		if p.in != nil && uses[k].Region.Equal(r.flow.Writes(int(s.Command))[s.Write].Region) &&
			element(p.in, p.writes[s.Write]) == element(c.in, j) {
			r.links[i][k] = link{s.Command, s.Write}
		}
	}
}

func element(in *decl.Instance, arg int) ir.DType { return in.Decl.Args[arg].Elem }

// bind gives command i its declaration if it can be a member: its effects are
// complete and those of the declaration.
func (r *round) bind(i int) *command {
	c := &command{effects: ir.NodeEffects(r.flow.Commands[i])}
	var in *decl.Instance
	var err error
	switch n := r.flow.Commands[i].(type) {
	case *ir.Dispatch:
		if !c.effects.Known() || !r.g.Kernels[n.Kernel].Library.Declared() {
			return c
		}
		var e *ir.Effects
		if r.declared != nil {
			if in, err = r.declared.Bind(n); err == nil {
				e, err = r.declared.Effects(n)
			}
		} else if in, err = r.o.Library.Bind(r.g, n); err == nil {
			e, err = in.Effects()
		}
		if err != nil || !isel.Selectable(in) || !e.Equal(c.effects) {
			return c
		}
	case *ir.Copy:
		if in, err = isel.Copy(r.g, n, r.copied(i)); err != nil {
			return c
		}
	default:
		return c
	}
	k := kind{d: in.Decl}
	c.spans = make([]isel.Span, len(in.Decl.Args))
	for j := range in.Decl.Args {
		a := &in.Decl.Args[j]
		if c.spans[j], err = isel.SpanOf(in, j); err != nil || c.spans[j].Root == ir.NoMem {
			continue
		}
		if isel.Ones(in, j) {
			k.ones |= 1 << min(j, 31)
		}
		if a.Mode == decl.Read {
			c.reads = append(c.reads, j)
		} else {
			c.writes = append(c.writes, j)
		}
	}
	if len(c.reads) != len(c.effects.Reads) || len(c.writes) != len(c.effects.Writes) {
		return c
	}
	id, ok := r.kinds[k]
	if !ok {
		id = uint16(len(r.kinds))
		r.kinds[k] = id
	}
	c.in, c.kind, c.traffic = in, id, traffic(r.g, c.effects)
	return c
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
func (r *round) apply() (done []Remark) {
	slices.SortStableFunc(r.groups, func(a, b group) int {
		switch {
		case a.gain > b.gain:
			return -1
		case a.gain < b.gain:
			return 1
		}
		return slices.Compare(a.members, b.members)
	})
	for k := range r.groups {
		gr := &r.groups[k]
		if slices.ContainsFunc(gr.members, func(i int) bool { return r.took[i] }) {
			continue
		}
		if at, why := r.place(gr); why == "" {
			kernel, ok := r.kernels[gr.hit.Like]
			if !ok {
				kernel = -1
			}
			if m := r.m.Build(gr.hit, kernel); m != nil {
				// Built anew, it may be another kernel than its like.
				like := &gr.hit.Like.Kernel
				if same := m.Kernel.Function == like.Function && slices.Equal(m.Kernel.Constants, like.Constants); !same || !ok {
					kernel = r.kernel(m.Kernel)
					if same {
						r.kernels[gr.hit.Like] = kernel
					}
				}
				done = append(done, r.replace(gr, m, kernel, at))
			}
		} else {
			r.stuck[r.cmds[gr.members[len(gr.members)-1]]] = true
		}
	}
	if len(done) == 0 {
		return nil
	}
	out := r.g.Nodes[:0]
	r.carried = make([]*command, 0, len(r.cmds))
	fenced := false // a barrier stands before, and no command since
	for at, n := range r.cur {
		if n == nil {
			continue
		}
		if s, ok := n.(*sequence); ok {
			r.carried = append(r.carried, nil)
			for _, x := range s.nodes {
				out, fenced = put(out, x, fenced)
			}
			continue
		}
		if i := r.from[at]; i >= 0 {
			r.carried = append(r.carried, r.cmds[i])
		}
		out, fenced = put(out, n, fenced)
	}
	r.g.Nodes = out
	return done
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

// sequence is several nodes in the place of one.
type sequence struct {
	*ir.Barrier // a node
	nodes       []ir.Node
}

// replace puts the dispatch of a group where member at stands.
func (r *round) replace(gr *group, m *isel.Match, kernel ir.KernelID, at int) Remark {
	d := *m.Dispatch()
	d.Kernel = kernel
	last := gr.members[len(gr.members)-1]
	d.ID, _ = ir.NodeID(r.flow.Commands[last])
	var ops []string
	d.From = nil
	for _, i := range gr.members {
		n := r.flow.Commands[i]
		from, op, label := provenance(n)
		d.From = append(d.From, from...)
		for _, x := range strings.Split(op, "+") {
			if x != "" && !slices.Contains(ops, x) {
				ops = append(ops, x)
			}
		}
		if label != "" {
			d.Label = label
		}
	}
	slices.Sort(d.From)
	d.Op = strings.Join(ops, "+")
	if d.Op == "" && m.Kernel.Library.Kind == ir.Generated {
		d.Op = "elementwise" // its function is too long a name
	}
	if e, err := m.Instance.Effects(); err == nil {
		d.Effects = e
	}
	before, after := r.barriers(gr, at)
	s := &sequence{}
	if before {
		s.nodes = append(s.nodes, &ir.Barrier{})
	}
	s.nodes = append(s.nodes, &d)
	if after {
		s.nodes = append(s.nodes, &ir.Barrier{})
	}
	for _, i := range gr.members {
		if m.Unrounded > 0 || r.unrounded[r.flow.Commands[i]] {
			r.unrounded[&d] = true
		}
		r.took[i] = true
		r.cur[r.at[i]] = nil
	}
	r.cur[r.at[at]] = s
	ids := make([]string, len(d.From))
	for i, id := range d.From {
		ids[i] = id.String()
	}
	text := fmt.Sprintf("fused %s into %s", strings.Join(ids, " "), m.Kernel.Name)
	if m.Unrounded > 0 {
		what := "1 rounding of an intermediate"
		if m.Unrounded > 1 {
			what = fmt.Sprintf("%d roundings of intermediates", m.Unrounded)
		}
		text += fmt.Sprintf(", which leaves out %s (rewrite %s)", what, term.Unrounded)
	}
	return Remark{&d, true, text}
}

// provenance returns the recorded commands that n implements, and its names.
func provenance(n ir.Node) (from []ir.ID, op, label string) {
	id, _ := ir.NodeID(n)
	switch n := n.(type) {
	case *ir.Dispatch:
		from, op, label = n.From, n.Op, n.Label
	case *ir.Copy:
		from, op, label = n.From, "copy", n.Label
	}
	if len(from) == 0 {
		from = []ir.ID{id}
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
