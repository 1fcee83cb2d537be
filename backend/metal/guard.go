//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/backend/internal/plan"
)

// guard is the memory of a plan's guards (plan.Guarded), kernels that check grids which the GPU takes from
// memory. It serves one replay in flight. Nil: the plan has no guards.
type guard struct{ buffer *buffer }

func (d *Device) newGuard(p *plan.Plan) (*guard, error) {
	if len(p.Guards) == 0 {
		return nil, nil
	}
	b, err := d.alloc(int64(len(p.Guards))*plan.GuardBytes, false)
	if err != nil {
		return nil, err
	}
	clear(b.data)
	return &guard{b}, nil
}

// at returns the place of this memory.
func (g *guard) at() at {
	if g == nil {
		return at{}
	}
	return at{buffer: g.buffer.id}
}

// check returns an error if a guard has found counts of threadgroups that exceed the graph's max. The replay
// must have completed: each guard has then written its words, over those of earlier replays. name describes
// the dispatch of guard i.
func (g *guard) check(name func(i int) string) error {
	if g == nil {
		return nil
	}
	for i := range len(g.buffer.data) / plan.GuardBytes {
		words := g.buffer.data[i*plan.GuardBytes:][:plan.GuardBytes]
		if found := binary.LittleEndian.Uint32(words[12:]); found != 0 {
			return fmt.Errorf("metal: %s: takes its grid from memory, where %d threadgroups stand in dimension %d: the graph says at most %d",
				name(i), binary.LittleEndian.Uint32(words[16:]), found-1, binary.LittleEndian.Uint32(words[20:]))
		}
	}
	return nil
}

func (g *guard) close() {
	if g != nil {
		_ = g.buffer.Close()
	}
}
