//go:build linux && (amd64 || arm64)

package cuda

import (
	"runtime"
	"unsafe"
)

// Handles of graphs: CUgraph, CUgraphNode and CUgraphExec.
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

// Destroy destroys a graph. Executable graphs that were made of it stay valid.
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

// AddKernel adds a kernel node without dependencies. The values of its parameters are copied.
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

// AddEmpty adds an empty node: a join that many nodes lead to, and on which many depend.
func (g Graph) AddEmpty() (GraphNode, error) {
	n, err := out("cuGraphAddEmptyNode", functions.graphAddEmpty, func(p uintptr) []uintptr { return []uintptr{p, uintptr(g), 0, 0} })
	return GraphNode(n), err
}

// EdgeData is CUgraphEdgeData. The zero value is a full edge: its second node begins when the first has ended.
type EdgeData struct {
	FromPort, ToPort, Type uint8
	_                      [5]uint8
}

// Programmatic is the edge of a programmatic dependent launch: the second kernel may begin once all blocks of the
// first have ended or executed griddepcontrol.launch_dependents, and waits for its end, and for its writes to be
// visible, by griddepcontrol.wait.
var Programmatic = EdgeData{FromPort: 1, Type: 1}

// AddEdges adds edges of the kinds data[i], each from from[i] to to[i]. It calls the driver once for each kind:
// given both in one call, the first edge programmatic, a driver was seen to start kernels behind full edges too
// early (580.159, H200; TestEdges).
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

// Instantiate makes an executable graph of a graph.
func (g Graph) Instantiate() (GraphExec, error) {
	x, err := out("cuGraphInstantiateWithFlags", functions.graphInstantiate, func(p uintptr) []uintptr { return []uintptr{p, uintptr(g), 0} })
	return GraphExec(x), err
}

// Destroy destroys an executable graph. A launch of it that is running completes first.
func (x GraphExec) Destroy() error {
	return call("cuGraphExecDestroy", functions.graphExecDestroy, uintptr(x))
}

// Set replaces the function, grid and parameters of a kernel node of x's graph in all later launches of x.
func (x GraphExec) Set(n GraphNode, l *Launch) error {
	k := l.node()
	var pin runtime.Pinner
	pin.Pin(k)
	defer pin.Unpin()
	return call("cuGraphExecKernelNodeSetParams", functions.graphExecSet, uintptr(x), uintptr(n), uintptr(unsafe.Pointer(k)))
}

// Enable says whether later launches run a kernel node, or treat it as an empty one.
func (x GraphExec) Enable(n GraphNode, on bool) error {
	flag := uintptr(0)
	if on {
		flag = 1
	}
	return call("cuGraphNodeSetEnabled", functions.graphNodeEnable, uintptr(x), uintptr(n), flag)
}

// Launch submits the executable graph to a stream.
func (x GraphExec) Launch(s Stream) error {
	return call("cuGraphLaunch", functions.graphLaunch, uintptr(x), uintptr(s))
}
