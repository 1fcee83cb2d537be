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
	for i := range r.cmds {
		if r.cmds[i].in != nil {
			r.grow([]int{i}, r.producers(i, nil))
		}
	}
}

// producers lists the commands that may join a group because command i reads
// exactly what they wrote, without those in skip.
func (r *round) producers(i int, skip []int) (out []int) {
	c := &r.cmds[i]
	for k := range c.reads {
		if !r.linked(i, k) {
			continue
		}
		s, _ := r.flow.Reads(i)[k].Single()
		p := int(s.Command)
		if r.cmds[p].buffer == c.buffer && !slices.Contains(skip, p) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// grow tries every set that adds to members some of the producers in frontier
// and of theirs. A producer that was passed over stays out.
func (r *round) grow(members, frontier []int) {
	if len(members) > 1 {
		r.try(members)
	}
	if len(members) == maxMembers {
		return
	}
	for n, p := range frontier {
		if r.cmds[members[0]].at-r.cmds[p].at > maxSpan {
			continue
		}
		known := slices.Concat(members, frontier[:n+1])
		rest := slices.Concat(frontier[n+1:], r.producers(p, slices.Concat(known, frontier[n+1:])))
		r.grow(append(members[:len(members):len(members)], p), rest)
	}
}

// horizontal tries pairs and triples of commands that stand near one another:
// those that read one value, else any whose kernels have a common one.
func (r *round) horizontal() {
	for i := range r.cmds {
		if r.cmds[i].in == nil || !r.m.Combines(r.cmds[i].in.Decl) {
			continue
		}
		var sharing, others []int
		for j := i + 1; j < len(r.cmds) && j <= i+maxWindow && r.cmds[j].buffer == r.cmds[i].buffer; j++ {
			if r.cmds[j].in == nil || !r.m.Combines(r.cmds[j].in.Decl) {
				continue
			}
			if r.shares(i, j) {
				sharing = append(sharing, j)
			} else {
				others = append(others, j)
			}
		}
		partners := append(sharing[:min(len(sharing), 3)], others[:min(len(others), 2)]...)
		for n, j := range partners {
			if r.m.Combines(r.cmds[i].in.Decl, r.cmds[j].in.Decl) {
				r.try([]int{i, j})
			}
			for _, k := range partners[n+1:] {
				if r.m.Combines(r.cmds[i].in.Decl, r.cmds[j].in.Decl, r.cmds[k].in.Decl) {
					r.try([]int{i, j, k})
				}
			}
		}
	}
}

// shares reports whether two commands read the same bytes of the same write.
func (r *round) shares(i, j int) bool {
	for _, u := range r.flow.Reads(i) {
		for _, v := range r.flow.Reads(j) {
			if !u.Region.Equal(v.Region) {
				continue
			}
			a, ok1 := u.Single()
			b, ok2 := v.Single()
			if ok1 && ok2 && a == b || len(u.Sources) == 0 && len(v.Sources) == 0 && r.g.Memories[u.Region.Mem].Kind != ir.Weight {
				return true
			}
		}
	}
	return false
}

// try asks the library for the group and keeps it as a candidate if it gains.
func (r *round) try(members []int) {
	members = slices.Clone(members)
	slices.Sort(members)
	gr, ok := r.describe(members)
	if !ok {
		return
	}
	root := members[len(members)-1]
	hit, err := r.m.Match(gr)
	if hit == nil {
		var near *isel.NearMiss
		switch {
		case len(members) != 2 || r.missed[root] != "":
		case errors.As(err, &near):
			r.missed[root] = fmt.Sprintf("not fused with %s: %v", r.id(members[0]), err)
		case err == nil:
			r.readElsewhere(gr, members)
		}
		return
	}
	d := hit.Dispatch()
	if n := int64(d.Threadgroup[0]) * int64(d.Threadgroup[1]) * int64(d.Threadgroup[2]); n > r.o.MaxThreads {
		r.missed[root] = fmt.Sprintf("not fused with %s: %s would run %d threads a threadgroup, its pipeline has at most %d", r.id(members[0]), hit.Kernel.Function, n, r.o.MaxThreads)
		return
	}
	c := group{members: members, match: hit, source: gr.Source}
	fused, err := hit.Instance.Effects()
	if err != nil {
		return
	}
	effects := make([]*ir.Effects, len(members))
	for m, i := range members {
		effects[m] = r.cmds[i].effects
	}
	if c.gain = r.o.Cost.gain(r.g, effects, depth(gr), fused); c.gain <= 0 {
		return
	}
	if _, why := r.place(&c); why != "" {
		if r.missed[root] == "" {
			r.missed[root] = fmt.Sprintf("not fused with %s into %s: %s", r.id(members[0]), hit.Kernel.Function, why)
		}
		return
	}
	r.groups = append(r.groups, c)
}

// readElsewhere notes a pair that a kernel would compute if only the result of
// the second were wanted.
func (r *round) readElsewhere(gr *isel.Group, members []int) {
	if len(gr.Source) == 0 || len(gr.Results) < 2 {
		return
	}
	alone := *gr
	alone.Results, alone.Spare = nil, nil
	for _, o := range gr.Results {
		if o.Member == 1 {
			alone.Results = append(alone.Results, o)
		}
	}
	hit, _ := r.m.Match(&alone)
	if hit == nil {
		return
	}
	for _, def := range r.flow.Writes(members[0]) {
		if def.Final {
			r.missed[members[1]] = fmt.Sprintf("not fused with %s into %s: the host or the next replay reads its result", r.id(members[0]), hit.Kernel.Function)
			return
		}
		for _, u := range def.Readers {
			if !slices.Contains(members, int(u.Command)) {
				r.missed[members[1]] = fmt.Sprintf("not fused with %s into %s: its result is read by %s too", r.id(members[0]), hit.Kernel.Function, r.id(int(u.Command)))
				return
			}
		}
	}
}

func (r *round) id(i int) ir.ID {
	id, _ := ir.NodeID(r.flow.Commands[i])
	return id
}

// depth is the length of the longest chain of data flow in a group.
func depth(gr *isel.Group) int {
	level := make([]int, len(gr.Members))
	deepest := 1
	for m := range level {
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

// misses are the near misses of the last round, in list order.
func (r *round) misses() (out []Remark) {
	for i, n := range r.flow.Commands {
		if text := r.missed[i]; text != "" {
			out = append(out, Remark{n, false, text})
		}
	}
	return out
}
