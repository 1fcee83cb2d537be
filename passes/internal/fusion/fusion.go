package fusion

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// Options of a run.
type Options struct {
	Library    *isel.Library  // nil: the builtin one
	Model      cost.Model     // zero: the default chip
	Generate   bool           // generate kernels for elementwise groups that no library kernel computes
	Unrounded  bool           // rewrite round is allowed (docs/terms.md)
	MaxThreads int64          // max threads per threadgroup of a pipeline on the device; 0: 1024
	Tried      *int64         // if not nil, counts the groups that were examined
	Judged     *int64         // if not nil, counts the groups for which a kernel was sought: of groups that are alike, one
	Flow       *dataflow.Flow // of the graph, if it is known; Run takes it over
	anew       bool           // search around every command, even if the graph repeats itself: for tests
}

// Remark says what happened to a group.
type Remark struct {
	Node ir.Command // the fused dispatch, or the command that was not fused
	Done bool
	Text string
}

// Limits on groups.
const (
	maxMembers = 5
	maxSpan    = 128 // nodes from the first to the last member
	maxWindow  = 12  // commands among which members of a horizontal group are sought
	maxRounds  = 32
	// maxFrom is how many recorded commands one dispatch stands for at most. A kernel that moves many values as they are
	// could stand for any number, and the prover compares no more than this.
	maxFrom = 1 << 12
)

// Run fuses what it can, in place, and returns the data flow of the resulting graph.
func Run(ctx context.Context, g *ir.Graph, o Options) ([]Remark, *dataflow.Flow) {
	if o.Library == nil {
		o.Library = isel.BuiltinFor(g)
	}
	if o.MaxThreads == 0 {
		o.MaxThreads = 1024
	}
	f := &fuser{ctx: ctx, g: g, o: o, m: isel.NewMatcher(o.Library), kinds: map[kind]uint16{}, model: o.Model.OrDefault().AtMost(g),
		kernels: map[*isel.Match]ir.KernelID{}, verdicts: map[string]*verdict{}, forms: map[*decl.Form]*shape{}, copies: map[string]*shape{}}
	f.m.Unrounded, f.m.Takes = o.Unrounded, f.takes()
	f.mems = memories(g)
	if o.Library.Own() {
		f.declared = msl.NewCache(g)
		f.m.Declared = f.declared
	}
	if f.flow = o.Flow; f.flow == nil {
		f.flow = dataflow.Build(ctx, g)
	}
	first := true // no verdict on any group is known to f.m yet
	whole := true // every group was examined since f.m's kernels were last used to fuse something
	rounds := 0
	for ; rounds < maxRounds; rounds++ {
		interrupt.Poll(ctx)
		if f.flow.Crowded() {
			i := f.flow.Pillar()
			return append(f.remarks(), Remark{Node: f.flow.Commands[i], Text: "nothing is fused any more: " + f.flow.Why(i)}), f.flow
		}
		if first && !fusible(g) {
			break
		}
		r := f.look(first)
		first = false
		r.vertical()
		r.horizontal()
		if r.apply() {
			f.forget()
			whole = false
			continue
		}
		if !whole {
			// Fusions may have brought commands near one another that were too far apart, or have removed what
			// blocked a group.
			for _, c := range f.carried {
				c.fresh = true
			}
			whole = true
			continue
		}
		if !o.Generate || f.m.Generate || !r.elementwise() {
			break
		}
		// Library kernels come before generated ones, because they are known to be fast. Besides, a norm whose product
		// was fused with a sum could not be fused any more.
		f.m = isel.NewMatcher(o.Library)
		f.m.Takes = f.takes()
		f.m.Declared, f.m.Generate, f.m.Unrounded = f.declared, true, o.Unrounded
		clear(f.verdicts)
		first = true
	}
	if rounds == maxRounds {
		f.unfinished = true
	}
	f.exchange()
	if o.Tried != nil {
		*o.Tried += f.tried
	}
	if o.Judged != nil {
		*o.Judged += f.judged
	}
	return f.remarks(), f.flow
}

