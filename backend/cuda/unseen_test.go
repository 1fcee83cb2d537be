//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// touched has the bytes that a command reads and writes, by memory.
type touched struct{ reads, writes map[ir.MemID][]bool }

// shares reports whether two sets have a byte in common, and names a memory of it.
func shares(g *ir.Graph, a, b map[ir.MemID][]bool) (string, bool) {
	for m := range g.Memories {
		x, y := a[ir.MemID(m)], b[ir.MemID(m)]
		for i := range min(len(x), len(y)) {
			if x[i] && y[i] {
				return g.Memories[m].Name, true
			}
		}
	}
	return "", false
}

// annotated returns a copy of a graph whose dispatches declare what they read and write.
func annotated(t testing.TB, g *ir.Graph) *ir.Graph {
	t.Helper()
	a := g.Clone()
	p, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	_, err = passes.Run(t.Context(), a, p, passes.Options{})
	require.NoError(t, err)
	return a
}

// chained returns the commands of a graph in the order of its list, in which a chain runs them, and what they touch.
func chained(a *ir.Graph) (nodes []ir.Node, of []touched) {
	var params []uint32
	for i := range a.Params {
		m := &a.Params[i]
		params = append(params, uint32(m.Min+math.Trunc((m.Max-m.Min)/4))) // the value that the function open sets
	}
	mark := func(in map[ir.MemID][]bool, r ir.Region) {
		root, base := a.Root(r.Mem)
		if in[root] == nil {
			in[root] = make([]bool, a.Memories[root].Size)
		}
		r.Runs(params, func(lo, hi int64) bool {
			for i := lo; i < hi; i++ {
				in[root][base+i] = true
			}
			return true
		})
	}
	for _, n := range a.Nodes {
		if _, ok := n.(ir.Command); !ok {
			continue
		}
		x := touched{map[ir.MemID][]bool{}, map[ir.MemID][]bool{}}
		switch n := n.(type) {
		case *ir.Copy:
			mark(x.reads, n.Src.Contiguous())
			mark(x.writes, n.Dst.Contiguous())
		case *ir.Fill:
			mark(x.writes, n.Dst.Contiguous())
		case *ir.Dispatch:
			if n.Effects == nil {
				for i := range n.Bindings {
					b := &n.Bindings[i]
					if b.Kind != ir.BindView {
						continue
					}
					mark(x.reads, b.View.Contiguous())
					if arg, _ := a.Kernels[n.Kernel].Arg(b.Slot); arg.Access != ir.ReadArg {
						mark(x.writes, b.View.Contiguous())
					}
				}
				break
			}
			for _, r := range n.Effects.Reads {
				mark(x.reads, r)
			}
			for _, w := range n.Effects.Writes {
				mark(x.writes, w.Region)
			}
		}
		nodes, of = append(nodes, n), append(of, x)
	}
	return nodes, of
}

// Reasons for which a kernel waits, from those whose neglect shows at once to those whose neglect cannot show.
const (
	forReads   = "reads what the one before it writes"
	forWrites  = "writes what the one before it reads or writes: shows only where it overtakes that one"
	forBehind  = "the one behind it uses what the one before it writes: shows only where that one outlives it"
	forEarlier = "needs only commands before the one before it, which has waited for them before it let this one begin"
	forCopies  = "stands behind copies, fills or nothing: no kernel before it may still run"
	forNothing = "shares with no command before it anything that is written"
)

// waitOf returns why a kernel has to wait when the commands of a graph are launched as a chain: the first of the
// reasons above that one of its dispatches has, with a memory. Where a removed wait had no effect, only the first
// reason needs an explanation: the kernel before it has ended too quickly.
func waitOf(a *ir.Graph, kernel string) (reason, detail string) {
	nodes, of := chained(a)
	order := []string{forReads, forWrites, forBehind, forEarlier, forCopies, forNothing}
	best := len(order) - 1
	note := func(why, memory string) {
		for i, r := range order {
			if r == why && i < best {
				best, detail = i, memory
			}
		}
	}
	is := func(n ir.Node) bool {
		d, ok := n.(*ir.Dispatch)
		return ok && a.Kernels[d.Kernel].Function == kernel
	}
	for i, n := range nodes {
		if !is(n) {
			continue
		}
		// Dispatches of the same kernel in a row do not wait either: look at what is before all of them.
		from := i - 1
		for from > 0 && is(nodes[from]) {
			from--
		}
		for j := range i {
			memory, reads := shares(a, of[i].reads, of[j].writes)
			over, writes := shares(a, of[i].writes, of[j].writes)
			if !writes {
				over, writes = shares(a, of[i].writes, of[j].reads)
			}
			_, kernelBefore := nodes[i-1].(*ir.Dispatch)
			switch {
			case !reads && !writes:
			case !kernelBefore:
				note(forCopies, "")
			case j >= from && reads:
				note(forReads, memory)
			case j >= from:
				note(forWrites, over)
			case reads:
				note(forEarlier, memory)
			default:
				note(forEarlier, over)
			}
		}
		if i > 0 && i+1 < len(nodes) {
			memory, uses := shares(a, of[i+1].reads, of[i-1].writes)
			if !uses {
				memory, uses = shares(a, of[i+1].writes, of[i-1].writes)
			}
			if _, ok := nodes[i-1].(*ir.Dispatch); ok && uses {
				note(forBehind, memory)
			}
		}
	}
	return order[best], detail
}

// unseenRow is a line of the list of waits whose removal was not seen, for docs/cuda.md.
func unseenRow(name string, annotated *ir.Graph, kernel string) string {
	reason, memory := waitOf(annotated, kernel)
	if memory != "" {
		reason += fmt.Sprintf(" (`%s`)", memory)
	}
	return fmt.Sprintf("| %s | `%s` | %s |", name, kernel, reason)
}

// TestWaitOf: the reason for a wait follows from the bytes that neighbouring commands read and write.
func TestWaitOf(t *testing.T) {
	b := ir.NewBuilder("row")
	var mem []ir.MemID
	for i := range 5 {
		mem = append(mem, b.Memory(ir.Memory{Name: fmt.Sprint("m", i), Kind: ir.State, Size: 16}))
	}
	g := b.Unfinished()
	names := "abcdegff"
	effects := [][2]int{{0, 1}, {1, 2}, {0, 3}, {2, 4}, {0, 2}, {0, 3}, {0, 4}, {3, 1}} // read, written
	for i, e := range effects {
		g.Kernels = append(g.Kernels, ir.Kernel{Function: names[i : i+1]})
		d := &ir.Dispatch{Kernel: ir.KernelID(i), Effects: &ir.Effects{
			Reads:  []ir.Region{ir.ViewOf(mem[e[0]], 0, 16).Contiguous()},
			Writes: []ir.Write{{Region: ir.ViewOf(mem[e[1]], 0, 16).Contiguous(), Must: true}},
		}}
		d.ID = ir.ID(i)
		g.Nodes = append(g.Nodes, d)
	}
	for kernel, want := range map[string]string{"a": forNothing, "b": forReads, "c": forBehind, "d": forEarlier, "e": forWrites, "f": forReads} {
		reason, _ := waitOf(g, kernel)
		assert.Equal(t, want, reason, kernel)
	}
	assert.Equal(t, "| row | `b` | "+forReads+" (`m1`) |", unseenRow("row", g, "b"))
}
