//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// fits returns an error if the buffers that a replay uses exceed, in sum, the GPU's recommended working
// set: command buffers that use more fail, or the machine becomes very slow. Each buffer counts whole, also
// mapped ones: a buffer is resident as a whole if a kernel reads one byte of it. places are by memory.
func (d *Device) fits(g *ir.Graph, places []backend.Place) error {
	if d.workingSet <= 0 {
		return nil
	}
	seen := make(map[*buffer]bool, len(places))
	var mapped, weights, states, rest int64
	for i, p := range places {
		b, ok := p.Buffer.(*buffer)
		if !ok || seen[b] {
			continue
		}
		seen[b] = true
		switch kind := g.Memories[i].Kind; {
		case b.mapped != nil:
			mapped += b.length
		case kind == ir.Weight:
			weights += b.length
		case kind == ir.State:
			states += b.length
		default:
			rest += b.length
		}
	}
	total := mapped + weights + states + rest
	if total <= d.workingSet {
		return nil
	}
	return fmt.Errorf("a replay uses %d bytes (%d of weights in files, %d of other weights, %d of states, %d of inputs, outputs and scratch), and the GPU should have at most %d in use: take weights of fewer bits or a shorter context, or allow the GPU more (sudo sysctl iogpu.wired_limit_mb=%d)",
		total, mapped, weights, states, rest, d.workingSet, total>>20+1)
}
