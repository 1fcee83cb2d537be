package fusion

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// vertical tries each command together with producers of what it reads, and with their producers.
func (r *round) vertical() {
	r.vertically.of = take(&r.room.vertically, len(r.cmds))
	for i, c := range r.cmds {
		if c.shape == nil || !r.near[i] || r.again(&r.vertically, int32(i)) {
			continue
		}
		r.record(&r.vertically, int32(i))
		r.stack = r.stack[:0]
		for _, l := range r.linksOf(int32(i)) {
			if p := l.command; p >= 0 && r.within(p, int32(i)) && !slices.Contains(r.stack, p) {
				r.stack = append(r.stack, p)
			}
		}
		if n := len(r.stack); n > 0 {
			interrupt.Poll(r.ctx)
			r.left = maxLibraryTries
			r.grow([maxMembers]int32{int32(i)}, 1, 0, n)
		}
		if r.m.Generate {
			r.greedy(int32(i))
		}
		r.recorded(r.siblings(int32(i)))
	}
}

// siblings tries command i with all producers of what it reads, if these read one value, and another command that reads that
// value too: of three products of one input, i may take only two further. It returns how many commands after i that depends
// on.
func (r *round) siblings(i int32) (ahead int32) {
	list, n := [maxMembers]int32{i}, 1
	for _, l := range r.linksOf(i) {
		p := l.command
		if p < 0 || slices.Contains(list[:n], p) {
			continue
		}
		if n == maxMembers-1 || !r.within(p, i) || r.at[i]-r.at[p] > maxSpan ||
			n > 1 && !(r.m.Combines(true, r.cmds[list[1]].in.Decl, r.cmds[p].in.Decl) && r.shares(int(list[1]), int(p))) {
			return 0
		}
		list[n] = p
		n++
	}
	if n < 3 {
		return 0
	}
	first := slices.Min(list[:n])
	for j := first + 1; int(j) < len(r.cmds) && j <= i+maxWindow && r.buffer[j] == r.buffer[i]; j++ {
		c := r.cmds[j]
		if c.shape == nil || slices.Contains(list[:n], j) || r.at[j]-r.at[first] > maxSpan ||
			!r.m.Combines(true, r.cmds[list[1]].in.Decl, c.in.Decl) || !r.shares(int(list[1]), int(j)) {
			continue
		}
		list[n] = j
		r.try(list, n+1)
	}
	return maxWindow
}

// singly tries each dispatch by itself, which another kernel may compute too.
func (r *round) singly() {
	r.vertically.of = take(&r.room.vertically, len(r.cmds))
	for i, c := range r.cmds {
		if c.shape == nil || !r.o.Library.Several(c.in.Decl) || r.again(&r.vertically, int32(i)) {
			continue
		}
		interrupt.Poll(r.ctx)
		r.record(&r.vertically, int32(i))
		r.try([maxMembers]int32{int32(i)}, 1)
		r.recorded(0)
	}
}

// within reports whether a group may hold both p and the later command i. It records that the search depends on p.
func (r *round) within(p, i int32) bool {
	r.finding.reached(p)
	return r.buffer[p] == r.buffer[i]
}

// grow tries every set that extends the first n of members (a command, followed by producers) by some of the
// producers in r.stack[lo:hi] and by theirs, as long as a kernel may match. A producer that was left out
// is not added later.
func (r *round) grow(members [maxMembers]int32, n, lo, hi int) {
	if n > 1 {
		if r.left--; !r.try(members, n) || n == maxMembers {
			return
		}
	}
	for k := lo; k < hi && r.left > 0; k++ {
		p := r.stack[k]
		if r.at[members[0]]-r.at[p] > maxSpan {
			continue
		}
		rest := len(r.stack)
		r.stack = append(r.stack, r.stack[k+1:hi]...)
		for _, l := range r.linksOf(p) {
			q := l.command
			if q >= 0 && r.within(q, p) && !slices.Contains(members[:n], q) &&
				!slices.Contains(r.stack[lo:hi], q) && !slices.Contains(r.stack[rest:], q) {
				r.stack = append(r.stack, q)
			}
		}
		members[n] = p
		r.grow(members, n+1, rest, len(r.stack))
		r.stack = r.stack[:rest]
	}
}