// takes returns a function that models the time of a match from the profile's measured kernels; nil without a
// profile, because the declarations of kernels that compute the same do not tell them apart.
func (f *fuser) takes() func(*isel.Group, *isel.Match) float64 {
	if len(f.o.Model.Kernels) == 0 {
		return nil
	}
	return func(gr *isel.Group, m *isel.Match) float64 {
		d := m.Dispatch()
		if int64(d.Threadgroup[0])*int64(d.Threadgroup[1])*int64(d.Threadgroup[2]) > f.o.MaxThreads {
			return math.Inf(1)
		}
		effects, err := m.Instance.Effects()
		if err != nil {
			return math.Inf(1)
		}
		longest, operations := cost.Seconds(0), 0.0
		for _, in := range gr.Members {
			e, err := in.Effects()
			if err != nil {
				continue
			}
			w := f.model.Instance(in, e)
			longest, operations = max(longest, w.Alone), operations+w.Operations
		}
		return float64(f.model.Fused(m.Instance, effects, operations, longest).Alone)
	}
}

// exchange makes single dispatches run another kernel that computes the same, if the profile says that it is
// faster. It runs last, when fusion has decided which dispatches remain.
func (f *fuser) exchange() {
	if f.m.Takes == nil || f.flow.Crowded() || !fusible(f.g) {
		return
	}
	f.m = isel.NewMatcher(f.o.Library)
	f.m.Declared, f.m.Takes = f.declared, f.takes()
	clear(f.verdicts)
	r := f.look(true)
	r.singly()
	r.apply()
}

// fusible reports whether g has at least two commands that can be members of a group: copies, and dispatches of
// declared kernels. A graph from an engine with only kernels of its own has none.
func fusible(g *ir.Graph) bool {
	if slices.ContainsFunc(g.Kernels, func(k ir.Kernel) bool { return msl.Declared(&k) }) {
		return true
	}
	copies := 0
	for _, n := range g.Nodes {
		if _, ok := n.(*ir.Copy); ok {
			copies++
		}
	}
	return copies > 1
}

// maxRemembered bounds the verdicts that are kept for the next round. Each may hold a kernel, and in a graph
// with more verdicts than this few groups are alike anyway.
const maxRemembered = 1 << 13

// forget drops the verdicts if there are too many.
func (f *fuser) forget() {
	if len(f.verdicts) <= maxRemembered {
		return
	}
	clear(f.verdicts)
	clear(f.kernels)
	clear(f.groups[:cap(f.groups)])
	clear(f.sorted[:cap(f.sorted)])
}

// elementwise reports whether there are two commands that a generated kernel may
// compute together.
func (r *round) elementwise() bool {
	n := 0
	for i, c := range r.cmds {
		if c.gone || !r.elementwiseOnly(int32(i)) {
			continue
		}
		if n++; n == 2 {
			return true
		}
	}
	return false
}

// remarks returns a remark for each fused dispatch that is left in the graph, followed by those for commands
// that were not fused.
func (f *fuser) remarks() (out []Remark) {
	out = make([]Remark, 0, len(f.done)+len(f.missed))
	// The texts are slices of a few long strings, which saves allocations.
	var text []byte
	first, from := 0, 0
	ends := make([]int, 0, 256)
	cut := func() {
		all := string(text)
		for k, end := range ends {
			out[first+k].Text, from = all[from:end], end
		}
		text, ends, first, from = text[:0], ends[:0], len(out), 0
	}
	for k := range f.done {
		if x := &f.done[k]; !x.cmd.gone {
			text = x.text(text)
			out = append(out, Remark{Node: x.cmd.node, Done: true})
			if ends = append(ends, len(text)); len(ends) == cap(ends) {
				cut()
			}
		}
	}
	cut()
	if f.unfinished {
		out = append(out, Remark{Node: f.flow.Commands[len(f.flow.Commands)-1], Text: fmt.Sprintf("nothing more is fused after %d rounds; optimize the result again", maxRounds)})
	}
	for _, m := range f.missed {
		if !m.node.gone && !m.with.gone {
			id := m.with.node.Num()
			out = append(out, Remark{m.node.node, false, fmt.Sprintf("not fused with %s: %s", id, m.text)})
		}
	}
	return out
}

