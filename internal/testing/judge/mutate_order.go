package judge

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// drop returns a mutation that drops a node that `which` accepts.
func drop(which func(ir.Node) bool) func(*rand.Rand, *ir.Graph) bool {
	return func(rng *rand.Rand, g *ir.Graph) bool {
		i, ok := pick(rng, indices(g, which))
		if ok {
			g.Nodes = slices.Delete(g.Nodes, i, i+1)
		}
		return ok
	}
}

func addBarrier(rng *rand.Rand, g *ir.Graph) bool {
	insert(g, rng.IntN(len(g.Nodes)+1), &ir.Barrier{})
	return true
}

func moveBarrier(rng *rand.Rand, g *ir.Graph) bool {
	i, ok := pick(rng, indices(g, is[*ir.Barrier]))
	to := i + 1
	if rng.IntN(2) == 0 {
		to = i - 1
	}
	if !ok || to < 0 || to >= len(g.Nodes) {
		return false
	}
	g.Nodes[i], g.Nodes[to] = g.Nodes[to], g.Nodes[i]
	return true
}

func swapCommands(rng *rand.Rand, g *ir.Graph) bool {
	at := indices(g, isCommand)
	if len(at) < 2 {
		return false
	}
	k := rng.IntN(len(at) - 1)
	g.Nodes[at[k]], g.Nodes[at[k+1]] = g.Nodes[at[k+1]], g.Nodes[at[k]]
	return true
}

func moveCommand(rng *rand.Rand, g *ir.Graph) bool {
	i, ok := pick(rng, indices(g, isCommand))
	if !ok {
		return false
	}
	n := g.Nodes[i]
	g.Nodes = slices.Delete(g.Nodes, i, i+1)
	to := rng.IntN(len(g.Nodes) + 1)
	insert(g, to, n)
	return to != i
}

// shuffleEpoch permutes the commands between two barriers or commits.
func shuffleEpoch(rng *rand.Rand, g *ir.Graph) bool {
	i, ok := pick(rng, indices(g, isCommand))
	if !ok {
		return false
	}
	lo, hi := i, i+1
	for lo > 0 && isCommand(g.Nodes[lo-1]) {
		lo--
	}
	for hi < len(g.Nodes) && isCommand(g.Nodes[hi]) {
		hi++
	}
	rng.Shuffle(hi-lo, func(a, b int) { g.Nodes[lo+a], g.Nodes[lo+b] = g.Nodes[lo+b], g.Nodes[lo+a] })
	return hi-lo > 1
}

func weakenCommit(rng *rand.Rand, g *ir.Graph) bool {
	c, ok := pickNode(rng, g, func(c *ir.Commit) bool { return c.Order != ir.OrderNone })
	if ok {
		c.Order = ir.OrderNone
	}
	return ok
}

// strengthenCommit makes one or more commits order something that they did not order.
func strengthenCommit(rng *rand.Rand, g *ir.Graph) (done bool) {
	for more := true; more; more = rng.IntN(2) == 0 {
		c, ok := pickNode(rng, g, func(c *ir.Commit) bool { return c.Order != ir.OrderEvent })
		switch {
		case !ok:
			return done
		case c.Order == ir.OrderNone && rng.IntN(2) == 0:
			c.Order = ir.OrderFence
		default:
			c.Order = ir.OrderEvent
		}
		done = true
	}
	return done
}

// dropWraparound removes the marks after the last command or before the first one,
// which order the next replay after this one.
func dropWraparound(rng *rand.Rand, g *ir.Graph) bool {
	at := indices(g, isCommand)
	mark := func(n ir.Node) bool { return is[*ir.Barrier](n) || is[*ir.Commit](n) }
	if len(at) == 0 {
		return false
	}
	last := at[len(at)-1]
	rest := slices.DeleteFunc(slices.Clone(g.Nodes[last+1:]), mark)
	first := g.Nodes[:at[0]]
	if len(rest) == len(g.Nodes)-last-1 || rng.IntN(2) == 0 {
		first = slices.DeleteFunc(slices.Clone(first), mark)
	}
	out := slices.Concat(first, g.Nodes[at[0]:last+1], rest)
	ok := len(out) < len(g.Nodes)
	g.Nodes = out
	return ok
}

// flipSerial makes a serial graph one that is not serial, or the other way round. In
// the latter case some of its barriers become unnecessary.
func flipSerial(rng *rand.Rand, g *ir.Graph) bool {
	if g.Ordering == ir.Serial {
		g.SetOrdering(ir.ByBarriers)
	} else {
		g.SetOrdering(ir.Serial)
	}
	if rng.IntN(2) == 0 {
		loosen(rng, g)
	}
	return true
}

// loosen drops some or all barriers.
func loosen(rng *rand.Rand, g *ir.Graph) {
	all := rng.IntN(2) == 0
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n ir.Node) bool { return is[*ir.Barrier](n) && (all || rng.IntN(2) == 0) })
}

func addCommit(rng *rand.Rand, g *ir.Graph) bool {
	insert(g, rng.IntN(len(g.Nodes)+1), &ir.Commit{Order: ir.CommitOrder(rng.IntN(3))})
	return true
}

// duplicateCommand runs a command a second time, directly after itself or somewhere
// else.
func duplicateCommand(rng *rand.Rand, g *ir.Graph) bool {
	i, ok := pick(rng, indices(g, isCommand))
	if !ok {
		return false
	}
	n := ir.CloneNode(g.Nodes[i])
	setID(n, freeID(g))
	to := i + 1
	if rng.IntN(2) == 0 {
		to = rng.IntN(len(g.Nodes) + 1)
	}
	insert(g, to, n)
	if rng.IntN(2) == 0 {
		insert(g, to, &ir.Barrier{})
		insert(g, to+2, &ir.Barrier{})
	}
	return true
}

func freeID(g *ir.Graph) ir.ID {
	next := ir.ID(0)
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			next = max(next, c.Num()+1)
		}
	}
	return next
}

func setID(n ir.Node, id ir.ID) {
	if c, ok := n.(ir.Command); ok {
		c.Renumber(id, c.Origin())
	}
}

// commitBarrier puts a commit in place of a barrier.
func commitBarrier(rng *rand.Rand, g *ir.Graph) bool {
	i, ok := pick(rng, indices(g, is[*ir.Barrier]))
	if ok {
		g.Nodes[i] = &ir.Commit{Order: ir.CommitOrder(rng.IntN(2) * 2)}
	}
	return ok
}