// horizontal tries pairs and triples of nearby commands: commands that read the same value, or whose common
// kernel shares no value.
func (r *round) horizontal() {
	n := len(r.cmds)
	fresh := n // the next fresh command
	freshAt := take(&r.room.fresh, n)
	for i := n - 1; i >= 0; i-- {
		if r.cmds[i].fresh {
			fresh = i
		}
		freshAt[i] = int32(fresh)
	}
	r.horizontally.of = take(&r.room.horizontally, n)
	var sharing, others []int32
	for i, c := range r.cmds {
		if c.shape == nil || int(freshAt[i]) > i+maxWindow {
			continue
		}
		if !r.m.Combines(true, c.in.Decl) || r.again(&r.horizontally, int32(i)) {
			continue
		}
		r.record(&r.horizontally, int32(i))
		sharing, others = sharing[:0], others[:0]
		for j := i + 1; j < n && j <= i+maxWindow && r.buffer[j] == r.buffer[i]; j++ {
			d := r.cmds[j]
			if d.shape == nil {
				continue
			}
			// A third command of j's kind may complete the pattern of a kernel.
			x, y := c.in.Decl, d.in.Decl
			switch {
			case r.shares(i, j):
				if r.m.Combines(true, x, y) || r.m.Combines(true, x, y, y) {
					sharing = append(sharing, int32(j))
				}
			case r.m.Combines(false, x, y) || r.m.Combines(false, x, y, y):
				others = append(others, int32(j))
			}
		}
		together := len(sharing[:min(len(sharing), 3)])
		partners := append(sharing[:together], others[:min(len(others), 2)]...)
		for n, j := range partners {
			if r.m.Combines(n < together, c.in.Decl, r.cmds[j].in.Decl) {
				r.try([maxMembers]int32{int32(i), j}, 2)
			}
			for k, l := range partners[n+1:] {
				if r.m.Combines(n+1+k < together, c.in.Decl, r.cmds[j].in.Decl, r.cmds[l].in.Decl) {
					r.try([maxMembers]int32{int32(i), j, l}, 3)
				}
			}
		}
		r.recorded(maxWindow)
	}
}

// shares reports whether two commands read the same value, not counting
// weights.
func (r *round) shares(i, j int) bool {
	for _, u := range r.values[r.linkAt[i]:r.linkAt[i+1]] {
		if u != 0 && slices.Contains(r.values[r.linkAt[j]:r.linkAt[j+1]], u) {
			return true
		}
	}
	return false
}

// sketch appends what the prefilter result of a group depends on, the first part of its verdict's key. It returns
// false if a member reads only a part of what another member wrote, or more than that.
func (r *round) sketch(b []byte, members []int32) ([]byte, bool) {
	for _, i := range members {
		c := r.cmds[i]
		b = append(b, byte(c.kind), byte(c.kind>>8))
		uses := r.flow.Reads(int(i))
		for k, l := range r.linksOf(i) {
			if l.command >= 0 {
				if m := slices.Index(members, l.command); m >= 0 {
					b = append(b, byte(k), byte(m), byte(l.write))
				}
				continue
			}
			if us := uses[k].Sources; len(us) > 0 && us[len(us)-1].Command >= members[0] {
				for _, s := range us {
					if slices.Contains(members, s.Command) {
						return b, false
					}
				}
			}
		}
		b = append(b, 255)
		for k := range c.writes {
			if r.outside(i, k, members) {
				b = append(b, byte(k))
			}
		}
		b = append(b, 255)
	}
	return b, true
}

// placed is a place in memory that several views of a group share, as in isel's layout.
type placed struct {
	root    ir.MemID
	at      ir.Affine
	lo, end int64
}

