//go:build linux

package metal_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// edge is a message that orders commands of a graph, such as a barrier or a fence's wait.
type edge struct {
	selector string
	nth      int       // which message with this selector in a replay, from 1; negative: from the end
	first    bool      // it is sent for the first replay only
	without  *ir.Graph // the graph without this order
	what     string    // describes it in failures
}

// edges returns the messages that order the commands of a graph's replay in one of the ways.
func edges(t *testing.T, g *ir.Graph, w *way) (out []edge) {
	t.Helper()
	stored := w.device.Plan == metal.Indirect || w.device.Plan == metal.IndirectBarriers
	o := plan.Options{Most: 500, Whole: stored}
	p, err := plan.Lower(t.Context(), g, o)
	require.NoError(t, err)
	inside := map[int32]bool{}      // barrier operations that become setBarrier of an indirect command
	nth, told := map[int32]int{}, 0 // by barrier operation: which memoryBarrierWithScope: of the replay it is
	if stored {
		s := plan.Store(p, 1<<14, w.device.Plan == metal.IndirectBarriers)
		for _, c := range s.Commands {
			for i := c.First; i < c.Dispatch; i++ {
				if p.Ops[i].Kind == plan.Barrier && c.Barrier {
					inside[i] = true
				}
			}
		}
		// For some of these the encoder gets a barrier too.
		for _, step := range s.Steps {
			for i := step.First; step.Kind == plan.Emit && i < step.End; i++ {
				if p.Ops[i].Kind == plan.Barrier {
					told++
					nth[i] = told
				}
			}
		}
	}
	// Barriers, each before the dispatch that comes next.
	command := 0
	for i := range p.Ops {
		if p.Ops[i].Kind != plan.Barrier || w.device.Fences { // the ways without fences test them
			continue
		}
		next := i
		for p.Ops[next].Kind != plan.Dispatch && p.Ops[next].Kind != plan.DispatchIndirect {
			next++
		}
		node := int(p.Grids[p.Ops[next].Index].Node)
		e := edge{selector: "memoryBarrierWithScope:", without: noBarrier(g, node), what: fmt.Sprintf("barrier before %s", g.DescribeNode(node))}
		_, carry := g.Nodes[node].(*ir.Carry)
		if inside[int32(i)] {
			command++
			e.selector, e.first, e.nth = "setBarrier", true, command
		} else {
			if !stored {
				told++
				nth[int32(i)] = told
			}
			e.nth = nth[int32(i)]
		}
		if !carry { // a single replay does not run carries
			out = append(out, e)
		}
	}
	// Between command buffers, fences order; without fences, the tracking of declared resources.
	for i := 1; i < len(p.Buffers); i++ {
		apart := noCommit(g, i)
		what := fmt.Sprintf("command buffers %d and %d", i, i+1)
		switch {
		case w.device.Fences:
			out = append(out, edge{selector: "waitForFence:", nth: -(len(p.Buffers) - i), without: apart, what: "wait between " + what})
			out = append(out, edge{selector: "updateFence:", nth: i, without: apart, what: "update between " + what})
		case stored && len(p.Buffers) == 2: // each declares read-only buffers first, then the rest
			out = append(out, edge{selector: "useResources:count:usage:", nth: -1, without: apart, what: "declaration of the later of " + what})
		}
	}
	return out
}

// noBarrier returns the graph without the barriers between the command at place node and the one before it.
func noBarrier(g *ir.Graph, node int) *ir.Graph {
	out := g.Clone()
	for i := node - 1; i >= 0; i-- {
		switch out.Nodes[i].(type) {
		case *ir.Barrier:
			out.Nodes = slices.Delete(out.Nodes, i, i+1)
		case ir.Command, *ir.Commit:
			return out
		}
	}
	return out
}

// noCommit returns the graph with an n-th commit that orders nothing. Commits without commands do not count.
func noCommit(g *ir.Graph, n int) *ir.Graph {
	out := g.Clone()
	some := false
	for _, x := range out.Nodes {
		switch x := x.(type) {
		case ir.Command:
			some = true
		case *ir.Commit:
			if some {
				n--
			}
			if some = false; n == 0 {
				x.Order = ir.OrderNone
				return out
			}
		}
	}
	return out
}

