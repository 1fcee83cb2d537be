package passes

import (
	"context"
	"math"
	"slices"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/collections/subsequence"
	"github.com/mlxc/mlxc/ir"
)

type scheduleOptions struct{ model cost.Model }

var schedulePass = New(Pass{Name: "schedule", Summary: "as few epochs as conflicts allow, then the least modelled time", Default: true}, schedule,
	Modelled(cost.DefaultChip, chipHelp, func(o *scheduleOptions) *cost.Model { return &o.model }))

// schedule orders the commands of each command buffer into as few epochs as their conflicts allow,
// which is the length of the longest chain of conflicts. Then it lowers the modelled time (package
// cost) without adding an epoch.
//
// A command of a longest chain can run in one epoch only. Other commands have a choice. If the
// recorded epochs are as few, each command begins in its recorded one. Otherwise it begins near
// where it was recorded: in the epoch of the last command of a longest chain recorded before it, or
// in the earliest epoch after that one that its conflicts allow. So commands without a reason to
// move stay near their neighbours, and results live no longer than in the recording. Then commands
// that have a choice move, each to a nearby epoch, if that lowers the total time of the two epochs:
// next to a large kernel that leaves cores or bandwidth idle, or out of an epoch that is full.
// Within an epoch, long commands come first, so that none of them runs on alone at its end.
//
// No command leaves its command buffer, and a command of unknown effects neither moves nor is
// crossed. In a graph that commits divide, the epochs of each command buffer are as few as its own
// conflicts allow. (Joining command buffers would be the decision of another pass; split places
// them after this one.)
//
// Equal graphs give equal schedules.
func schedule(ctx context.Context, state *State, o scheduleOptions) error {
	g := state.Graph
	t := state.hazards(ctx)
	s := newScheduler(g, t, o.model)
	s.recorded = recordedEpochs(g, t.Len())
	l := relist(g, t.Len())
	order := make([]int32, 0, t.Len())
	for _, b := range commandBuffers(g) {
		n := len(order)
		order = s.buffer(b.first, b.end, order)
		epoch := int32(0)
		for _, i := range order[n:] {
			l.command(i, t.Node(int(i)), s.epoch[i] != epoch)
			epoch = s.epoch[i]
		}
		for _, c := range b.commits {
			l.commit(c)
		}
	}
	g.Nodes = l.finish()
	state.changed = ir.ListChange
	if !state.silent() {
		s.report(order, state)
	}
	state.reordered(t, order)
	return nil
}

func (s *scheduler) report(order []int32, state *State) {
	if len(order) == 0 {
		return
	}
	stays := subsequence.Increasing(order)
	for k, i := range order {
		n := s.t.Node(int(i))
		switch {
		case s.t.Pillar(int(i)):
			state.Not(n, "nothing moves across it: its effects are unknown")
		case !stays[k]:
			state.Did(n, "moved into epoch %d of its command buffer", s.epoch[i])
		}
	}
	if s.unsettled {
		state.Not(s.t.Node(int(order[len(order)-1])), "others might still gain by moving: the bound on how many are looked at was reached")
	}
	state.Did(s.t.Node(int(order[len(order)-1])), "%d epochs, the fewest that conflicts allow; modelled on %s: %.1f µs for the epochs", s.epochs, s.model.Name, s.time.Microseconds())
}

// scheduler assigns an epoch to every command, one command buffer after another.
type scheduler struct {
	t         *hazard.Table
	model     cost.Model
	work      []cost.Work
	order     *hazard.Order
	first     []int32 // by node: the nodes that it must follow are prior[first[i]:first[i+1]]
	prior     []int32
	epoch     []int32 // by node, counted from the start of its command buffer
	height    []int32 // by node: how many epochs of its command buffer must follow its own
	epochs    int
	time      cost.Seconds
	recorded  []int32 // by command: its epoch in the list, counted from the start of its command buffer
	unsettled bool    // commands that might gain by moving were not tried again
}

func newScheduler(g *ir.Graph, t *hazard.Table, m cost.Model) *scheduler {
	o := t.Order()
	s := &scheduler{t: t, model: m, work: make([]cost.Work, t.Len()), order: o}
	e := m.For(g)
	for i := range s.work {
		s.work[i] = e.Work(t.Node(i))
	}
	s.epoch, s.height = make([]int32, o.Nodes), make([]int32, o.Nodes)
	s.first, s.prior = make([]int32, o.Nodes+1), make([]int32, len(o.Next))
	for i, w := range o.Waits {
		s.first[i+1] = s.first[i] + w
	}
	at := slices.Clone(s.first)
	for i := range int32(o.Nodes) {
		for _, j := range o.Successors(i) {
			s.prior[at[j]] = i
			at[j]++
		}
	}
	return s
}

func (s *scheduler) priors(i int32) []int32 { return s.prior[s.first[i]:s.first[i+1]] }

func (s *scheduler) isJoin(i int32) bool { return int(i) >= s.t.Len() }