// fuser is the state that is kept from round to round.
type fuser struct {
	ctx        context.Context
	g          *ir.Graph
	o          Options
	m          *isel.Matcher
	flow       *dataflow.Flow
	spare      *dataflow.Flow      // the memory of the previous round's flow
	declared   *msl.Cache          // of the builtin library; nil for another
	carried    []*command          // from the previous round, by command index
	kinds      map[kind]uint16     // numbers of kinds, from 1 on
	verdicts   map[string]*verdict // by sketch, forms and layout
	forms      map[*decl.Form]*shape
	copies     map[string]*shape // see copyShape
	copyKey    []byte
	shapes     uint32 // the number of shapes that several commands share
	left       int    // how many sets grow may still try around the current command
	named      kernelNames
	model      *cost.Estimator
	kernels    map[*isel.Match]ir.KernelID // by the first match that runs the kernel
	missed     []miss
	unfinished bool // groups were left after maxRounds rounds
	done       []done
	key        []byte
	slots      []placed
	stack      []int32 // producers to be tried, see grow
	mems       []memory
	seen       recognized
	others     others
	tried      int64
	judged     int64
	last       *shape // shape of the last dispatch that was bound

	commands   bump.Allocator[command]
	dispatches bump.Allocator[ir.Dispatch]
	froms      bump.Allocator[ir.ID]
	sequences  bump.Allocator[sequence]
	instances  bump.Allocator[decl.Instance]
	views      bump.Allocator[ir.View]

	links  []link
	groups []group
	sorted []group
	room   room
}

// room is memory that is reused from round to round.
type room struct {
	took, near                                            []bool
	at, buffer, linkAt, from, numbers, defAt, read, fresh []int32
	owner, rivalsAt, rivals, next, nearby, taken          []int32 // see choose
	vertically, horizontally                              []int32
	steps, chosen                                         []int8
	values                                                []int64
	beside                                                []lying
	cur                                                   []ir.Node
	fused                                                 []dataflow.Replacement
}

// take returns a slice of n zeros, using the memory of *s if it is long enough.
func take[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
		return *s
	}
	out := (*s)[:n]
	clear(out)
	return out
}

// kind is everything about a member that its group's prefilter result (isel.Prefilter) depends on.
type kind struct {
	d    *decl.Decl
	ones uint32 // arguments that are weights of ones
}

// shownMembers is how many commands a remark lists.
const shownMembers = 16

// done is a remark on a fused dispatch, which later rounds may fuse again.
type done struct {
	cmd       *command
	kernel    string
	before    string // the kernel that a single dispatch ran before exchange
	unrounded int
}

// text appends what the remark says.
func (x *done) text(b []byte) []byte {
	from := x.cmd.node.(*ir.Dispatch).From
	if x.before != "" {
		return fmt.Appendf(b, "runs %s in place of %s, which takes longer by the profile", x.kernel, x.before)
	}
	b = append(b, "fused"...)
	for k, id := range from {
		if k >= shownMembers-1 && k < len(from)-1 && len(from) > shownMembers {
			if k == shownMembers-1 {
				b = append(b, " …"...)
			}
			continue
		}
		b = strconv.AppendUint(append(b, " #"...), uint64(id), 10)
	}
	if len(from) > shownMembers {
		b = fmt.Appendf(b, " (%d commands)", len(from))
	}
	b = append(append(b, " into "...), x.kernel...)
	if n := x.unrounded; n > 0 {
		what := "1 rounding of an intermediate"
		if n > 1 {
			what = fmt.Sprintf("%d roundings of intermediates", n)
		}
		b = fmt.Appendf(b, ", which leaves out %s (rewrite %s)", what, term.Unrounded)
	}
	return b
}

// miss is the reason why a command was not fused with an earlier one.
type miss struct {
	node, with *command
	text       string
}

