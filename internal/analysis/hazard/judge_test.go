package hazard_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// small draws a graph of a few commands on a few bytes, whose barriers and commits were
// placed without regard to what the commands touch. If moved is set, a param moves some
// of the ranges.
func small(t *rapid.T, moved bool) *ir.Graph {
	b := ir.NewBuilder("g")
	if moved {
		b.Param("p", 0, 2)
	}
	mems := []ir.MemID{
		b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4}),
		b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 4}),
		b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4}),
		b.Memory(ir.Memory{Name: "st", Kind: ir.State, Size: 4}),
	}
	k := b.Kernel(ir.Kernel{Name: "k", Library: ir.Library{Kind: ir.Metallib, Path: "m"}, Function: "f"})
	region := func(least int) ir.Region {
		m := rapid.SampledFrom(mems[least:]).Draw(t, "memory")
		lo := rapid.Int64Range(0, 3).Draw(t, "lo")
		r := ir.ViewOf(m, lo, rapid.Int64Range(0, 4-lo).Draw(t, "len")).Contiguous()
		if moved && lo+r.Run.Const <= 2 && rapid.Bool().Draw(t, "moved") {
			p := ir.Linear(0, ir.Term{Param: 0, Coeff: 1})
			if rapid.Bool().Draw(t, "longer") {
				r.Run = r.Run.Add(p)
			} else {
				r.Off = r.Off.Add(p)
			}
			return r
		}
		if lo == 0 && rapid.IntRange(0, 3).Draw(t, "strided") == 3 {
			r.Run, r.Dims = ir.Const(1), []ir.Dim{{Count: ir.Const(2), Stride: rapid.Int64Range(1, 3).Draw(t, "stride")}}
		}
		return r
	}
	for range rapid.IntRange(1, 6).Draw(t, "commands") {
		switch rapid.IntRange(0, 6).Draw(t, "mark") {
		case 0, 1:
			b.Barrier()
		case 2:
			b.Commit(ir.OrderNone, "")
		case 3:
			b.Commit(ir.OrderEvent, "")
		}
		e := &ir.Effects{Complete: true}
		for range rapid.IntRange(0, 2).Draw(t, "reads") {
			e.Reads = append(e.Reads, region(0))
		}
		for range rapid.IntRange(1, 2).Draw(t, "writes") {
			e.Writes = append(e.Writes, ir.Write{Region: region(1), Must: rapid.Bool().Draw(t, "must")})
		}
		b.Dispatch(ir.Dispatch{Kernel: k, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}, Effects: e})
	}
	g := b.Unfinished()
	switch rapid.IntRange(0, 9).Draw(t, "ordering") {
	case 9:
		g.Ordering = ir.Serial
	case 6, 7, 8:
		edged(t, g)
	}
	return g
}

// edged orders g by some edges in place of its barriers and commits.
func edged(t *rapid.T, g *ir.Graph) {
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n ir.Node) bool { _, ok := n.(ir.Command); return !ok })
	g.Ordering = ir.ByEdges
	if n := len(g.Nodes); rapid.Bool().Draw(t, "join") {
		g.Nodes = slices.Insert(g.Nodes, rapid.IntRange(0, n).Draw(t, "place"), ir.Node(&ir.Join{ID: 100}))
	}
	for j := range g.Nodes {
		for i := range j {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 2 {
				g.Edges = append(g.Edges, ir.Edge{From: g.Nodes[i].(ir.Command).Num(), To: g.Nodes[j].(ir.Command).Num()})
			}
		}
	}
	g.SortEdges()
}

