package fusion

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/isel"
	"github.com/mlxc/mlxc/ir"
)

// vertical tries each command with producers of what it reads, and theirs.
func (r *round) vertical() {
	for i, c := range r.cmds {
		if c.in != nil && r.near[i] {
			r.grow([]int{i}, r.producers(nil, i, nil))
		}
	}
}

// producers adds to out the commands that may join a group because command i
// reads exactly what they wrote, without those in skip.
func (r *round) producers(out []int, i int, skip []int) []int {
	for _, l := range r.links[i] {
		p := int(l.command)
		if p >= 0 && r.buffer[p] == r.buffer[i] && !slices.Contains(skip, p) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// grow tries every set that adds to members (a command first, then producers)
// some of the producers in frontier and of theirs, as long as a kernel may come
// of it. A producer that was passed over stays out.
func (r *round) grow(members, frontier []int) {
	if len(members) > 1 && !r.try(members) || len(members) == maxMembers {
		return
	}
	for n, p := range frontier {
		if r.at[members[0]]-r.at[p] > maxSpan {
			continue
		}
		known := slices.Concat(members, frontier)
		rest := r.producers(slices.Clone(frontier[n+1:]), p, known)
		r.grow(append(members[:len(members):len(members)], p), rest)
	}
}

// horizontal tries pairs and triples of commands that stand near one another:
// those that read one value, else those whose common kernel reads none.
func (r *round) horizontal() {
	for i, c := range r.cmds {
		if c.in == nil || !r.m.Combines(true, c.in.Decl) {
			continue
		}
		var sharing, others []int
		for j := i + 1; j < len(r.cmds) && j <= i+maxWindow && r.buffer[j] == r.buffer[i]; j++ {
			d := r.cmds[j]
			if d.in == nil {
				continue
			}
			// A third one of j's kind may be what makes a kernel.
			switch {
			case !r.m.Combines(true, c.in.Decl, d.in.Decl) && !r.m.Combines(true, c.in.Decl, d.in.Decl, d.in.Decl):
			case r.shares(i, j):
				sharing = append(sharing, j)
			case r.m.Combines(false, c.in.Decl, d.in.Decl) || r.m.Combines(false, c.in.Decl, d.in.Decl, d.in.Decl):
				others = append(others, j)
			}
		}
		together := len(sharing[:min(len(sharing), 3)])
		partners := append(sharing[:together], others[:min(len(others), 2)]...)
		for n, j := range partners {
			if r.m.Combines(n < together, c.in.Decl, r.cmds[j].in.Decl) {
				r.try([]int{i, j})
			}
			for k, l := range partners[n+1:] {
				if r.m.Combines(n+1+k < together, c.in.Decl, r.cmds[j].in.Decl, r.cmds[l].in.Decl) {
					r.try([]int{i, j, l})
				}
			}
		}
	}
}

// shares reports whether two commands read the same value, not counting
// weights.
func (r *round) shares(i, j int) bool {
	us, vs := r.flow.Reads(i), r.flow.Reads(j)
	for k := range us {
		u := &us[k]
		if r.g.Memories[u.Region.Mem].Kind == ir.Weight {
			continue
		}
		for l := range vs {
			v := &vs[l]
			if u.Region.Equal(v.Region) && slices.Equal(u.Sources, v.Sources) {
				return true
			}
		}
	}
	return false
}

// sketch writes what the outlook of a group depends on. It says no if a read
// sees a member's write but not exactly it.
func (r *round) sketch(b []byte, members []int) ([]byte, bool) {
	for _, i := range members {
		c := r.cmds[i]
		b = append(b, byte(c.kind), byte(c.kind>>8))
		uses := r.flow.Reads(i)
		for k, l := range r.links[i] {
			if l.command >= 0 {
				if m := slices.Index(members, int(l.command)); m >= 0 {
					b = append(b, byte(k), byte(m), byte(l.write))
				}
				continue
			}
			if us := uses[k].Sources; len(us) > 0 && us[len(us)-1].Command >= int32(members[0]) {
				for _, s := range us {
					if slices.Contains(members, int(s.Command)) {
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

// outside reports whether anybody but members sees write k of command i.
func (r *round) outside(i, k int, members []int) bool {
	def := &r.flow.Writes(i)[k]
	if def.Final || len(def.Readers) > 64 {
		return true // more readers than members have reads
	}
	for _, u := range def.Readers {
		if !slices.Contains(members, int(u.Command)) {
			return true
		}
	}
	return false
}

// describe builds the group that isel looks at.
func (r *round) describe(members []int) *isel.Group {
	gr := &isel.Group{Graph: r.g, Source: map[isel.Operand]isel.Operand{}}
	for m, i := range members {
		c := r.cmds[i]
		gr.Members = append(gr.Members, c.in)
		gr.Spans = append(gr.Spans, c.spans)
		if r.o.Unrounded {
			gr.Unrounded = append(gr.Unrounded, r.unrounded[r.flow.Commands[i]])
		}
		for k, l := range r.links[i] {
			if l.command < 0 {
				continue
			}
			if p := slices.Index(members, int(l.command)); p >= 0 {
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

// try asks the library for the group and keeps it as a candidate if it gains. It
// reports whether a larger group with the same last command may be a kernel's.
func (r *round) try(members []int) (grow bool) {
	var sorted [maxMembers]int
	n := copy(sorted[:], members)
	members = sorted[:n]
	slices.Sort(members)
	var ok bool
	if r.key, ok = r.sketch(r.key[:0], members); !ok {
		return true // with the command in between it may be one
	}
	look, ok := r.outlooks[string(r.key)]
	if !ok {
		look = r.m.Outlook(r.describe(members))
		r.outlooks[string(r.key)] = look
	}
	if !look.Match && !look.Last || !r.first && !slices.ContainsFunc(members, func(i int) bool { return r.fresh[i] }) {
		return look.Grow
	}
	r.consider(slices.Clone(members), look)
	return look.Grow
}

// consider unifies a group that looks like a kernel.
func (r *round) consider(members []int, look isel.Outlook) {
	gr := r.describe(members)
	if !contributing(gr) {
		return
	}
	first, root := members[0], members[len(members)-1]
	near := len(members) == 2 && len(gr.Source) > 0 && !r.cmds[root].missed // worth a remark
	if !look.Match {
		if near {
			r.readElsewhere(gr, members)
		}
		return
	}
	hit, err := r.m.Find(gr)
	if hit == nil {
		var miss *isel.NearMiss
		if near && errors.As(err, &miss) {
			r.miss(root, first, "%v", err)
		}
		return
	}
	d := hit.Like.Dispatch()
	if n := int64(d.Threadgroup[0]) * int64(d.Threadgroup[1]) * int64(d.Threadgroup[2]); n > r.o.MaxThreads {
		r.miss(root, first, "%s would run %d threads a threadgroup, its pipeline has at most %d", hit.Like.Kernel.Function, n, r.o.MaxThreads)
		return
	}
	c := group{members: members, hit: hit, source: gr.Source}
	saved := -r.trafficOf(hit.Like)
	for _, i := range members {
		saved += r.cmds[i].traffic
	}
	if c.gain = r.o.Cost.gain(len(members), depth(gr), saved); c.gain <= 0 {
		return
	}
	if _, why := r.place(&c); why != "" {
		r.stuck[r.cmds[root]] = true
		if near {
			r.miss(root, first, "%s", why)
		}
		return
	}
	r.groups = append(r.groups, c)
}

// contributing reports whether somebody reads a result of each member: what is
// dead is left to pass dce.
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

// trafficOf is what a match moves, in bytes.
func (r *round) trafficOf(m *isel.Match) float64 {
	if t, ok := r.traffic[m]; ok {
		return t
	}
	t := 0.0
	if e, err := m.Instance.Effects(); err == nil {
		t = traffic(r.g, e)
	}
	r.traffic[m] = t
	return t
}

// readElsewhere notes a pair that a kernel would compute if only the result of
// the second were wanted.
func (r *round) readElsewhere(gr *isel.Group, members []int) {
	alone := *gr
	alone.Results, alone.Spare = nil, nil
	for _, o := range gr.Results {
		if o.Member == 1 {
			alone.Results = append(alone.Results, o)
		}
	}
	if hit, _ := r.m.Find(&alone); hit == nil {
		return
	}
	for _, def := range r.flow.Writes(members[0]) {
		if def.Final {
			r.miss(members[1], members[0], "its result is an output or a state")
			return
		}
		for _, u := range def.Readers {
			if !slices.Contains(members, int(u.Command)) {
				id, _ := ir.NodeID(r.flow.Commands[u.Command])
				r.miss(members[1], members[0], "intermediate read by %s", id)
				return
			}
		}
	}
}

// miss notes why command i was not fused with an earlier one.
func (r *round) miss(i, with int, format string, args ...any) {
	if !r.cmds[i].missed {
		r.cmds[i].missed = true
		r.missed = append(r.missed, miss{r.flow.Commands[i], r.flow.Commands[with], fmt.Sprintf(format, args...)})
	}
}

// misses are the remarks on commands that stayed apart, and whose partners did.
func (f *fuser) misses(there map[ir.Node]bool) (out []Remark) {
	for _, m := range f.missed {
		if there[m.node] && there[m.with] {
			id, _ := ir.NodeID(m.with)
			out = append(out, Remark{m.node, false, fmt.Sprintf("not fused with %s: %s", id, m.text)})
		}
	}
	return out
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