// round is the state of one round: one search for groups over the whole graph.
type round struct {
	*fuser
	cmds   []*command // by index in flow.Commands
	at     []int32    // by command: its position in g.Nodes
	buffer []int32    // by command: the number of commits and commands of unknown effects before it; a group lies between two of these
	took   []bool     // by command: it was fused in this round
	near   []bool     // by command: it is fresh, or reads, possibly through a few steps, what a fresh one wrote
	first  bool       // every command is fresh
	// links has, for each read of each command, the write whose bytes it reads, if it reads exactly the
	// bytes of one must-write.
	links                    []link
	linkAt                   []int32
	cur                      []ir.Node // g.Nodes with the fusions of this round so far
	from                     []int32   // by node: the command; −1 for marks
	groups                   []group
	fused                    []dataflow.Replacement
	vertically, horizontally search
	finding                  *search // the one of these two that is running
	likeness                         // see recognize
	values                   []int64 // by read, as in links: the number of the value that is read; 0: a weight
	defAt                    []int32 // by command: the number of writes by earlier commands
	read                     []int32 // by write: 1 + the last command that read it
	beside                   []lying // by memory: the view that was compared last
	chosen                   []int8  // by group, see choose
	owner                    []int32
}

// link names a write by its command and its index among the command's writes; command −1 is none.
type link struct{ command, write int32 }

// group is a candidate for fusion: its members (command indices, ascending) and the verdict, with the dispatch
// that would replace them.
type group struct {
	list [maxMembers]int32
	n    int32
	at   int32 // the member at whose place the fused dispatch can stand, unless something moves before; −1: none
	v    *verdict
}

func (gr *group) members() []int32 { return gr.list[:gr.n] }

// linksOf returns the links of command i's reads.
func (r *round) linksOf(i int32) []link { return r.links[r.linkAt[i]:r.linkAt[i+1]] }

// look begins a round.
func (f *fuser) look(first bool) *round {
	n := len(f.flow.Commands)
	if first && len(f.carried) != n {
		f.carried, f.groups, f.sorted = make([]*command, n), make([]group, 0, n), make([]group, 0, n)
	}
	x := &f.room
	r := &round{fuser: f, first: first, cmds: f.carried, took: take(&x.took, n), near: take(&x.near, n),
		at: take(&x.at, n), buffer: take(&x.buffer, n), linkAt: take(&x.linkAt, n+1)[:0], links: f.links[:0], groups: f.groups[:0],
		cur: append(x.cur[:0], f.g.Nodes...), from: take(&x.from, len(f.g.Nodes))}
	x.cur = r.cur
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
			r.cmds[i] = r.anew(r.cmds[i], node.(ir.Command), i)
		}
		c := r.cmds[i]
		if r.flow.Widened() && slices.ContainsFunc(r.flow.Writes(i), func(d dataflow.Def) bool { return d.Wide }) {
			c.shape = nil // it cannot be a member of any group
		}
		c.fresh, c.stuck = c.fresh || c.stuck, false
		i++
	}
	r.recognize()
	return r
}

// apply fuses the groups that choose chose, then others in order of gain (equal gains: the earlier group), as
// long as their members are still unfused, and puts the new dispatches into the graph.
func (r *round) apply() bool {
	r.byGain()
	r.choose()
	r.fuser.groups = r.groups
	r.fused = slices.Grow(r.room.fused[:0], len(r.groups)/3)
	r.done = slices.Grow(r.done, len(r.groups)/3)
	for k := range r.groups {
		gr := &r.groups[k]
		if slices.ContainsFunc(gr.members(), func(i int32) bool { return r.took[i] }) {
			continue
		}
		at := gr.at
		if r.changed(gr) {
			var why *obstacle
			if at, why = r.place(gr); why != nil {
				r.cmds[gr.members()[gr.n-1]].stuck = true
				continue
			}
		}
		like := gr.v.hit.Like
		kernel, ok := r.kernels[like]
		if !invariants.Caches || !ok {
			kernel, ok = -1, false
		}
		m := like
		d, form := like.Dispatch(), (*decl.Form)(nil)
		if !r.are(gr.members(), gr.v.hit.Members()) {
			d, form = r.m.Again(gr.v.hit, r.g, func(o isel.Operand) *ir.View { return r.cmds[gr.list[o.Member]].view(o.Arg) }, kernel)
		}
		if d == nil {
			if m = r.m.Anew(gr.v.hit, r.describe(gr.members())); m == nil {
				continue
			}
			d = m.Dispatch()
		}
		// A match that was searched again may be of another kernel.
		if same := m.Kernel.Function == like.Kernel.Function && slices.Equal(m.Kernel.Constants, like.Kernel.Constants); !same || !ok {
			kernel = r.kernel(m.Kernel)
			if same {
				r.kernels[like] = kernel
			}
		}
		r.replace(gr, m, d, form, kernel, at)
	}
	if len(r.fused) == 0 {
		return false
	}
	out := r.g.Nodes[:0]
	r.carried = make([]*command, 0, len(r.cmds))
	fenced := false // see put
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
	r.room.fused = r.fused
	r.fuser.flow, r.fuser.spare = r.flow.Replace(r.fused, r.spare), r.flow
	if r.fuser.flow == nil {
		r.fuser.flow = dataflow.Build(r.fuser.ctx, r.g)
	}
	return true
}

