package fusion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/dataflow"
	"github.com/mlxc/mlxc/internal/isel"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Options of a run.
type Options struct {
	Library    *isel.Library // nil: the builtin one
	Cost       *Cost         // nil: DefaultCost
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
	maxRounds  = 10
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
	matcher := isel.NewMatcher(o.Library)
	for range maxRounds {
		r := newRound(g, o, matcher)
		r.vertical()
		r.horizontal()
		done := r.apply()
		if len(done) == 0 {
			return append(remarks, r.misses()...)
		}
		remarks = append(remarks, done...)
	}
	return remarks
}

// command is what a round knows of one command.
type command struct {
	at     int // in g.Nodes
	buffer int // commits and pillars before it: a group stays within one
	in     *decl.Instance
	// Arguments (of in.Decl.Args) behind the reads and writes of the effects.
	reads, writes []int
	effects       *ir.Effects
}

// round is one look at the graph.
type round struct {
	g    *ir.Graph
	o    Options
	m    *isel.Matcher
	flow *dataflow.Flow
	cmds []command // by index in flow.Commands
	cur  []ir.Node // g.Nodes with what was fused so far in this round
	took []bool    // by command
	from []int32   // the command at each node; −1 for marks

	groups []group
	missed map[int]string // by root: why its first near miss was not taken
}

// group is a candidate: members (commands, ascending) and the dispatch that
// replaces them.
type group struct {
	members []int
	match   *isel.Match
	source  map[isel.Operand]isel.Operand
	gain    float64
}

func newRound(g *ir.Graph, o Options, m *isel.Matcher) *round {
	r := &round{g: g, o: o, m: m, flow: dataflow.Build(g), missed: map[int]string{}}
	n := len(r.flow.Commands)
	r.cmds, r.took = make([]command, n), make([]bool, n)
	r.cur, r.from = slices.Clone(g.Nodes), make([]int32, len(g.Nodes))
	i, buffer := 0, 0
	for at, node := range g.Nodes {
		r.from[at] = -1
		if _, ok := node.(*ir.Commit); ok {
			buffer++
		}
		if _, ok := ir.NodeID(node); !ok {
			continue
		}
		r.from[at] = int32(i)
		c := &r.cmds[i]
		c.at, c.effects = at, ir.NodeEffects(node)
		if r.flow.Unknown(i) {
			buffer++
		}
		c.buffer = buffer
		if r.flow.Unknown(i) {
			buffer++
		}
		i++
	}
	for i := range r.cmds {
		r.bind(i)
	}
	return r
}

// bind gives command i its declaration if it can be a member: its effects are
// complete and those of the declaration.
func (r *round) bind(i int) {
	c := &r.cmds[i]
	switch n := r.flow.Commands[i].(type) {
	case *ir.Dispatch:
		if !c.effects.Known() || r.g.Kernels[n.Kernel].Library.Kind != ir.Builtin {
			return
		}
		in, err := r.o.Library.Bind(r.g, n)
		if err != nil || !isel.Selectable(in) {
			return
		}
		e, err := in.Effects()
		if err != nil || !e.Equal(c.effects) {
			return
		}
		c.in = in
	case *ir.Copy:
		in, err := isel.Copy(r.g, n, r.copied(i))
		if err != nil {
			return
		}
		c.in = in
	default:
		return
	}
	for j := range c.in.Decl.Args {
		a := &c.in.Decl.Args[j]
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || c.in.Views[j].Mem == ir.NoMem {
			continue
		}
		if reg, err := c.in.Region(j); err != nil || reg.Run.IsConst() && reg.Run.Const == 0 {
			continue
		}
		if a.Mode == decl.Read {
			c.reads = append(c.reads, j)
		} else {
			c.writes = append(c.writes, j)
		}
	}
	if len(c.reads) != len(c.effects.Reads) || len(c.writes) != len(c.effects.Writes) {
		c.in = nil
	}
}

// copied is the type of the elements that a copy moves: what wrote them wrote
// such elements, or what reads them first reads such.
func (r *round) copied(i int) ir.DType {
	if u := r.flow.Reads(i); len(u) == 1 {
		if s, ok := u[0].Single(); ok {
			if p := &r.cmds[s.Command]; p.in != nil && p.in.Decl.Args[p.writes[s.Write]].Elem.Size() > 0 {
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
			done = append(done, r.replace(gr, at))
		}
	}
	if len(done) == 0 {
		return nil
	}
	out := r.g.Nodes[:0]
	fresh := false // a barrier stands before, and no command since
	for _, n := range r.cur {
		if n == nil {
			continue
		}
		if s, ok := n.(*sequence); ok {
			for _, x := range s.nodes {
				out, fresh = put(out, x, fresh)
			}
			continue
		}
		out, fresh = put(out, n, fresh)
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
func (r *round) replace(gr *group, at int) Remark {
	d := *gr.match.Dispatch()
	d.Kernel = r.kernel(gr.match.Kernel)
	last := gr.members[len(gr.members)-1]
	d.ID, _ = ir.NodeID(r.flow.Commands[last])
	var ops, ids []string
	d.From = nil
	for _, i := range gr.members {
		n := r.flow.Commands[i]
		id, _ := ir.NodeID(n)
		ids = append(ids, id.String())
		from, op, label := provenance(n)
		d.From = append(d.From, from...)
		if op != "" && (len(ops) == 0 || ops[len(ops)-1] != op) {
			ops = append(ops, op)
		}
		if label != "" {
			d.Label = label
		}
	}
	slices.Sort(d.From)
	d.Op = strings.Join(ops, "+")
	if e, err := gr.match.Instance.Effects(); err == nil {
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
		r.took[i] = true
		r.cur[r.cmds[i].at] = nil
	}
	r.cur[r.cmds[at].at] = s
	return Remark{&d, true, fmt.Sprintf("fused %s into %s", strings.Join(ids, " "), gr.match.Kernel.Function)}
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
	k.Name = k.Function
	for n := 2; names[k.Name]; n++ {
		k.Name = fmt.Sprintf("%s_%d", k.Function, n)
	}
	r.g.Kernels = append(r.g.Kernels, k)
	return ir.KernelID(len(r.g.Kernels) - 1)
}
