package passes

import "github.com/mlxc/mlxc/ir"

// DropKernels drops the kernels of g that no dispatch uses, and returns their number. Only commands
// name kernels, so nobody outside the graph misses them.
func DropKernels(g *ir.Graph) (dropped int) {
	used := make([]bool, len(g.Kernels))
	left := len(used)
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && !used[d.Kernel] {
			used[d.Kernel] = true
			if left--; left == 0 {
				return 0
			}
		}
	}
	to := make([]ir.KernelID, len(used))
	kept := make([]ir.Kernel, 0, len(used)-left)
	for i := range g.Kernels {
		if used[i] {
			to[i] = ir.KernelID(len(kept))
			kept = append(kept, g.Kernels[i])
		}
	}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			d.Kernel = to[d.Kernel]
		}
	}
	g.Kernels = kept
	return left
}
