package judge

import (
	"math/rand/v2"

	"github.com/mlxc/mlxc/ir"
)

// schedule is the happens-before relation between the commands of several replays of
// one graph, which are numbered as in the stream: after[i][j] says that i is before j.
type schedule struct {
	n     int
	after [][]bool
}

// commitsOf lists the orders of a graph's commits.
func commitsOf(g *ir.Graph) (out []ir.CommitOrder, epochs int) {
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Commit:
			out = append(out, n.Order)
		case *ir.Barrier:
			epochs++
		}
	}
	return out, epochs
}

// happensBefore relates the commands of consecutive replays. A barrier orders the
// commands of its own command buffer. An ordered commit orders everything before it,
// earlier command buffers included, before everything after it. The list of a serial
// graph is its order. If the host waits, each replay is before the next.
func happensBefore(g *ir.Graph, replays int, o Options) *schedule {
	if g.NextHost {
		o.Replays = Waited
	}
	if g.Ordering == ir.ByEdges {
		return pathsOf(g, replays, o)
	}
	type spot struct{ replay, buffer, epoch, command int }
	var spots []spot
	var orders []ir.CommitOrder // by command buffer of the stream: the order of the commit that ends it
	commits, barriers := commitsOf(g)
	for r := range replays {
		buffer, epoch := len(orders), r*barriers
		for _, n := range g.Nodes {
			switch n.(type) {
			case *ir.Barrier:
				epoch++
			case *ir.Commit:
				buffer++
			default:
				if isCommand(n) {
					spots = append(spots, spot{r, buffer, epoch, len(spots)})
				}
			}
		}
		orders = append(orders, commits...)
		if o.Replays == Committed {
			orders = append(orders, ir.OrderNone)
		}
	}
	ordered := func(a, b spot) bool {
		switch {
		case g.Ordering == ir.Serial:
			return a.command < b.command
		case o.Replays == Waited && a.replay != b.replay:
			return a.replay < b.replay
		case a.buffer == b.buffer:
			return a.epoch < b.epoch
		case a.buffer > b.buffer:
			return false
		}
		for _, x := range orders[a.buffer:b.buffer] {
			if x != ir.OrderNone {
				return true
			}
		}
		return false
	}
	s := &schedule{n: len(spots), after: make([][]bool, len(spots))}
	for i := range spots {
		s.after[i] = make([]bool, len(spots))
		for j := range spots {
			s.after[i][j] = i != j && ordered(spots[i], spots[j])
		}
	}
	return s
}

// pathsOf is happensBefore for a graph ordered by edges: the transitive closure of the
// edges of all replays.
func pathsOf(g *ir.Graph, replays int, o Options) *schedule {
	type node struct {
		replay int
		id     ir.ID
	}
	var list []node
	at := map[node]int{}
	var commands []int
	for r := range replays {
		for _, n := range g.Nodes {
			c, ok := n.(ir.Command)
			if !ok {
				continue
			}
			x := node{r, c.Num()}
			at[x] = len(list)
			if isCommand(n) {
				commands = append(commands, len(list))
			}
			list = append(list, x)
		}
	}
	before := make([][]bool, len(list))
	for j := range list {
		before[j] = make([]bool, len(list))
		for i := range j {
			before[j][i] = o.Replays == Waited && list[i].replay < list[j].replay
		}
	}
	for r := range replays {
		for _, e := range g.Edges {
			from := node{r, e.From}
			if e.Previous {
				from.replay--
			}
			if i, ok := at[from]; ok {
				before[at[node{r, e.To}]][i] = true
			}
		}
	}
	for j := range list { // edges lead forward
		for i := j - 1; i >= 0; i-- {
			for k := 0; before[j][i] && k < i; k++ {
				before[j][k] = before[j][k] || before[i][k]
			}
		}
	}
	s := &schedule{n: len(commands), after: make([][]bool, len(commands))}
	for x, i := range commands {
		s.after[x] = make([]bool, len(commands))
		for y, j := range commands {
			s.after[x][y] = before[j][i]
		}
	}
	return s
}

// extension returns an order of all commands that keeps the relation and the extra
// edges. At each step next picks one of the commands that may come next, whose indices
// ascend. It returns nil if the edges form a cycle.
func (s *schedule) extension(extra [][2]int, next func(ready []int) int) []int {
	waits := make([]int, s.n)
	for i := range s.n {
		for j := range s.n {
			if s.after[i][j] {
				waits[j]++
			}
		}
	}
	for _, e := range extra {
		waits[e[1]]++
	}
	done := make([]bool, s.n)
	out := make([]int, 0, s.n)
	for len(out) < s.n {
		var ready []int
		for i := range s.n {
			if !done[i] && waits[i] == 0 {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return nil
		}
		i := next(ready)
		done[i] = true
		out = append(out, i)
		for j := range s.n {
			if s.after[i][j] {
				waits[j]--
			}
		}
		for _, e := range extra {
			if e[0] == i {
				waits[e[1]]--
			}
		}
	}
	return out
}

// written picks the first command, which gives the written order wherever the relation
// and the extra edges leave a choice.
func written(ready []int) int { return ready[0] }

// adverse picks the last command, so that every command runs as late as possible.
func adverse(ready []int) int { return ready[len(ready)-1] }

func randomly(rng *rand.Rand) func([]int) int {
	return func(ready []int) int { return ready[rng.IntN(len(ready))] }
}

// adjacent returns an extension in which the unordered commands i and j follow one
// another, and the position of the first of them.
func (s *schedule) adjacent(i, j int, extra [][2]int) ([]int, int) {
	for _, e := range extra { // i and j must stay unordered
		if e == [2]int{i, j} || e == [2]int{j, i} {
			return nil, 0
		}
	}
	// First everything that must come before either of them, then the two, then the
	// others.
	early := make([]bool, s.n)
	for changed := true; changed; {
		changed = false
		for k := range s.n {
			if early[k] || k == i || k == j {
				continue
			}
			need := s.after[k][i] || s.after[k][j]
			for m := range s.n {
				need = need || early[m] && s.after[k][m]
			}
			for _, e := range extra {
				need = need || e[0] == k && (e[1] == i || e[1] == j || early[e[1]])
			}
			if need {
				early[k], changed = true, true
			}
		}
	}
	order := s.extension(extra, func(ready []int) int {
		for _, k := range ready {
			if early[k] {
				return k
			}
		}
		for _, k := range ready {
			if k == i || k == j {
				return k
			}
		}
		return ready[0]
	})
	for at := 0; at+1 < len(order); at++ {
		if a, b := order[at], order[at+1]; a == i && b == j || a == j && b == i {
			return order, at
		}
	}
	return nil, 0
}
