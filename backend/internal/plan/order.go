package plan

import "github.com/mlxc/mlxc/ir"

// order says where an encoder needs barriers.
type order struct {
	graph  *ir.Graph
	serial bool
	waits  *ir.Waits // of a graph ordered by edges
	last   int       // nodes before this one are ordered before later ones, by a barrier or a commit
	some   bool      // a command stands behind last
	wanted bool      // a barrier of the graph stands behind it
}

func newOrder(g *ir.Graph, serial bool) *order {
	o := &order{graph: g, serial: serial}
	if g.Ordering == ir.ByEdges {
		o.waits = g.Waits()
	}
	return o
}

// barrier reports whether a barrier belongs before node i.
func (o *order) barrier(i int, n ir.Node) bool {
	if _, ok := n.(*ir.Barrier); ok {
		o.wanted = o.some
		return false
	}
	if _, ok := n.(ir.Command); !ok || o.serial {
		return false
	}
	needed := o.wanted
	switch o.graph.Ordering {
	case ir.Serial:
		needed = o.some
	case ir.ByEdges:
		same, _ := o.waits.Of(i)
		for _, from := range same {
			needed = needed || int(from) >= o.last
		}
	}
	if _, join := n.(*ir.Join); join {
		return false // it runs nothing; what waits for it gets the barrier
	}
	if needed {
		o.last = i
	}
	o.some, o.wanted = true, false
	return needed
}

// commit notes that node i ends a command buffer.
func (o *order) commit(i int) { o.last, o.some, o.wanted = i+1, false, false }