// byGain sorts the groups by gain, then by their commands. There are few different verdicts and each
// has one gain, so groups are counted by verdict instead of compared.
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
		v.count = at // from here on, the position of the verdict's next group
		at += n
	}
	out := slices.Grow(r.sorted[:0], len(r.groups))[:len(r.groups)]
	for k := range r.groups {
		v := r.groups[k].v
		out[v.count] = r.groups[k]
		v.count++
	}
	for _, v := range vs {
		v.count = 0
	}
	compare := func(a, b group) int {
		if a.list[0] != b.list[0] {
			return cmp.Compare(a.list[0], b.list[0])
		}
		return slices.Compare(a.members(), b.members())
	}
	for _, x := range same {
		if gs := out[x.from:x.to]; !slices.IsSortedFunc(gs, compare) {
			slices.SortFunc(gs, compare)
		}
	}
	r.groups, r.sorted = out, r.groups[:0]
}

// put appends a node. Of several barriers without a command between them it keeps only the first. fenced, and the
// result, say whether the last node, apart from groups, is a barrier.
func put(out []ir.Node, n ir.Node, fenced bool) ([]ir.Node, bool) {
	switch n.(type) {
	case *ir.Barrier:
		if fenced {
			return out, true
		}
		return append(out, n), true
	case *ir.GroupBegin, *ir.GroupEnd:
		return append(out, n), fenced
	}
	return append(out, n), false
}

// sequence is a fused dispatch with its barriers, in the place of one node.
type sequence struct {
	*ir.Barrier   // nil; embedded so that sequence implements ir.Node
	cmd           *command
	before, after bool
}

// are reports whether the commands are still bound to these instances.
func (r *round) are(members []int32, ins []*decl.Instance) bool {
	for k, i := range members {
		same := false
		switch c := r.cmds[i]; n := c.node.(type) {
		case *ir.Copy:
			same = ins[k].Decl == c.in.Decl && ins[k].Views[isel.CopySource].Equal(n.Src) && ins[k].Views[isel.CopyResult].Equal(n.Dst)
		case *ir.Dispatch:
			same = c.in == ins[k] || c.form != nil && ins[k].Dispatch == n
		}
		if !same {
			return false
		}
	}
	return true
}

