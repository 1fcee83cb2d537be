package page

import (
	"context"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// value is bytes of scratch memory from the command that writes them to the last one that may read
// them before the next replay. Commands are numbered in the order of the list, joins included.
type value struct {
	writer, last int32
	mem          ir.MemID // a root
	lo, end      int64    // of mem; if params move the bytes, all that they may be
}

// scratch returns the values of g, a graph with effects, by their writers. known is false if
// commands of unknown effects may read more than that.
func scratch(ctx context.Context, g *ir.Graph) (values []value, known bool) {
	f := dataflow.Build(ctx, g)
	known = f.Pillar() < 0
	var polls interrupt.Every
	for i := range f.Commands {
		polls.Poll(ctx, 64)
		defs := f.Writes(i)
		for k := range defs {
			d := &defs[k]
			if d.Region.Mem == ir.NoMem || g.Memories[d.Region.Mem].Kind != ir.Scratch {
				continue
			}
			lo, end := f.Hull(&d.Region)
			v := value{writer: int32(i), last: int32(i), mem: d.Region.Mem, lo: lo, end: end}
			for _, r := range d.Readers {
				v.last = max(v.last, r.Command)
			}
			values = append(values, v)
		}
	}
	return values, known
}

// bases places the scratch memories of g behind one another, for a picture with one axis of
// addresses. Other memories have −1. size is what all take.
func bases(g *ir.Graph) (base []int64, size int64) {
	base = slices.Repeat([]int64{-1}, len(g.Memories))
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Kind == ir.Scratch && m.Alias == ir.NoMem {
			base[i] = size
			if m.Size > math.MaxInt64/4-size {
				return base, size // nothing has so much memory
			}
			size += m.Size
		}
	}
	return base, size
}