// replayed runs the commands in the given order on bytes that record where they come
// from, and returns the bytes of outputs and states.
func replayed(g *ir.Graph, commands []*ir.Dispatch, order []int, undefined uint64) string {
	mem := make([][4]uint64, len(g.Memories))
	for m := range mem {
		for i := range mem[m] {
			mem[m][i] = uint64(100*m + i)
			if k := g.Memories[m].Kind; k == ir.Scratch || k == ir.Output {
				mem[m][i] += undefined
			}
		}
	}
	for _, n := range order {
		d := commands[n]
		h := fnv.New64a()
		fmt.Fprint(h, n)
		look := func(r ir.Region) {
			r.Runs(nil, func(lo, end int64) bool {
				fmt.Fprint(h, mem[r.Mem][lo:end])
				return true
			})
		}
		for _, r := range d.Effects.Reads {
			look(r)
		}
		for _, w := range d.Effects.Writes {
			if !w.Must {
				look(w.Region)
			}
		}
		for k, w := range d.Effects.Writes {
			w.Runs(nil, func(lo, end int64) bool {
				for i := lo; i < end; i++ {
					mem[w.Mem][i] = h.Sum64() + uint64(1000*k) + uint64(i)
				}
				return true
			})
		}
	}
	return fmt.Sprint(mem[2], mem[3])
}

// orders calls yield with every order that barriers and commits, or edges, allow.
func orders(g *ir.Graph, yield func([]int)) {
	var places []int // of the dispatches
	for i, n := range g.Nodes {
		if _, ok := n.(*ir.Dispatch); ok {
			places = append(places, i)
		}
	}
	path := make([][]bool, len(g.Nodes))
	for i, w := 0, g.Waits(); i < len(g.Nodes); i++ {
		path[i] = make([]bool, len(g.Nodes))
		same, _ := w.Of(i)
		for _, k := range same {
			path[i][k] = true
			for j := range k {
				path[i][j] = path[i][j] || path[k][j]
			}
		}
	}
	type spot struct{ epoch, buffer, span int }
	var spots []spot
	var at spot
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			at.epoch++
		case *ir.Commit:
			at.epoch++
			at.buffer++
			if n.Order != ir.OrderNone {
				at.span++
			}
		case *ir.Dispatch:
			spots = append(spots, at)
		}
	}
	before := func(i, j int) bool {
		if g.Ordering == ir.ByEdges {
			return path[places[j]][places[i]]
		}
		p, q := spots[i], spots[j]
		return i < j && (g.Ordering == ir.Serial || p.span != q.span || p.buffer == q.buffer && p.epoch != q.epoch)
	}
	var order []int
	done := make([]bool, len(spots))
	var extend func()
	extend = func() {
		if len(order) == len(spots) {
			yield(order)
			return
		}
	next:
		for i := range spots {
			if done[i] {
				continue
			}
			for j := range spots {
				if !done[j] && before(j, i) {
					continue next
				}
			}
			done[i] = true
			order = append(order, i)
			extend()
			order = order[:len(order)-1]
			done[i] = false
		}
	}
	extend()
}

// For a graph without params, Judge says exactly whether the result depends on the
// order of the commands and, if it does not, whether it depends on what scratch memory
// and outputs held at first.
func TestJudgeAgainstEveryOrder(t *testing.T) {
	sample.Long(t)
	races, undefined := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := small(t, false)
		var commands []*ir.Dispatch
		var list []int
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				list = append(list, len(commands))
				commands = append(commands, d)
			}
		}
		want := replayed(g, commands, list, 0)
		differs := false
		orders(g, func(order []int) { differs = differs || replayed(g, commands, order, 0) != want })
		j := hazard.NewTable(context.Background(), g).Judge()
		require.Empty(t, j.Unsure, "everything is constant")
		require.Equal(t, differs, len(j.Races) > 0, "%v\n%s", j.Races, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}))
		if differs {
			races++
			return
		}
		// An output that nobody writes is undefined, but that is no fault.
		depends := reads(g, commands, list)
		require.Equal(t, depends, len(j.Undefined) > 0, "%v\n%s", j.Undefined, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}))
		if depends {
			undefined++
		}
	})
	require.Greater(t, races, 5)
	require.Greater(t, undefined, 5)
}

