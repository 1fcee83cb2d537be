package plan

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Limits are a GPU's limits for the dispatches of a kernel.
type Limits struct {
	Threads int // of a threadgroup
	Own     int // bytes of threadgroup memory that the kernel has of its own
	Memory  int // bytes of threadgroup memory that there are; 0: any number
}

// Takes returns an error if a dispatch exceeds them.
func (l Limits) Takes(d *ir.Dispatch) error {
	threads, memory := 1, l.Own
	for _, x := range d.Threadgroup {
		threads *= int(x)
	}
	for _, m := range d.ThreadgroupMemory {
		memory += int(m.Bytes)
	}
	switch {
	case threads > l.Threads:
		return fmt.Errorf("threadgroups of %d threads: on this GPU the kernel takes at most %d", threads, l.Threads)
	case l.Memory > 0 && memory > l.Memory:
		return fmt.Errorf("%d bytes of threadgroup memory, of which %d are the kernel's own: the GPU has %d", memory, l.Own, l.Memory)
	}
	return nil
}

// ConstantAlign is the alignment of the offset of an argument in constant space on Apple's GPUs (Metal Feature Set
// Tables: minimum constant buffer offset alignment). The loads of kernels that were compiled for them rely on it.
const ConstantAlign = 4

// Check returns an error, which names the command, if a dispatch of a graph's plan cannot run. pipeline returns the
// limits of one, or why it could not be made.
func (p *Plan) Check(pipeline func(i int32) (Limits, error)) error {
	var current int32 // the pipeline that is set
	for i := range p.Ops {
		switch o := &p.Ops[i]; o.Kind {
		case SetPipeline:
			current = o.Index
		case Dispatch, DispatchIndirect:
			node := int(p.Grids[o.Index].Node)
			limits, err := pipeline(current)
			if n, ok := p.Graph.Nodes[node].(*ir.Dispatch); ok && err == nil {
				if err = Arguments(p.Graph, n); err == nil {
					err = limits.Takes(n)
				}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.Graph.DescribeNode(node), err)
			}
		}
	}
	return nil
}
