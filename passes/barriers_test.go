package passes_test

import (
	"context"
	"math/bits"
	"slices"
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
				w := ir.Write{Region: view("write").Contiguous(), Must: true}
				// A second must-write of the same bytes would be invalid.
				w.Must = !slices.ContainsFunc(d.Effects.Writes, func(x ir.Write) bool { return x.Region.Equal(w.Region) })
				d.Effects.Writes = append(d.Effects.Writes, w)
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

// stream lists the commands of some replays in a row: a replay's follow the last
// ones of the one before in the same command buffer.
func stream(nodes []ir.Node, replays int) (out []command) {
	var c command
	for range replays {
		for _, n := range nodes {
			switch n := n.(type) {
			case *ir.Barrier:
				c.epoch++
			case *ir.Commit:
				c.buffer++
				if n.Order != ir.OrderNone {
					c.order++
				}
			default:
				if n, ok := n.(ir.Command); ok {
					c.effects = n.Touches()
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// race returns two commands that conflict and that nothing orders.
func race(cs []command) (i, j int, found bool) {
	for j := range cs {
		for i := range j {
			a, b := &cs[i], &cs[j]
			ordered := a.order < b.order
			if a.buffer == b.buffer {
				ordered = a.epoch < b.epoch
			}
			if !ordered && conflict(a.effects, b.effects) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// counts returns the barriers and the ordered commits.
func counts(nodes []ir.Node) (barriers, ordered int) {
	for _, n := range nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			barriers++
		case *ir.Commit:
			if n.Order != ir.OrderNone {
				ordered++
			}
		}
	}
	return barriers, ordered
}

func runBarriers(t require.TestingT, g *ir.Graph) {
	p, err := passes.ParsePipeline("barriers")
	require.NoError(t, err)
	_, err = passes.Run(context.Background(), g, p, passes.Options{})
	require.NoError(t, err)
}

// Every conflicting pair is ordered, over three replays in a row: by a barrier
// within a command buffer, by an ordered commit across them.
func TestBarriersOrderEveryConflict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 25).Draw(t, "n"), true)
		runBarriers(t, g)
		cs := stream(g.Nodes, 3)
		n := len(cs) / 3
		if i, j, found := race(cs); found {
			t.Fatalf("command %d of replay %d and command %d of replay %d conflict, and nothing orders them", i%n, i/n, j%n, j/n)
		}
		for i, x := range g.Nodes {
			if _, ok := x.(*ir.Barrier); ok {
				_, command := g.Nodes[max(i-1, 0)].(ir.Command)
				require.True(t, i > 0 && command, "a barrier at the head of a command buffer or after another")
			}
		}
	})
}

// Fewer barriers and events never suffice: the test tries all placements on graphs of up to nine
// commands, replayed again and again.
func TestBarriersAreTheFewest(t *testing.T) {
	rotated, trailing := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		g := randomGraph(t, n, n <= 7 && rapid.Bool().Draw(t, "commits"))
		var commands []ir.Node
		bare := []*ir.Commit{}
		for _, x := range g.Nodes {
			if _, ok := x.(*ir.Barrier); ok {
				continue
			}
			if c, ok := x.(*ir.Commit); ok && c.Order == ir.OrderNone {
				bare = append(bare, c)
			}
			commands = append(commands, x)
		}
		_, before := counts(commands)
		bestOrdered, best := len(bare)+1, 0
		for events := range 1 << len(bare) {
			if bits.OnesCount(uint(events)) > bestOrdered {
				continue
			}
			for b, c := range bare {
				c.Order = ir.CommitOrder(events >> b & 1 * int(ir.OrderEvent))
			}
			for places := range 1 << n {
				if bits.OnesCount(uint(events)) == bestOrdered && bits.OnesCount(uint(places)) >= best {
					continue
				}
				var nodes []ir.Node
				at := 0
				for _, x := range commands {
					nodes = append(nodes, x)
					if _, ok := x.(ir.Command); ok {
						if places>>at&1 == 1 {
							nodes = append(nodes, &ir.Barrier{})
						}
						at++
					}
				}
				if _, _, found := race(stream(nodes, 3)); !found {
					bestOrdered, best = bits.OnesCount(uint(events)), bits.OnesCount(uint(places))
				}
			}
		}
		for _, c := range bare {
			c.Order = ir.OrderNone
		}
		runBarriers(t, g)
		got, ordered := counts(g.Nodes)
		require.Equal(t, bestOrdered, ordered-before, "events")
		require.Equal(t, best, got, "barriers")
		if _, ok := g.Nodes[len(g.Nodes)-1].(*ir.Barrier); ok {
			trailing++
		} else if len(bare) == 0 && before == 0 && got > 0 {
			// Barriers stand as late as possible, counted from the start of the list.
			once := stream(g.Nodes, 1)
			for j, start := 0, 0; j < len(once); j++ {
				late := slices.ContainsFunc(once[start:j], func(c command) bool { return conflict(c.effects, once[j].effects) })
				if late {
					start = j
				}
				if late != (j > 0 && once[j].epoch > once[j-1].epoch) {
					rotated++
					break
				}
			}
		}
	})
	t.Logf("%d graphs with a barrier behind the last command, %d others that save it by placing barriers earlier than one replay alone would", trailing, rotated)
}

// The commands and their order stay as they were.
func TestBarriersKeepCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 25).Draw(t, "n"), true)
		var before, after []ir.ID
		ids := func(out *[]ir.ID) {
			for _, n := range g.Nodes {
				if c, ok := n.(ir.Command); ok {
					*out = append(*out, c.Num())
				}
			}
		}
		ids(&before)
		runBarriers(t, g)
		ids(&after)
		require.Equal(t, before, after)
	})
}

// A chain of three, and two fills of the same bytes beside it, the last of which
// conflicts with the first of the next replay. As late as possible, the barriers
// would stand before #2 and #3, and a third one at the end; two are enough.
func TestBarriersMoveForTheNextReplay(t *testing.T) {
	b := ir.NewBuilder("g")
	m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 32, Init: ir.FillU32(0)})
	at := func(i int64) ir.View { return ir.ViewOf(m, 8*i, 8) }
	b.Fill(at(0), 1, "")
	b.Fill(at(1), 2, "")
	b.Copy(at(2), at(0), "")
	b.Copy(at(3), at(2), "")
	g, err := b.Graph()
	require.NoError(t, err)
	g.Nodes = append(g.Nodes, &ir.Fill{ID: 9, Dst: at(1), Value: 3})
	runBarriers(t, g)
	var got []string
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			got = append(got, c.Num().String())
		} else {
			got = append(got, "|")
		}
	}
	require.Equal(t, "#0 | #1 #2 | #3 #9", join(got))
}
