package passes_test

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// randomGraph draws commands over three small memories: fills, copies, and
// dispatches of a foreign kernel with declared, unknown or incomplete effects,
// with barriers and commits strewn among them.
func randomGraph(t *rapid.T, commands int, commits bool) *ir.Graph {
	b := ir.NewBuilder("g")
	for _, n := range []string{"a", "b", "c"} {
		b.Memory(ir.Memory{Name: n, Kind: ir.Scratch, Size: 64})
	}
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	view := func(what string) ir.View {
		lo := rapid.Int64Range(0, 7).Draw(t, what)
		return ir.ViewOf(ir.MemID(rapid.IntRange(0, 2).Draw(t, what+" mem")), 8*lo, 8*rapid.Int64Range(1, 8-lo).Draw(t, what+" len"))
	}
	for range commands {
		switch rapid.IntRange(0, 9).Draw(t, "mark") {
		case 0, 1:
			b.Barrier()
		case 2:
			if commits {
				b.Commit(ir.CommitOrder(rapid.IntRange(0, 2).Draw(t, "order")), "")
			}
		}
		switch rapid.IntRange(0, 5).Draw(t, "command") {
		case 0:
			b.Fill(view("fill"), 0, "")
		case 1:
			src := view("src")
			dst := src
			dst.Mem = (src.Mem + 1) % 3
			b.Copy(dst, src, "")
		default:
			d := b.Dispatch(ir.Dispatch{Kernel: k, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}})
			if rapid.IntRange(0, 12).Draw(t, "unknown") == 0 {
				continue
			}
			d.Effects = &ir.Effects{Complete: rapid.IntRange(0, 12).Draw(t, "incomplete") > 0}
			for range rapid.IntRange(0, 2).Draw(t, "reads") {
				d.Effects.Reads = append(d.Effects.Reads, view("read").Contiguous())
			}
			for range rapid.IntRange(0, 2).Draw(t, "writes") {
				d.Effects.Writes = append(d.Effects.Writes, ir.Write{Region: view("write").Contiguous(), Must: true})
			}
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// conflict compares two commands byte by byte: the oracle.
func conflict(a, b *ir.Effects) bool {
	if !a.Known() || !b.Known() {
		return true
	}
	set := func(e *ir.Effects) (r, w [3]uint64) {
		mask := func(x ir.Region) uint64 {
			m := uint64(0)
			for i := x.Off.Const; i < x.Off.Const+x.Run.Const; i++ {
				m |= 1 << i
			}
			return m
		}
		for _, x := range e.Reads {
			r[x.Mem] |= mask(x)
		}
		for _, x := range e.Writes {
			w[x.Mem] |= mask(x.Region)
		}
		return r, w
	}
	ra, wa := set(a)
	rb, wb := set(b)
	for i := range 3 {
		if wa[i]&(rb[i]|wb[i]) != 0 || ra[i]&wb[i] != 0 {
			return true
		}
	}
	return false
}

type command struct {
	effects *ir.Effects
	epoch   int // counts barriers
	buffer  int // counts commits
	order   int // counts ordered commits
}

func commandsOf(g *ir.Graph) (out []command, barriers int) {
	var c command
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			c.epoch++
			barriers++
		case *ir.Commit:
			c.buffer++
			c.epoch++
			if n.Order != ir.OrderNone {
				c.order++
			}
		default:
			c.effects = ir.NodeEffects(n)
			out = append(out, c)
		}
	}
	return out, barriers
}

func runBarriers(t require.TestingT, g *ir.Graph) {
	p, err := passes.ParsePipeline("barriers")
	require.NoError(t, err)
	_, err = passes.Run(g, p, passes.Options{})
	require.NoError(t, err)
}

// Every conflicting pair is ordered: by a barrier within a command buffer, by
// an ordered commit across them.
func TestBarriersOrderEveryConflict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 25).Draw(t, "n"), true)
		runBarriers(t, g)
		cs, _ := commandsOf(g)
		for j := range cs {
			for i := range j {
				if !conflict(cs[i].effects, cs[j].effects) {
					continue
				}
				if cs[i].buffer == cs[j].buffer {
					require.NotEqual(t, cs[i].epoch, cs[j].epoch, "commands %d and %d conflict in one epoch", i, j)
				} else {
					require.NotEqual(t, cs[i].order, cs[j].order, "commands %d and %d conflict across commits that order nothing", i, j)
				}
			}
		}
	})
}

// No placement has fewer barriers: all subsets of places are tried on graphs of
// up to nine commands.
func TestBarriersAreTheFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 9).Draw(t, "n"), false)
		runBarriers(t, g)
		cs, got := commandsOf(g)
		best := len(cs)
		for places := range 1 << max(len(cs)-1, 0) { // bit i: a barrier after command i
			if bits.OnesCount(uint(places)) >= best {
				continue
			}
			ok := true
			for j := range cs {
				for i := range j {
					if conflict(cs[i].effects, cs[j].effects) && places>>i&(1<<(j-i)-1) == 0 {
						ok = false
					}
				}
			}
			if ok {
				best = bits.OnesCount(uint(places))
			}
		}
		if len(cs) == 1 {
			best = 0
		}
		require.Equal(t, best, got)
	})
}

// The commands and their order stay as they were.
func TestBarriersKeepCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 25).Draw(t, "n"), true)
		var before, after []ir.ID
		ids := func(out *[]ir.ID) {
			for _, n := range g.Nodes {
				if id, ok := ir.NodeID(n); ok {
					*out = append(*out, id)
				}
			}
		}
		ids(&before)
		runBarriers(t, g)
		ids(&after)
		require.Equal(t, before, after)
	})
}
