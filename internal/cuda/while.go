//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"runtime"
	"unsafe"
)

// Conditional is what a kernel says by cudaGraphSetConditional, a function of the device's that the driver
// itself resolves when it compiles PTX: no device runtime is linked.
type Conditional uint64

// whileNode is CUgraphNodeParams with CUDA_CONDITIONAL_NODE_PARAMS in it.
type whileNode struct {
	kind     int32
	_        [3]int32
	handle   Conditional
	what     int32
	size     uint32
	bodies   *Graph // of the driver's: where it says which
	context  Context
	_        [232 - 32]byte
	reserved int64
}

// AddWhile adds a node that runs a graph again and again: once, and then as long as a kernel of that graph has
// set the condition to something other than 0. It returns what kernels set, and the graph, which is empty
// and belongs to the node.
func (d *Device) AddWhile(g Graph) (Conditional, Graph, error) {
	if functions.graphConditional == 0 || functions.graphAddNode == 0 {
		return 0, 0, errors.New("the driver has no conditional nodes: install one for CUDA 12.4 or later")
	}
	const assignDefault, conditional, while = 1, 13, 1
	h, err := out("cuGraphConditionalHandleCreate", functions.graphConditional, func(p uintptr) []uintptr {
		return []uintptr{p, uintptr(g), uintptr(d.context), 1, assignDefault}
	})
	if err != nil {
		return 0, 0, err
	}
	n := &whileNode{kind: conditional, handle: Conditional(h), what: while, size: 1, context: d.context}
	var pin runtime.Pinner
	pin.Pin(n)
	defer pin.Unpin()
	_, err = out("cuGraphAddNode", functions.graphAddNode, func(p uintptr) []uintptr {
		return []uintptr{p, uintptr(g), 0, 0, uintptr(unsafe.Pointer(n))}
	})
	if err == nil && (n.bodies == nil || *n.bodies == 0) {
		err = errors.New("cuGraphAddNode: the driver gives no graph, and no error")
	}
	if err != nil {
		return 0, 0, err
	}
	return n.handle, *n.bodies, nil
}
