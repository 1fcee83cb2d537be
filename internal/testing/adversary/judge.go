package adversary

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Judge looks for an execution of after, a changed copy of before, that gives other
// bytes. It tries so many orders, and returns how the results differ, or "" if it found
// no difference. from says which command of before each command of after was made from.
func Judge(rng *rand.Rand, before, after *ir.Graph, from Origins, tries int) string {
	if why := interfaceDiffers(before, after); why != "" {
		return why
	}
	b, a := NewProgram(before, before, nil), NewProgram(after, before, from)
	for k := range tries {
		params := pickParams(rng, b)
		var want, got []uint64
		end := b.Run(Written(before, 3), &Host{Params: params, Garbage: 1, Fresh: true, Ends: &want})
		a.Run(Written(after, 3), &Host{Params: params, Garbage: 4, Fresh: true, Ends: &got})
		if !slices.Equal(want, got) {
			return fmt.Sprintf("other bytes in the written order, for params %v", params)
		}
		for kind := range 3 {
			if a.Run(Orders(rng, after, 3, kind), &Host{Params: params, Garbage: 5 + uint64(k)}) != end {
				return fmt.Sprintf("other bytes in another order, for params %v", params)
			}
		}
	}
	return ""
}

// interfaceDiffers compares what the host sees.
func interfaceDiffers(b, a *ir.Graph) string {
	if !slices.Equal(b.Params, a.Params) {
		return "other params"
	}
	seen := func(g *ir.Graph) map[string]string {
		out := map[string]string{}
		for i := range g.Memories {
			m := &g.Memories[i]
			if m.Alias != ir.NoMem || m.Kind == ir.Scratch || m.Kind == ir.Argument {
				continue
			}
			bytes := make([]byte, m.Size)
			if m.Init.Kind != ir.InitNone {
				if err := m.WriteInit(bytes); err != nil {
					panic(err)
				}
			}
			out[m.Name] = fmt.Sprint(m.Kind, m.Size, m.DType, m.Shape, m.Storage, m.Align, m.Every, m.Init.Kind == ir.InitNone, bytes)
		}
		return out
	}
	x, y := seen(b), seen(a)
	if len(x) != len(y) {
		return "other memories"
	}
	for name, text := range x {
		if y[name] != text {
			return "another %" + name
		}
	}
	return ""
}