// buffer schedules commands [first, end) and appends them to out in their new
// order.
func (s *scheduler) buffer(first, end int32, out []int32) []int32 {
	if first == end {
		return out
	}
	sorted := s.sorted(first, end)
	// These are the longest chains to and from each node. A join takes no epoch: its epoch is that
	// of the latest command before it, and its height is the max height of the commands behind it.
	depth := int32(0)
	for _, i := range sorted {
		s.epoch[i] = s.earliest(i, first)
		if !s.isJoin(i) {
			depth = max(depth, s.epoch[i]+1)
		}
	}
	for k := len(sorted) - 1; k >= 0; k-- {
		i := sorted[k]
		h := int32(0)
		for _, j := range s.order.Successors(i) {
			if s.inside(j, end) {
				h = max(h, s.height[j])
				if !s.isJoin(j) {
					h = max(h, s.height[j]+1)
				}
			}
		}
		s.height[i] = h
	}
	// Place each command near where it was recorded, within the epochs that its conflicts allow.
	// INVARIANT: epoch ≤ depth − 1 − height, because this holds for the nodes for which it waits,
	// whose height is larger.
	home := make([]int32, end-first)
	if recorded := s.recorded[first:end]; recorded[len(recorded)-1] == depth-1 && s.possible(first, end) {
		copy(home, recorded)
	} else {
		front := int32(0)
		for i := first; i < end; i++ {
			if s.epoch[i]+s.height[i] == depth-1 { // it is on a longest chain
				front = max(front, s.epoch[i])
			}
			home[i-first] = min(front, depth-1-s.height[i])
		}
	}
	for _, i := range sorted {
		s.epoch[i] = s.earliest(i, first)
		if !s.isJoin(i) {
			s.epoch[i] = max(s.epoch[i], home[i-first])
		}
	}
	b := s.balance(first, end, depth, home)
	s.unsettled = s.unsettled || b.unsettled
	s.epochs += int(depth)
	for k := range b.load {
		s.time += s.model.Of(b.load[k])
	}
	for _, i := range sorted {
		if s.isJoin(i) {
			s.epoch[i] = -1 // to later command buffers it belongs to another command buffer
		}
	}
	return s.list(first, end, depth, out)
}

// recordedEpochs returns the epoch of each command in the list, counted from the start of its
// command buffer. In a serial graph each command has an epoch of its own.
func recordedEpochs(g *ir.Graph, commands int) []int32 {
	out := make([]int32, 0, commands)
	epoch, any := int32(0), false // any: the current epoch has a command
	for _, n := range g.Nodes {
		switch n.(type) {
		case *ir.Barrier:
			if any {
				epoch, any = epoch+1, false
			}
		case *ir.Commit:
			epoch, any = 0, false
		case ir.Command:
			out = append(out, epoch)
			any = true
		}
	}
	return out
}

// possible reports whether the recorded epochs of commands [first, end) put each command after the
// commands for which it waits.
func (s *scheduler) possible(first, end int32) bool {
	for i := first; i < end; i++ {
		if s.recorded[i]+s.height[i] > s.recorded[end-1] {
			return false
		}
		for _, j := range s.priors(i) {
			// A command that waits for a join need not be checked here, because it is placed after
			// the join anyway.
			if !s.isJoin(j) && j >= first && s.recorded[j] >= s.recorded[i] {
				return false
			}
		}
	}
	return true
}

// sorted returns commands [first, end), and the joins among them, in an order in which each stands
// after the nodes for which it waits: commands in recorded order, joins as early as possible.
func (s *scheduler) sorted(first, end int32) []int32 {
	out := make([]int32, 0, end-first)
	for i := first; i < end; i++ {
		out = append(out, i)
		s.joins(i, &out)
	}
	return out
}

// joins appends the joins that now wait for no other node than node i.
func (s *scheduler) joins(i int32, out *[]int32) {
	for _, j := range s.order.Successors(i) {
		if s.isJoin(j) {
			// The successors of a join are joins made later, and commands recorded after all
			// commands for which it waits.
			if s.order.Waits[j]--; s.order.Waits[j] == 0 {
				*out = append(*out, j)
				s.joins(j, out)
			}
		}
	}
}

// inside reports whether node j is in the command buffer that ends at end. A join counts as inside.
// It may reach into the next command buffer, where it delays nothing.
func (s *scheduler) inside(j, end int32) bool { return s.isJoin(j) || j < end }

// earliest returns the first epoch in which node i can be, given the epochs of the nodes of its
// command buffer for which it waits.
func (s *scheduler) earliest(i, first int32) int32 {
	e := int32(0)
	if s.isJoin(i) {
		e = -1
	}
	for _, j := range s.priors(i) {
		switch {
		case s.isJoin(i) && s.isJoin(j):
			e = max(e, s.epoch[j])
		case s.isJoin(i):
			if j >= first {
				e = max(e, s.epoch[j])
			}
		case s.isJoin(j) || j >= first:
			e = max(e, s.epoch[j]+1)
		}
	}
	return e
}

// list appends the commands by epoch. Within an epoch, commands with longer times come first, and
// commands with about the same time stay in recorded order.
func (s *scheduler) list(first, end, depth int32, out []int32) []int32 {
	at := make([]int32, depth+1)
	for i := first; i < end; i++ {
		at[s.epoch[i]+1]++
	}
	for e := range depth {
		at[e+1] += at[e]
	}
	n := len(out)
	out = append(out, make([]int32, end-first)...)
	place := slices.Clone(at)
	for i := first; i < end; i++ {
		out[n+int(place[s.epoch[i]])] = i
		place[s.epoch[i]]++
	}
	for e := range depth {
		members := out[n+int(at[e]) : n+int(at[e+1])]
		slices.SortStableFunc(members, func(a, b int32) int { return s.magnitude(b) - s.magnitude(a) })
	}
	return out
}

// magnitude is the binary logarithm of a command's time.
func (s *scheduler) magnitude(i int32) int {
	_, e := math.Frexp(float64(s.work[i].Alone))
	return e
}