// conflicts reports whether a graph has a race: two unordered commands touch the same bytes, and one of them
// writes. known: it has no faults of other kinds.
func conflicts(t *testing.T, g *ir.Graph) (some, known bool) {
	t.Helper()
	r, err := meaning.Of(t.Context(), g)
	require.NoError(t, err)
	for _, f := range r.Faults {
		if f.Kind != "race" {
			return false, false
		}
	}
	return r.Err() != nil, true
}

// TestOrderEdges drops each message that orders commands, one at a time. If that gives the graph a race, it
// must be noticed: in some order of the GPU the results differ, or one of the stand-in's rules is broken.
// Messages whose loss makes no race are counted.
func TestOrderEdges(t *testing.T) {
	sample.Seldom(t)
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	soft, err := fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer soft.Close()
	all := testGraphs(t)
	graphs := map[string]*ir.Graph{"workload": newWorkload(t).graphs[0]}
	for name, g := range all {
		if os.Getenv("MLXC_LONG") != "" || !strings.HasPrefix(name, "llama") {
			graphs[name] = g
		}
	}
	unknown := 0
	needed, free := map[string]int{}, map[string]int{}
	for _, name := range []string{"concurrent", "indirect", "indirect-barriers", "concurrent, fences", "indirect, fences"} {
		w := wayNamed(name)
		m := l.Serve(t, w.on(soft, 1))
		d := open(t, w.options())
		for name, g := range graphs {
			if g.Ordering != ir.ByBarriers || w.name == "concurrent" && name != "workload" { // TestBarriers tests the others
				continue
			}
			b := compile(t, d, g)
			want := b.run(t)
			for _, e := range edges(t, g, w) {
				conflict, known := conflicts(t, e.without)
				if !known {
					unknown++
					continue
				}
				where := fmt.Sprintf("%s, %s: %s", w.name, name, e.what)
				seen, hit := false, false
				if e.first {
					b.close(t)
					b = compile(t, d, g)
				}
				for seed := uint64(1); seed <= 60 && !seen; seed++ {
					if seed > 3 && !conflict {
						break
					}
					m.SetSeed(seed)
					if nth := e.nth; !e.first || seed == 1 {
						if nth < 0 { // counts from the end of a replay
							m.Count()
							b.run(t)
							nth += 1 + heard(m, e.selector)
						}
						m.Mishear(fakemetal.Mishearing{Selector: e.selector, Nth: nth, How: fakemetal.Drop})
					}
					seen = !slices.Equal(want, b.run(t)) || len(l.Failures()) > 0
					hit = hit || m.Misheard() > 0
				}
				assert.True(t, hit, "%s: there is no such message", where)
				kind := w.name + ": " + e.selector
				switch {
				case conflict:
					assert.True(t, seen, "%s: no order shows that it is missing", where)
					needed[kind]++
				case e.selector == "memoryBarrierWithScope:" || e.selector == "setBarrier":
					assert.False(t, seen, "%s: it is missed though nothing conflicts", where)
					free[kind]++
				case !seen: // without this wait, later waits cover less, so it may be noticed all the same
					free[kind]++
				}
				if e.first {
					b.close(t)
					b = compile(t, d, g)
				}
			}
			b.close(t)
		}
		require.NoError(t, d.Close())
		m.Close()
		assert.Empty(t, l.Failures(), name)
	}
	assert.Zero(t, unknown)
	for kind, least := range map[string]int{
		"indirect: memoryBarrierWithScope:": 50, "indirect-barriers: setBarrier": 49, "indirect: useResources:count:usage:": 1,
		"concurrent, fences: waitForFence:": 2, "concurrent, fences: updateFence:": 2, "indirect, fences: waitForFence:": 2,
	} {
		assert.GreaterOrEqual(t, needed[kind], least, kind)
	}
	t.Logf("needed %v, kept by others too %v, not known: %d", needed, free, unknown)
}

// heard returns how many messages with a selector were counted.
func heard(m *fakemetal.Metal, selector string) (n int) {
	for _, h := range m.Counted() {
		if h.Selector == selector {
			n += h.Count
		}
	}
	return n
}
