//go:build linux && (amd64 || arm64)

package fakecuda

import "slices"

// graph is a CUDA graph under construction (CUgraph): nodes and edges can be added to it.
type graph struct {
	nodes []*node
}

// node is a kernel node of a graph, or an empty one.
type node struct {
	handle uintptr
	of     *graph
	number int
	kernel bool
	launch *launch
	in     []edge
}

// edge is an edge to a node, from the node with the number from.
type edge struct {
	from         int
	programmatic bool
}

// exec is an executable graph (CUgraphExec).
type exec struct {
	of    *graph
	order []int // the nodes' numbers, in a topological order
	nodes []execNode
	last  *op // of its previous launch
}

type execNode struct {
	kernel  bool
	launch  *launch
	in      []edge
	enabled bool
}

// kernelNode is CUDA_KERNEL_NODE_PARAMS_v2.
type kernelNode struct {
	function       uintptr
	grid, block    [3]uint32
	shared         uint32
	_              uint32
	params, extra  uintptr
	kernel, contxt uintptr
}

// edgeData is CUgraphEdgeData.
type edgeData struct {
	from, to, typ uint8
	reserved      [5]uint8
}

const (
	typeProgrammatic = 1
	portProgrammatic = 1
)

func (g *GPU) nodeLaunch(p uintptr) (*launch, uint32) {
	if p == 0 {
		return nil, invalidValue
	}
	k := at[kernelNode](p)
	if k.kernel != 0 || k.contxt != 0 {
		return nil, invalidValue
	}
	return g.newLaunch(k.function, k.grid, k.block, k.shared, k.params, k.extra)
}

// grow adds a node that depends on count others, an empty one if l is nil, and stores its handle at to.
func (g *GPU) grow(to, in, behind, count uintptr, l *launch) uint32 {
	x := object[graph](g, in)
	if x == nil {
		return invalidHandle
	}
	n := &node{of: x, number: len(x.nodes), kernel: l != nil, launch: l}
	if count > 0 {
		if behind == 0 {
			return invalidValue
		}
		for _, h := range list[uintptr](behind, count) {
			b := object[node](g, h)
			if b == nil || b.of != x {
				return invalidValue
			}
			n.in = append(n.in, edge{from: b.number})
		}
	}
	n.handle = g.handle(n)
	x.nodes = append(x.nodes, n)
	return give(to, n.handle)
}

func init() {
	register(ready, "cuGraphCreate", 2, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || a[1] != 0 {
			return invalidValue
		}
		return give(a[0], g.handle(&graph{}))
	})
	registerDestroy("cuGraphDestroy", func(g *GPU, x *graph) {
		for _, n := range x.nodes {
			g.drop(n.handle, n)
		}
	})
	register(inside, "cuGraphAddKernelNode_v2", 5, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 {
			return invalidValue
		}
		l, code := g.nodeLaunch(a[4])
		if code != success {
			return code
		}
		return g.grow(a[0], a[1], a[2], a[3], l)
	})
	register(inside, "cuGraphAddEmptyNode", 4, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 {
			return invalidValue
		}
		return g.grow(a[0], a[1], a[2], a[3], nil)
	})
	registerOn(inside, "cuGraphAddDependencies_v2", 5, 0, addEdges)
	registerOn(inside, "cuGraphInstantiateWithFlags", 3, 1, func(g *GPU, x *graph, a []uintptr) uint32 {
		e := x.executable(g)
		if a[0] == 0 || a[2] != 0 || e == nil {
			return invalidValue
		}
		return give(a[0], g.handle(e))
	})
	registerDestroy("cuGraphExecDestroy", func(*GPU, *exec) {})
	register(inside, "cuGraphExecKernelNodeSetParams_v2", 3, func(g *GPU, a []uintptr) uint32 {
		k, code := g.nodeOf(a[0], a[1])
		if k == nil {
			return code
		}
		l, code := g.nodeLaunch(a[2])
		if l != nil {
			k.launch = l
		}
		return code
	})
	register(inside, "cuGraphNodeSetEnabled", 3, func(g *GPU, a []uintptr) uint32 {
		k, code := g.nodeOf(a[0], a[1])
		if k != nil {
			k.enabled = uint32(a[2]) != 0
		}
		return code
	})
	registerOn(inside, "cuGraphLaunch", 2, 1, func(g *GPU, s *stream, a []uintptr) uint32 {
		e := object[exec](g, a[0])
		if e == nil {
			return invalidHandle
		}
		g.start(e, s)
		return success
	})
}

func (s *Edges) add(e *exec) {
	outs := make([]int, len(e.nodes))
	for _, n := range e.nodes {
		if n.kernel {
			s.Nodes++
		}
		for _, x := range n.in {
			if outs[x.from]++; outs[x.from] == 2 {
				s.Forks++
			}
			if x.programmatic {
				s.Programmatic++
			} else {
				s.Full++
			}
		}
	}
}

// executable makes an executable graph; nil if the edges have a cycle.
func (x *graph) executable(g *GPU) *exec {
	e := &exec{of: x}
	for _, n := range x.nodes {
		e.nodes = append(e.nodes, execNode{kernel: n.kernel, launch: n.launch, in: slices.Clone(n.in), enabled: true})
	}
	if !e.sort() {
		return nil
	}
	g.edges.add(e)
	return e
}