// at returns g for one value of its param.
func at(g *ir.Graph, p uint32) (*ir.Graph, []*ir.Dispatch, []int) {
	out := g.Clone()
	var commands []*ir.Dispatch
	var list []int
	for _, n := range out.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		fix := func(r *ir.Region) {
			r.Off, r.Run = ir.Const(r.Off.Eval([]uint32{p})), ir.Const(r.Run.Eval([]uint32{p}))
		}
		for i := range d.Effects.Reads {
			fix(&d.Effects.Reads[i])
		}
		for i := range d.Effects.Writes {
			fix(&d.Effects.Writes[i].Region)
		}
		list = append(list, len(commands))
		commands = append(commands, d)
	}
	return out, commands, list
}

// If params move ranges, a fault occurs for the values that it names; and if there is
// no fault and nothing is unsure, there is no fault for any value.
func TestJudgeWithParams(t *testing.T) {
	races, clean := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := small(t, true)
		j := hazard.NewTable(context.Background(), g).Judge()
		for _, r := range j.Races {
			p := uint32(0)
			if r.Params != nil {
				p = r.Params[0]
			}
			fixed, _, _ := at(g, p)
			table := hazard.NewTable(context.Background(), fixed)
			require.NotEqual(t, hazard.None, table.Between(int(r.Earlier), int(r.Later)))
			races++
		}
		for _, u := range j.Undefined {
			p := uint32(0)
			if u.Params != nil {
				p = u.Params[0]
			}
			fixed, commands, _ := at(g, p)
			require.True(t, slices.ContainsFunc(hazard.NewTable(context.Background(), fixed).Judge().Undefined, func(x hazard.Undefined) bool { return x.Command == u.Command }), "nobody sees it with these params")
			reader := hazard.NewTable(context.Background(), g).Node(int(u.Command)).Num() // joins have numbers too
			for _, d := range commands {
				if d.ID == reader {
					break
				}
				for _, w := range d.Effects.Writes {
					w.Runs(nil, func(lo, end int64) bool {
						require.False(t, w.Mem == u.Mem && lo < u.End && u.Lo < end)
						return true
					})
				}
			}
		}
		if len(j.Races) > 0 || len(j.Unsure) > 0 {
			return
		}
		clean++
		for p := range uint32(3) {
			fixed, commands, list := at(g, p)
			want := replayed(fixed, commands, list, 0)
			orders(fixed, func(order []int) { require.Equal(t, want, replayed(fixed, commands, order, 0)) })
		}
	})
	require.Greater(t, races, 5)
	require.Greater(t, clean, 5)
}

// reads reports whether a command whose results are seen depends on bytes that nobody
// wrote: whether other contents of these bytes change what it writes.
func reads(g *ir.Graph, commands []*ir.Dispatch, list []int) bool {
	written := func(undefined uint64) (out []string) {
		// For each byte of outputs and states: what its last writer computed.
		var owners [][4]int
		for range g.Memories {
			owners = append(owners, [4]int{-1, -1, -1, -1})
		}
		for _, n := range list {
			for _, w := range commands[n].Effects.Writes {
				w.Runs(nil, func(lo, end int64) bool {
					for i := lo; i < end; i++ {
						owners[w.Mem][i] = n
					}
					return true
				})
			}
		}
		bytes := [2][4]uint64{}
		text := replayed(g, commands, list, undefined)
		_, err := fmt.Sscanf(text, "[%d %d %d %d] [%d %d %d %d]", &bytes[0][0], &bytes[0][1], &bytes[0][2], &bytes[0][3], &bytes[1][0], &bytes[1][1], &bytes[1][2], &bytes[1][3])
		if err != nil {
			panic(err)
		}
		for m := range bytes {
			for i, v := range bytes[m] {
				if owners[2+m][i] >= 0 {
					out = append(out, fmt.Sprint(v))
				}
			}
		}
		return out
	}
	return fmt.Sprint(written(0)) != fmt.Sprint(written(7777))
}
