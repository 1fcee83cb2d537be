package prove

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// access is a region that a command touches, in its root memory.
type access struct {
	region ir.Region
	must   bool // of a write
}

// op is one command with what it touches.
type op struct {
	node   ir.Node
	id     ir.ID
	known  bool // effects are complete; otherwise the command is a pillar
	reads  []access
	writes []access
	inst   *decl.Instance // of a declared kernel
}

// model is a graph ready for the proof: marks and commands in order.
type model struct {
	g    *ir.Graph
	list []ir.Node
	ops  []op
	byID map[ir.ID]int
	at   []int // for each node of list: its op, or −1
}

// build recomputes the effects of every command from the kernels'
// declarations. A dispatch of a kernel without one keeps what stored says,
// which for the graph after are the effects of the graph before.
func build(g *ir.Graph, stored func(*ir.Dispatch) *ir.Effects) *model {
	m := &model{g: g, list: g.Nodes, byID: make(map[ir.ID]int, len(g.Nodes)), at: make([]int, len(g.Nodes))}
	for i, n := range g.Nodes {
		m.at[i] = -1
		id, ok := ir.NodeID(n)
		if !ok {
			continue
		}
		o := op{node: n, id: id}
		e := ir.NodeEffects(n)
		if d, ok := n.(*ir.Dispatch); ok {
			e = nil
			if g.Kernels[d.Kernel].Library.Declared() {
				if in, err := msl.Bind(g, d); err == nil {
					if x, err := in.Effects(); err == nil {
						o.inst, e = in, x
					}
				}
			} else {
				e = stored(d)
			}
		}
		if e.Known() {
			o.known = true
			for _, r := range e.Reads {
				o.reads = append(o.reads, access{region: rooted(g, r)})
			}
			for _, w := range e.Writes {
				a := access{region: rooted(g, w.Region), must: w.Must && !w.Atomic}
				o.writes = append(o.writes, a)
				if !a.must {
					o.reads = append(o.reads, a) // it depends on the old bytes
				}
			}
		}
		m.at[i] = len(m.ops)
		m.byID[id] = len(m.ops)
		m.ops = append(m.ops, o)
	}
	return m
}

// rooted follows aliases: the same bytes in the root memory.
func rooted(g *ir.Graph, r ir.Region) ir.Region {
	root, off := g.Root(r.Mem)
	r.Mem, r.Off = root, r.Off.AddConst(off)
	return r
}