// nodeOf returns the kernel node of an executable graph that a node of its graph has become.
func (g *GPU) nodeOf(of, at uintptr) (*execNode, uint32) {
	e, n := object[exec](g, of), object[node](g, at)
	switch {
	case e == nil || n == nil:
		return nil, invalidHandle
	case n.of != e.of || n.number >= len(e.nodes) || !n.kernel:
		return nil, invalidValue
	}
	return &e.nodes[n.number], success
}

func addEdges(g *GPU, x *graph, a []uintptr) uint32 {
	switch {
	case a[4] == 0:
		return success
	case a[1] == 0 || a[2] == 0:
		return invalidValue
	}
	from, to := list[uintptr](a[1], a[4]), list[uintptr](a[2], a[4])
	if a[3] != 0 && slices.ContainsFunc(list[edgeData](a[3], a[4]), func(d edgeData) bool { return d.typ != at[edgeData](a[3]).typ }) {
		g.note("edges of two kinds are added by one call: drivers are known that take all of them for the first one's")
	}
	for i := range from {
		f, t := object[node](g, from[i]), object[node](g, to[i])
		if f == nil || t == nil || f.of != x || t.of != x || f == t {
			return invalidValue
		}
		var d edgeData
		if a[3] != 0 {
			d = list[edgeData](a[3], a[4])[i]
		}
		e := edge{f.number, d.typ == typeProgrammatic}
		switch {
		case d.reserved != [5]uint8{} || d.to != 0 || d.typ > typeProgrammatic:
			return invalidValue
		case e.programmatic && (d.from != portProgrammatic || !f.kernel || !t.kernel):
			return invalidValue
		case !e.programmatic && d.from != 0:
			return invalidValue
		case slices.ContainsFunc(t.in, func(o edge) bool { return o.from == e.from }):
			g.note("there is an edge between nodes %d and %d already", f.number, t.number)
			return invalidValue
		}
		t.in = append(t.in, e)
	}
	return success
}

// sort sets a topological order of the nodes; false if the edges have a cycle.
func (e *exec) sort() bool {
	waits := make([]int, len(e.nodes))
	out := make([][]int, len(e.nodes))
	for i, n := range e.nodes {
		waits[i] = len(n.in)
		for _, x := range n.in {
			out[x.from] = append(out[x.from], i)
		}
		if waits[i] == 0 {
			e.order = append(e.order, i)
		}
	}
	for k := 0; k < len(e.order); k++ {
		for _, i := range out[e.order[k]] {
			if waits[i]--; waits[i] == 0 {
				e.order = append(e.order, i)
			}
		}
	}
	return len(e.order) == len(e.nodes)
}

// start adds a launch of an executable graph to the end of a stream.
func (g *GPU) start(e *exec, s *stream) {
	first := []*op{s.tail, e.last} // launches of one executable graph do not overlap
	e.last = g.add(&op{}, g.expand(e, first)...)
	s.tail = e.last
}

// expand queues an op for each node, those without edges behind first, and returns the ops that no other waits for.
func (g *GPU) expand(e *exec, first []*op) []*op {
	ops := make([]*op, len(e.nodes))
	behind := make([][]*op, len(e.nodes)) // the ops that each node waits for
	starts := make([][]*op, len(e.nodes)) // the ops that have ended when it begins, early perhaps
	begun := make([][]*launch, len(e.nodes))
	ends := make([]bool, len(e.nodes))
	for _, i := range e.order {
		n := &e.nodes[i]
		runs := n.kernel && n.enabled
		var l *launch
		if runs {
			copied := *n.launch
			l = &copied
			l.early, l.watched = nil, nil
		}
		for _, x := range n.in {
			from := &e.nodes[x.from]
			switch {
			case !x.programmatic:
				behind[i] = append(behind[i], ops[x.from])
				starts[i] = append(starts[i], ops[x.from])
				ends[x.from] = true
				continue
			case !runs || !from.enabled:
				g.note("a node with a programmatic edge does nothing: nobody says what waits for what then")
				behind[i] = append(behind[i], ops[x.from])
				starts[i] = append(starts[i], ops[x.from])
				ends[x.from] = true
			case !l.Launch.Programmatic:
				// It does not wait: it may begin with its predecessor, and the edge orders nothing.
				g.unordered++
				behind[i] = append(behind[i], starts[x.from]...)
				starts[i] = append(starts[i], starts[x.from]...)
			default:
				starts[i] = append(starts[i], starts[x.from]...)
				behind[i] = append(behind[i], ops[x.from])
				ends[x.from] = true
				begun[i] = append(begun[i], ops[x.from].launch)
				begun[i] = append(begun[i], begun[x.from]...)
			}
		}
		o := &op{}
		if runs {
			o = g.op(l)
			if l.reads() {
				for _, b := range begun[i] {
					b.watched = append(b.watched, l)
				}
			}
		}
		if len(behind[i]) == 0 {
			behind[i] = first
		}
		if len(starts[i]) == 0 {
			starts[i] = first
		}
		ops[i] = g.add(o, behind[i]...)
	}
	var last []*op
	for i, o := range ops {
		if !ends[i] {
			last = append(last, o)
		}
	}
	if len(ops) == 0 {
		last = first
	}
	return last
}
