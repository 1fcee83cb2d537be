//go:build linux && (amd64 || arm64)

package cuda

import (
	"runtime"
	"unsafe"
)

// Types of graphs.
type (
	Graph     uintptr
	GraphNode uintptr
	GraphExec uintptr
)

// NewGraph returns an empty graph.
func NewGraph() (Graph, error) {
	g, err := out("cuGraphCreate", functions.graphCreate, func(p uintptr) []uintptr { return []uintptr{p, 0} })
	return Graph(g), err
}

// Destroy ends a graph. What was made of it stays.
func (g Graph) Destroy() error { return call("cuGraphDestroy", functions.graphDestroy, uintptr(g)) }

// kernelNode is CUDA_KERNEL_NODE_PARAMS_v2.
type kernelNode struct {
	function       uintptr
	grid, block    [3]uint32
	shared         uint32
	_              uint32
	params, extra  uintptr
	kernel, contxt uintptr
}

func (l *Launch) node() *kernelNode {
	return &kernelNode{function: uintptr(l.Function), grid: l.Grid, block: [3]uint32{l.Block, 1, 1}, shared: l.Shared, params: l.Params}
}

// AddKernel adds a launch, whose parameters are copied; nothing is before it yet.
func (g Graph) AddKernel(l *Launch) (GraphNode, error) {
	k := l.node()
	var pin runtime.Pinner
	pin.Pin(k)
	defer pin.Unpin()
	n, err := out("cuGraphAddKernelNode", functions.graphAddKernel, func(p uintptr) []uintptr {
		return []uintptr{p, uintptr(g), 0, 0, uintptr(unsafe.Pointer(k))}
	})
	return GraphNode(n), err
}

// AddEmpty adds a node that does nothing: edges may meet there.
func (g Graph) AddEmpty() (GraphNode, error) {
	n, err := out("cuGraphAddEmptyNode", functions.graphAddEmpty, func(p uintptr) []uintptr { return []uintptr{p, uintptr(g), 0, 0} })
	return GraphNode(n), err
}

// EdgeData is CUgraphEdgeData. The zero value is an edge behind which everything waits.
type EdgeData struct {
	FromPort, ToPort, Type uint8
	_                      [5]uint8
}

// Programmatic is an edge between kernels: blocks of the second run once all of the first have ended or
// said griddepcontrol.launch_dependents, and wait for its end and its writes by griddepcontrol.wait.
var Programmatic = EdgeData{FromPort: 1, Type: 1}

// AddEdges adds edges, from[i] to to[i]. The driver is given those of one kind at a time: when one call has
// both, and the first edge is programmatic, kernels behind full ones were seen to begin too early (driver
// 580.159, H200; TestEdges).
func (g Graph) AddEdges(from, to []GraphNode, data []EdgeData) error {
	kinds := map[EdgeData]bool{}
	for i := range data {
		if kinds[data[i]] {
			continue
		}
		kinds[data[i]] = true
		var some [2][]GraphNode
		var same []EdgeData
		for k := i; k < len(data); k++ {
			if data[k] == data[i] {
				some[0], some[1], same = append(some[0], from[k]), append(some[1], to[k]), append(same, data[k])
			}
		}
		if err := g.addEdges(some[0], some[1], same); err != nil {
			return err
		}
	}
	return nil
}

func (g Graph) addEdges(from, to []GraphNode, data []EdgeData) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&from[0])
	pin.Pin(&to[0])
	pin.Pin(&data[0])
	return call("cuGraphAddDependencies", functions.graphAddEdges, uintptr(g), uintptr(unsafe.Pointer(&from[0])), uintptr(unsafe.Pointer(&to[0])),
		uintptr(unsafe.Pointer(&data[0])), uintptr(len(from)))
}

// Instantiate returns what can be launched of a graph.
func (g Graph) Instantiate() (GraphExec, error) {
	x, err := out("cuGraphInstantiateWithFlags", functions.graphInstantiate, func(p uintptr) []uintptr { return []uintptr{p, uintptr(g), 0} })
	return GraphExec(x), err
}

// Destroy ends an executable graph. A launch that runs ends first.
func (x GraphExec) Destroy() error {
	return call("cuGraphExecDestroy", functions.graphExecDestroy, uintptr(x))
}

// Set has the launches that come run a node as l says; the node is one of the graph that x was made of.
func (x GraphExec) Set(n GraphNode, l *Launch) error {
	k := l.node()
	var pin runtime.Pinner
	pin.Pin(k)
	defer pin.Unpin()
	return call("cuGraphExecKernelNodeSetParams", functions.graphExecSet, uintptr(x), uintptr(n), uintptr(unsafe.Pointer(k)))
}

// Enable has the launches that come run a node, or leave it out as if it were empty.
func (x GraphExec) Enable(n GraphNode, on bool) error {
	flag := uintptr(0)
	if on {
		flag = 1
	}
	return call("cuGraphNodeSetEnabled", functions.graphNodeEnable, uintptr(x), uintptr(n), flag)
}

// Launch runs it in the order of a stream.
func (x GraphExec) Launch(s Stream) error {
	return call("cuGraphLaunch", functions.graphLaunch, uintptr(x), uintptr(s))
}