// layout appends, after the sketch, what else the verdict on a group depends on: the forms of its members and the
// relative positions of their views. It returns false if a member's form belongs to no other command.
func (r *round) layout(b []byte, members []int32) ([]byte, bool) {
	affine := func(a ir.Affine) {
		b = binary.LittleEndian.AppendUint64(b, uint64(a.Const))
		for _, t := range a.Terms() {
			b = binary.LittleEndian.AppendUint64(append(b, 1, byte(t.Param), byte(t.Param>>8)), uint64(t.Coeff))
		}
		b = append(b, 0)
	}
	r.slots = r.slots[:0]
	for _, i := range members {
		c := r.cmds[i]
		if c.id == 0 {
			return b, false
		}
		b = binary.LittleEndian.AppendUint32(b, c.id)
	next:
		for j := range c.spans {
			if c.spans[j].Root == ir.NoMem {
				continue
			}
			x := r.span(c, j)
			for k := range r.slots {
				s := &r.slots[k]
				if s.root != x.Root || !(s.lo < x.End && x.Lo < s.end || s.at.Equal(x.At)) {
					continue
				}
				s.lo, s.end = min(s.lo, x.Lo), max(s.end, x.End)
				b = append(b, byte(k))
				affine(x.At.Sub(s.at))
				continue next
			}
			b = append(b, 255)
			r.slots = append(r.slots, placed{x.Root, x.At, x.Lo, x.End})
			m := &r.g.Memories[x.Root]
			if m.Kind == ir.Weight && m.Init.Kind == ir.InitFill {
				b = append(append(b, 1), m.Init.Pattern[:]...)
				affine(x.At)
			}
			b = append(b, 0)
		}
	}
	return b, len(r.slots) < 255
}

// outside reports whether write k of command i is seen by anything other than members.
func (r *round) outside(i int32, k int, members []int32) bool {
	def := &r.flow.Writes(int(i))[k]
	if def.Final || len(def.Readers) > 64 {
		return true // more readers than a group can have
	}
	for _, u := range def.Readers {
		if !slices.Contains(members, u.Command) {
			return true
		}
	}
	return false
}

// describe builds the description of the group for isel.
func (r *round) describe(members []int32) *isel.Group {
	gr := &isel.Group{Graph: r.g, Members: make([]*decl.Instance, 0, len(members)), Spans: make([][]isel.Span, 0, len(members)), Source: map[isel.Operand]isel.Operand{}}
	for m, i := range members {
		c := r.cmds[i]
		gr.Members = append(gr.Members, r.instance(c))
		gr.Spans = append(gr.Spans, r.spansOf(c))
		if r.o.Unrounded {
			gr.Unrounded = append(gr.Unrounded, c.unrounded)
		}
		for k, l := range r.linksOf(i) {
			if l.command < 0 {
				continue
			}
			if p := slices.Index(members, l.command); p >= 0 {
				gr.Source[isel.Operand{Member: m, Arg: c.reads[k]}] = isel.Operand{Member: p, Arg: r.cmds[l.command].writes[l.write]}
			}
		}
		for k, j := range c.writes {
			o := isel.Operand{Member: m, Arg: j}
			if r.outside(i, k, members) {
				gr.Results = append(gr.Results, o)
			} else {
				gr.Spare = append(gr.Spare, o)
			}
		}
	}
	return gr
}

// try asks the library for a kernel that computes the group and keeps the group if fusing it gains. It reports
// whether a larger group with the same last command may match a kernel.
func (r *round) try(list [maxMembers]int32, n int) (grow bool) {
	members := list[:n]
	r.tried++
	slices.Sort(members)
	var ok bool
	if r.key, ok = r.sketch(r.key[:0], members); !ok {
		return true // adding the command between them may make it possible
	}
	gr := r.describe(members)
	look := r.m.Prefilter(gr)
	if !look.Match && !look.Last || !r.first && !slices.ContainsFunc(members, func(i int32) bool { return r.cmds[i].fresh }) {
		return look.Grow
	}
	r.consider(group{list: list, n: int32(n)}, look, gr)
	return look.Grow
}

