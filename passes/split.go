package passes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// maxBuffers is the number of command buffers that a Metal queue holds before it blocks.
const maxBuffers = 64

type splitOptions struct {
	first int     // commands of the first buffer; 0: max(64, 10 %)
	n     int     // buffers
	most  float64 // max seconds of a buffer
	model cost.Model
}

const (
	// automatic is the text of the option first that is stored as 0.
	automatic = "max(64, 10 %)"
	// slowestChip is the chip for which the time of a buffer is bounded. The bound then holds on
	// all others.
	slowestChip = "m1"
)

var splitPass = New(Pass{Name: "split", Summary: "end command buffers early, so that encoding and execution overlap and none runs too long"}, split,
	Parsed("first", automatic, "commands of the first command buffer", func(s string) (int, error) {
		if s == automatic {
			return 0, nil
		}
		return within(1, math.MaxInt32)(s)
	}, func(o *splitOptions) *int { return &o.first }),
	Int("n", 2, 1, maxBuffers, "command buffers, 1 to 64; more where their time asks for it", func(o *splitOptions) *int { return &o.n }),
	Parsed("max-ms", "50", "modelled GPU time of a command buffer, in milliseconds", func(s string) (float64, error) {
		ms, err := strconv.ParseFloat(s, 64)
		if err != nil || !(ms > 0) {
			return 0, errors.New("want a number of milliseconds above 0")
		}
		return ms / 1e3, nil
	}, func(o *splitOptions) *float64 { return &o.most }),
	Modelled(slowestChip, "the chip whose figures are modelled; the slowest, whose bound holds on the others", func(o *splitOptions) *cost.Model { return &o.model }),
)

// split ends command buffers early, so that the GPU begins while the host still encodes (or several
// threads do), and so that no buffer runs so long that the system kills it. There are n buffers,
// the first of max(64, 10 %) commands, the others of equal numbers. Each is cut further where its
// modelled time is above the bound. A recorded commit stays, and replaces a cut near it.
//
// A cut is made between two epochs if such a place is near, and replaces their barrier. Then the
// list ends in a commit, in place of a barrier after the last command, so that the buffers of one
// replay are those of the next.
//
// A barrier orders its own command buffer only, so a cut removes orders: those that the barriers of
// the buffer gave between the two halves. Each cut gets the weakest order that restores them:
//
//   - none, if every conflict across it also crosses another commit that orders;
//   - fence, if the conflicts that it has to order come from the command buffer that it ends (because the
//     commit before that buffer orders too): the end of an encoder and the start of the next one on the
//     same queue;
//   - event, if they come from further back, across a commit that orders nothing, or if the cut ends the
//     list: the next replay may be on another queue, and is encoded after this one was enqueued.
func split(ctx context.Context, state *State, o splitOptions) error {
	g := state.Graph
	s := splitter{splitOptions: o, State: state, g: g, table: hazard.NewTable(ctx, g), time: o.model.AtMost(g)}
	if s.table.Len() == 0 {
		return nil
	}
	s.places()
	s.byNumber()
	s.byTime()
	if !slices.Contains(s.cut, true) {
		s.Not(s.table.Node(0), "%d commands modelled at %.3g ms: one command buffer is enough", s.table.Len(), 1e3*s.total(0, s.table.Len()))
		return nil
	}
	list, ours := s.insert()
	s.order(list, ours)
	g.Nodes = list
	return nil
}

// splitter works on commands by their numbers. Place i is directly before command i.
type splitter struct {
	splitOptions
	*State
	g     *ir.Graph
	table *hazard.Table
	time  *cost.Estimator

	commit  []bool    // by place: a recorded commit stands there
	barrier []bool    // by place: a barrier stands there
	until   []float64 // by place: the seconds of all commands before it
	cut     []bool    // by place: a new commit is made there
	last    bool      // the list ends in a commit
}

// places finds the marks between the commands, and sums their times.
func (s *splitter) places() {
	n := s.table.Len()
	s.commit, s.barrier, s.cut = make([]bool, n+1), make([]bool, n+1), make([]bool, n+1)
	s.until = make([]float64, 1, n+1)
	for _, x := range s.g.Nodes {
		i := len(s.until) - 1
		switch x := x.(type) {
		case *ir.Barrier:
			s.barrier[i] = true
		case *ir.Commit:
			s.commit[i] = true
			s.last = i == n
		case ir.Command:
			s.until = append(s.until, s.until[i]+float64(s.time.Work(x).Alone))
		}
	}
}

func (s *splitter) total(from, to int) float64 { return s.until[to] - s.until[from] }

// boundary reports whether an epoch ends at place i.
func (s *splitter) boundary(i int) bool { return s.barrier[i] || s.commit[i] }