// replace puts dispatch d where member `at` stands. d is of match m or of a similar group's match, and form
// is its form, if known.
func (r *round) replace(gr *group, m *isel.Match, like *ir.Dispatch, form *decl.Form, kernel ir.KernelID, at int32) {
	d := like
	if form == nil {
		d = r.dispatches.One()
		*d = *like
	}
	d.Kernel = kernel
	d.ID = r.flow.Commands[gr.members()[gr.n-1]].Num()
	n := 0
	unrounded := m.Unrounded > 0
	var ops [maxMembers]string
	for k, i := range gr.members() {
		from, op, label := provenance(r.flow.Commands[i])
		n += max(len(from), 1)
		ops[k] = op
		if label != "" {
			d.Label = label
		}
		unrounded = unrounded || r.cmds[i].unrounded
	}
	d.From = r.froms.Take(n)[:0]
	for _, i := range gr.members() {
		c := r.flow.Commands[i]
		if from, _, _ := provenance(c); len(from) > 0 {
			d.From = append(d.From, from...)
		} else {
			id := c.(ir.Command).Num()
			d.From = append(d.From, id)
		}
	}
	slices.Sort(d.From)
	d.Op = gr.v.op(ops)
	if d.Op == "" && m.Kernel.Library.Kind == ir.Generated {
		d.Op = "elementwise" // a generated kernel's function is its whole text, too long for a name
	}
	if form == nil && r.declared != nil {
		form = r.declared.Form(d)
	}
	s := r.sequences.One()
	if form != nil {
		d.Effects = r.declared.EffectsOf(form, d)
		s.cmd = r.placed(d, form)
	} else {
		if in, err := r.o.Library.Bind(r.g, d); err == nil {
			if e, err := in.Effects(); err == nil {
				d.Effects = e
			}
		}
		s.cmd = r.bind(d, -1)
	}
	s.cmd.unrounded = unrounded
	s.before, s.after = r.barriers(gr, at)
	for _, i := range gr.members() {
		r.took[i] = true
		r.cmds[i].gone = true
		r.cur[r.at[i]] = nil
	}
	r.cur[r.at[at]] = s
	r.fused = append(r.fused, dataflow.Replacement{Members: gr.members(), At: at, Command: d})
	before := ""
	if x, ok := r.flow.Commands[gr.members()[0]].(*ir.Dispatch); ok && gr.n == 1 && len(d.From) == 1 {
		before = r.g.Kernels[x.Kernel].Name
	}
	r.done = append(r.done, done{s.cmd, m.Kernel.Name, before, m.Unrounded})
}

// provenance returns the recorded commands that n stands for (none if n is itself recorded), its operation and
// its label.
func provenance(n ir.Node) (from []ir.ID, op, label string) {
	switch n := n.(type) {
	case *ir.Dispatch:
		from, op, label = n.From, n.Op, n.Label
	case *ir.Copy:
		from, op, label = n.From, "copy", n.Label
	}
	return from, op, label
}

// kernelNames finds the kernels of a graph by function, and finds unused names.
type kernelNames struct {
	seen  int // the number of kernels of the graph that have been entered
	names map[string]bool
	of    map[string][]ir.KernelID // by function
	next  map[string]int           // by name: the next number to append
}

// kernel returns the graph's kernel that equals k; if there is none, it adds k under an unused name.
func (r *round) kernel(k ir.Kernel) ir.KernelID {
	k.Library = r.library(&k)
	t := &r.named
	if t.names == nil {
		t.names, t.of, t.next = map[string]bool{}, map[string][]ir.KernelID{}, map[string]int{}
	}
	know := func() {
		for ; t.seen < len(r.g.Kernels); t.seen++ {
			x := &r.g.Kernels[t.seen]
			t.names[x.Name] = true
			t.of[x.Function] = append(t.of[x.Function], ir.KernelID(t.seen))
		}
	}
	know()
	for _, i := range t.of[k.Function] {
		x := &r.g.Kernels[i]
		if x.Library == k.Library && slices.Equal(x.Args, k.Args) &&
			slices.EqualFunc(x.Constants, k.Constants, func(a, b ir.FunctionConstant) bool {
				return a.Index == b.Index && a.Type == b.Type && a.Bits == b.Bits
			}) {
			return i
		}
	}
	base := k.Name // the function, or a stand-in for a generated kernel's text
	for n := max(2, t.next[base]); t.names[k.Name]; n++ {
		k.Name = fmt.Sprintf("%s_%d", base, n)
		t.next[base] = n + 1
	}
	r.g.Kernels = append(r.g.Kernels, k)
	return ir.KernelID(len(r.g.Kernels) - 1)
}

// library returns where the code of a kernel comes from: the file from which other kernels of the same source
// come, if the graph has such kernels.
func (r *round) library(k *ir.Kernel) ir.Library {
	if file, ok := msl.Registered(k); ok {
		for i := range r.g.Kernels {
			x := &r.g.Kernels[i]
			if from, ok := msl.Registered(x); ok && from == file {
				return x.Library
			}
		}
	}
	return k.Library
}
