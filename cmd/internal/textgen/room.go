package textgen

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
)

// need is the memory in bytes that a model takes on a device.
type need struct {
	weights int64
	caches  int64 // states whose size is proportional to the context
	wide    int64 // of these, what is f32
	states  int64 // other states
	rest    int64 // scratch, inputs, outputs and arguments
}

func (n need) total() (sum int64) {
	for _, part := range []int64{n.weights, n.caches, n.states, n.rest} {
		add(&sum, part)
	}
	return sum
}

// add adds n to a sum, which stops at the max of int64 rather than overflow.
func add(sum *int64, n int64) { *sum += min(n, math.MaxInt64-*sum) }

// needOf adds up the memories of graphs that are used with one another, for a context of so many positions. Graphs
// have weights of one blob and states of one name in common. Weights that are mapped from a file count too: a token reads
// all of them, and if they do not stay in memory each token waits for the disk.
func needOf(graphs []*ir.Graph, context int64) need {
	var n need
	blobs, states := map[*ir.Blob]bool{}, map[string]bool{}
	for _, g := range graphs {
		for i := range g.Memories {
			m := &g.Memories[i]
			switch {
			case m.Alias != ir.NoMem:
			case m.Kind == ir.Weight:
				if b := m.Init.Blob; b == nil || !blobs[b] {
					add(&n.weights, m.Size)
					blobs[b] = true
				}
			case m.Kind != ir.State:
				add(&n.rest, m.Size)
			case states[m.Name]:
			case m.Size%context == 0:
				add(&n.caches, m.Size)
				if m.DType == ir.F32 {
					add(&n.wide, m.Size)
				}
				states[m.Name] = true
			default:
				add(&n.states, m.Size)
				states[m.Name] = true
			}
		}
	}
	return n
}

// fits returns an error if the graphs of a model together need more memory than a device may take. It says what takes
// how much, and which context would fit. Nothing has been allocated yet then.
func fits(m *ir.Module, names *frontend.Interface, info *backend.Info, device string) error {
	decode := m.Graph(names.Decode.Graph)
	if info.Memory <= 0 || decode == nil {
		return nil // a graph that is missing is another error
	}
	graphs := []*ir.Graph{decode}
	for _, several := range []*frontend.Step{names.Prefill, names.Verify} {
		if several == nil {
			continue
		}
		if g := m.Graph(several.Graph); g != nil && !slices.Contains(graphs, g) {
			graphs = append(graphs, g)
		}
	}
	i, ok := decode.ParamNamed(names.Decode.Position)
	if !ok || !(decode.Params[i].Max >= 0 && decode.Params[i].Max < maxContext) {
		return nil // another error too
	}
	context := int64(decode.Params[i].Max) + 1
	n := needOf(graphs, context)
	if n.total() <= info.Memory {
		return nil
	}
	hint := "no context fits"
	// Scratch counts as it is, though that of a shorter context may be less.
	fixed := need{weights: n.weights, states: n.states, rest: n.rest}
	if room := info.Memory - fixed.total(); n.caches > 0 && room >= n.caches/context {
		hint = fmt.Sprintf("a context of %d fits: record with --context %[1]d", room/(n.caches/context))
		if n.wide > 0 { // f16 takes half of it, q8_0 17 bytes of 64
			with := func(bytes int64) int64 { return min(context, room/max(1, (n.caches-n.wide+bytes)/context)) }
			hint += fmt.Sprintf("; with --cache f16 one of %d, with q8_0 of %d", with(n.wide/2), with(n.wide/64*17))
		}
	}
	return fmt.Errorf("the model needs %s: weights %s, states %s for a context of %d positions, scratch and the rest %s; the device %s may take %s (--memory sets how much); %s",
		cli.Bytes(n.total()), cli.Bytes(n.weights), cli.Bytes(n.caches+n.states), context, cli.Bytes(n.rest), device, cli.Bytes(info.Memory), hint)
}