// byNumber cuts off the first buffer and divides the rest.
func (s *splitter) byNumber() {
	n := s.table.Len()
	first := s.first
	if first == 0 {
		first = max(64, (n+9)/10)
	}
	if s.n < 2 || first >= n {
		return
	}
	from, goal := 0, first
	for k := 1; k < s.n && goal < n; k++ {
		next := first + int(int64(n-first)*int64(k)/int64(s.n-1))
		at := s.near(goal, goal-(goal-from+1)/2, goal+min(goal-from, next-goal)/2)
		if at > from {
			s.place(at)
			from = at
		}
		goal = next
	}
}

// near returns the boundary in (lo, hi] that is nearest to goal, or goal if there is none.
func (s *splitter) near(goal, lo, hi int) int {
	for d := 0; goal-d > lo || goal+d <= hi; d++ {
		if i := goal - d; i > lo && i > 0 && s.boundary(i) {
			return i
		}
		if i := goal + d; i <= hi && i < s.table.Len() && s.boundary(i) {
			return i
		}
	}
	return goal
}

// place makes a cut at place i unless a commit stands there.
func (s *splitter) place(i int) {
	if !s.commit[i] {
		s.cut[i] = true
	}
}

// byTime cuts buffers that take too long: before the epoch that exceeds the bound, or inside an
// epoch that exceeds it alone.
func (s *splitter) byTime() {
	n := s.table.Len()
	from, epoch := 0, 0 // the first command of the buffer, and of the epoch
	for i := 1; i <= n; i++ {
		// Command i−1 is the last one of the buffer so far.
		for s.total(from, i) > s.most && from < i-1 {
			at := epoch
			if at <= from {
				at = i - 1
			}
			s.place(at)
			from, epoch = at, max(at, epoch)
		}
		if s.total(from, i) > s.most && from == i-1 {
			s.Not(s.table.Node(from), "it takes a command buffer of its own and still more than %.3g ms: %.3g ms", 1e3*s.most, 1e3*s.total(from, i))
		}
		switch {
		case i < n && (s.commit[i] || s.cut[i]):
			from, epoch = i, i
		case i < n && s.barrier[i]:
			epoch = i
		}
	}
}

// insert returns the list with the new commits, also the one after its end. ours says which commits
// of the result are new.
func (s *splitter) insert() (list []ir.Node, ours map[int]bool) {
	n := s.table.Len()
	s.cut[n] = !s.last
	list, ours = make([]ir.Node, 0, len(s.g.Nodes)+8), map[int]bool{}
	place, commits, waiting := 0, 0, false // waiting: the cut at this place is still to be made
	end := func() {
		if waiting {
			ours[commits] = true
			list = append(list, &ir.Commit{})
			commits++
			waiting = false
		}
	}
	for _, x := range s.g.Nodes {
		_, command := x.(ir.Command)
		switch x.(type) {
		case *ir.Barrier:
			if s.cut[place] { // the commit replaces the barrier
				end()
				continue
			}
		case *ir.Commit:
			commits++
		case *ir.GroupBegin: // a group must end before a cut or begin after it
			end()
		}
		if command {
			end()
			place++
			waiting = s.cut[place]
		}
		list = append(list, x)
	}
	end()
	return list, ours
}

// order sets the order of every cut, and remarks why.
func (s *splitter) order(list []ir.Node, ours map[int]bool) {
	g := *s.g
	g.Nodes = list
	l := layoutOf(&g, s.table)
	l.order(nil)
	k, n := len(l.commits), s.table.Len()
	for i, c := range l.commits {
		before := l.commits[(i+k-1)%k]
		if ours[i] && c.Order != ir.OrderNone && i < k-1 && before.Order != ir.OrderNone {
			c.Order = ir.OrderFence
		}
	}
	if s.silent() {
		return
	}
	for i, from := 0, 0; i < k; i++ {
		to := from
		for to < n && l.buffer[to] <= i {
			to++
		}
		if ours[i] {
			s.Did(s.table.Node(to-1), "command buffer %d ends here, %d commands modelled at %.3g ms: %s", i, to-from, 1e3*s.total(from, to), s.why(l, i, to))
		}
		from = to
	}
}

// why says what commit i at place p orders.
func (s *splitter) why(l *layout, i, p int) string {
	n := s.table.Len()
	how := "inside an epoch"
	if s.barrier[p] {
		how = "in place of a barrier"
	} else if p == n {
		how = "at the end of the list"
	}
	if l.commits[i].Order == ir.OrderNone {
		return how + ", no order needed"
	}
	// Find the first conflict across the cut in the buffer after it.
	for j := n + p%n; j < 2*n && (j == n+p%n || !l.begins[j-n]); j++ {
		if e := int(l.earlier[j]); e >= 0 {
			x := s.table.Node(e % n).Num()
			y := s.table.Node(j % n).Num()
			replay := ""
			if e < n {
				replay = " of the replay before"
			}
			return fmt.Sprintf("%s, %s for the %s of %s with %s%s", how, l.commits[i].Order, l.kind(e, j), y, x, replay)
		}
	}
	return fmt.Sprintf("%s, %s for command buffers further on", how, l.commits[i].Order)
}
