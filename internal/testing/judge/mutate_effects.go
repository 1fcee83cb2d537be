package judge

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

func withEffects(d *ir.Dispatch) bool {
	return d.Effects != nil && len(d.Effects.Reads)+len(d.Effects.Writes) > 0
}

func narrowEffect(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode(rng, g, withEffects)
	if !ok {
		return false
	}
	r, _ := pick(rng, regions(d.Effects))
	switch unit := unitOf(g); rng.IntN(3) {
	case 0:
		r.Run = r.Run.AddConst(-unit)
	case 1:
		r.Off, r.Run = r.Off.AddConst(unit), r.Run.AddConst(-unit)
	default:
		if len(r.Dims) == 0 {
			return false
		}
		r.Dims[0].Count = r.Dims[0].Count.AddConst(-1)
	}
	return true
}

func removeEffect(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode(rng, g, withEffects)
	if !ok {
		return false
	}
	e := d.Effects
	if i := rng.IntN(len(e.Reads) + len(e.Writes)); i < len(e.Reads) {
		e.Reads = slices.Delete(e.Reads, i, i+1)
	} else {
		i -= len(e.Reads)
		e.Writes = slices.Delete(e.Writes, i, i+1)
	}
	return true
}

func widenEffect(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode(rng, g, withEffects)
	if !ok {
		return false
	}
	unit := unitOf(g)
	if rng.IntN(2) == 0 {
		r, _ := pick(rng, regions(d.Effects))
		r.Run = r.Run.AddConst(unit)
		return true
	}
	m := ir.MemID(rng.IntN(len(g.Memories)))
	r := ir.ViewOf(m, 0, min(unit, g.Memories[m].Size)).Contiguous()
	if g.Memories[m].Kind.ReadOnly() || rng.IntN(2) == 0 {
		d.Effects.Reads = append(d.Effects.Reads, r)
	} else {
		d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: r, Must: rng.IntN(2) == 0})
	}
	return true
}

// forgetEffects makes a dispatch's effects unknown, or claims that unknown effects are
// complete.
func forgetEffects(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return false
	}
	switch {
	case d.Effects == nil:
		d.Effects = &ir.Effects{Complete: true}
	case rng.IntN(2) == 0:
		d.Effects.Complete = !d.Effects.Complete
	default:
		d.Effects = nil
	}
	return true
}

func flipMust(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode(rng, g, func(d *ir.Dispatch) bool { return d.Effects != nil && len(d.Effects.Writes) > 0 })
	if !ok {
		return false
	}
	w := &d.Effects.Writes[rng.IntN(len(d.Effects.Writes))]
	w.Must = !w.Must
	return true
}

// forgeFrom makes a command claim that it came from others.
func forgeFrom(rng *rand.Rand, g *ir.Graph) bool {
	at := indices(g, isCommand)
	i, ok := pick(rng, at)
	if !ok {
		return false
	}
	from := []ir.ID{ir.ID(rng.IntN(len(at) + 2))}
	if rng.IntN(3) == 0 {
		from = append(from, from[0]+1)
	}
	c := g.Nodes[i].(ir.Command)
	c.Renumber(c.Num(), from)
	return true
}