// verdict is the decision on a group, shared by all similar groups: those with the same kernels, sizes and data
// flow, and with views in the same relative positions.
type verdict struct {
	none      bool            // the group is not fused, and there is nothing to report
	hit       *isel.Candidate // nil: no kernel computes the group
	text      string          // why no kernel computes it, if that is worth a remark
	always    bool            // text is worth a remark on any group, not only on a pair with data flow
	linked    bool            // there is data flow in the group
	elsewhere int8            // cached: 1 if a kernel would compute the group if nothing else read the first's result, −1 if not
	gain      cost.Seconds
	kept      []kept
	count     int // used by byGain
	ops       [maxMembers]string
	joined    string // cached result of op, if named
	named     bool
}

// kept is a member's access that the fused dispatch makes too: a read that no member's write feeds, or the write
// of a result.
type kept struct {
	member, index int // member, and index in its effects
	write         bool
}

// op returns the operation of the fused dispatch: the members' operations joined by +, without repetitions.
func (v *verdict) op(ops [maxMembers]string) string {
	if invariants.Caches && v.named && v.ops == ops {
		return v.joined
	}
	var out []string
	for _, op := range ops {
		for _, x := range strings.Split(op, "+") {
			if x != "" && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	v.ops, v.joined, v.named = ops, strings.Join(out, "+"), true
	return v.joined
}

// mostSpare is how many operations a kernel that also makes a result which nobody reads may have, for each of the group's. Terms may be
// written with some more.
const mostSpare = 1.25

// judge finds the verdict on a group.
func (r *round) judge(members []int32, gr *isel.Group, look isel.Prefilter) *verdict {
	r.judged++
	v := &verdict{linked: len(gr.Source) > 0}
	if !contributing(gr) {
		v.none = true
		return v
	}
	if !look.Match {
		return v
	}
	var err error
	if v.hit, err = r.m.Find(gr); v.hit == nil {
		v.none = true
		var miss *isel.NearMiss
		if errors.As(err, &miss) {
			v.none, v.text = false, err.Error()
		}
		return v
	}
	like := v.hit.Like
	d := like.Dispatch()
	if n := int64(d.Threadgroup[0]) * int64(d.Threadgroup[1]) * int64(d.Threadgroup[2]); n > r.o.MaxThreads {
		v.hit = nil
		v.text = fmt.Sprintf("%s would run %d threads a threadgroup, its pipeline has at most %d", ir.Shorten(like.Kernel.Function), n, r.o.MaxThreads)
		v.always = true
		return v
	}
	before, longest, operations := cost.Seconds(0), cost.Seconds(0), 0.0
	for m, i := range members {
		c := r.cmds[i]
		before += c.work.Alone
		longest = max(longest, c.work.Alone)
		operations += c.work.Operations
		for k, j := range c.reads {
			if _, ok := gr.Source[isel.Operand{Member: m, Arg: j}]; !ok {
				v.kept = append(v.kept, kept{m, k, false})
			}
		}
		for k, j := range c.writes {
			if slices.Contains(like.Results, isel.Operand{Member: m, Arg: j}) {
				v.kept = append(v.kept, kept{m, k, true})
			}
		}
	}
	after := cost.Seconds(0)
	if e, err := like.Instance.Effects(); err == nil {
		// A result that nobody reads should be one that the kernel has at hand. A product that it would make once more for that is waste.
		spare := slices.ContainsFunc(like.Results, func(o isel.Operand) bool { return slices.Contains(gr.Spare, o) })
		if spare && r.model.Instance(like.Instance, e).Operations > mostSpare*operations {
			v.none = true
			return v
		}
		// The fused dispatch counts the operations of the group, because it computes the same however its terms
		// are written.
		after = r.model.Fused(like.Instance, e, operations, longest).Alone
	}
	if v.gain = before - after + r.model.Barrier*cost.Seconds(depth(gr)-1); v.gain <= 0 {
		v.none = true
	}
	return v
}

// consider finds the verdict on a group that passed the prefilter and, if fusing gains, keeps the
// group. description may be nil; it is built only if no verdict is cached.
func (r *round) consider(gr group, look isel.Prefilter, description *isel.Group) {
	members := gr.members()
	if r.o.Unrounded {
		for _, i := range members {
			flag := byte(0)
			if r.cmds[i].unrounded {
				flag = 1
			}
			r.key = append(r.key, flag)
		}
	}
	// The verdict also depends on the prefilter result, because tryGenerated considers groups that match no
	// library kernel.
	flag := byte(0)
	if look.Match {
		flag = 1
	}
	r.key = append(r.key, flag)
	var known bool
	if r.key, known = r.layout(r.key, members); invariants.Caches && known {
		gr.v = r.verdicts[string(r.key)]
	}
	if gr.v == nil {
		key := string(r.key)
		if description == nil {
			description = r.describe(members)
		}
		gr.v = r.judge(members, description, look)
		if known {
			r.verdicts[key] = gr.v
		}
	}
	s := r.finding
	s.found = append(s.found, found{gr, look})
	r.settle(&s.found[len(s.found)-1].group)
}

// settle keeps a group with a known verdict if a place for its dispatch is found.
func (r *round) settle(gr *group) {
	v, members := gr.v, gr.members()
	gr.at = -1
	if v.none {
		return
	}
	first, root := members[0], members[len(members)-1]
	near := len(members) == 2 && v.linked && !r.cmds[root].missed // a pair that is worth a remark
	switch {
	case v.text != "":
		if near || v.always {
			r.miss(root, first, v.text)
		}
	case v.hit == nil:
		if near {
			r.readElsewhere(v, members)
		}
	case r.standsFor(members) > maxFrom:
		r.cmds[root].stuck = true
		if near {
			r.miss(root, first, fmt.Sprintf("one dispatch would stand for %d commands, more than %d", r.standsFor(members), maxFrom))
		}
	default:
		at, why := r.place(gr)
		if why != nil {
			r.cmds[root].stuck = true
			if near {
				r.miss(root, first, why.String())
			}
			return
		}
		gr.at = at
		r.groups = append(r.groups, *gr)
	}
}

// standsFor returns the number of recorded commands that a dispatch in place of the members stands for.
func (r *round) standsFor(members []int32) (n int) {
	for _, i := range members {
		n += r.cmds[i].recorded()
	}
	return n
}

// contributing reports whether a result of every member is read; dead commands are left to the pass dce.
func contributing(gr *isel.Group) bool {
	var useful [maxMembers]bool
	for _, s := range gr.Source {
		useful[s.Member] = true
	}
	for _, o := range gr.Results {
		useful[o.Member] = true
	}
	return !slices.Contains(useful[:len(gr.Members)], false)
}

// readElsewhere adds a remark on a pair that a kernel would compute if the first's result had no other reader.
func (r *round) readElsewhere(v *verdict, members []int32) {
	if !invariants.Caches || v.elsewhere == 0 {
		gr := r.describe(members)
		alone := *gr
		alone.Results, alone.Spare = nil, nil
		for _, o := range gr.Results {
			if o.Member == 1 {
				alone.Results = append(alone.Results, o)
			}
		}
		v.elsewhere = -1
		if hit, _ := r.m.Find(&alone); hit != nil {
			v.elsewhere = 1
		}
	}
	if v.elsewhere < 0 {
		return
	}
	for _, def := range r.flow.Writes(int(members[0])) {
		if def.Final {
			r.miss(members[1], members[0], "its result is an output or a state")
			return
		}
		for _, u := range def.Readers {
			if !slices.Contains(members, u.Command) {
				id := r.flow.Commands[u.Command].Num()
				r.miss(members[1], members[0], "intermediate read by "+id.String())
				return
			}
		}
	}
}

// miss records why command i was not fused with an earlier one.
func (r *round) miss(i, with int32, text string) {
	if c := r.cmds[i]; !c.missed {
		c.missed = true
		r.missed = append(r.missed, miss{c, r.cmds[with], text})
	}
}

// depth is the length of the longest chain of data flow in a group.
func depth(gr *isel.Group) int {
	var level [maxMembers]int
	deepest := 1
	for m := range gr.Members {
		level[m] = 1
		for o, s := range gr.Source {
			if o.Member == m {
				level[m] = max(level[m], level[s.Member]+1)
			}
		}
		deepest = max(deepest, level[m])
	}
	return deepest
}
