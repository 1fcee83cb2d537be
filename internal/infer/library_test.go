//go:build unix

package infer

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// samples returns graphs with one dispatch of each kernel of our library that this run takes and whose grid is not
// empty. They are the kernels that other tests run under the checker.
func samples(t testing.TB) map[string]*ir.Graph {
	out := map[string]*ir.Graph{}
	functions := 0
	choose := func(all []string, family func(string) string) []string {
		some := sample.Checked(t, sample.UnderChecker)(all, family)
		functions = len(some)
		return some
	}
	require.NoError(t, conformance.Sample(30, 7, choose, func(c *conformance.Case) error {
		d := c.Graph.Nodes[0].(*ir.Dispatch)
		threads := d.Counts() == nil
		for _, e := range d.Grid {
			threads = threads && e.Eval(c.Graph.Greatest()) > 0
		}
		if out[c.Function] == nil && threads {
			out[c.Function] = c.Graph
		}
		return nil
	}))
	require.Len(t, out, functions)
	return out
}

func observer(t testing.TB, o Options) *Observer {
	t.Helper()
	x, err := New(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

func every(*ir.Kernel) bool { return true }

// No kernel of our library touches a byte that its declaration does not list, or leaves one unwritten that it must
// write. Bytes that are listed and not touched depend on indices in memory, or the dispatch does not need them.
func TestLibraryKernels(t *testing.T) {
	sample.Long(t)
	x := observer(t, Options{Shapes: 3, Seed: 1})
	all := samples(t)
	exact, loose, shapes := 0, 0, 0
	for _, f := range slices.Sorted(maps.Keys(all)) {
		r, err := x.Compare(context.Background(), []*ir.Graph{all[f]}, every)
		require.NoError(t, err)
		require.Empty(t, r.Left, f)
		require.Len(t, r.Comparisons, 1, f)
		c := &r.Comparisons[0]
		assert.Empty(t, c.Broken, f)
		shapes += c.Counts.Real + c.Counts.Made
		whole := true
		for _, a := range c.Fits {
			if !a.Exact {
				whole = false
				t.Logf("%s: %s is loose: %d of %d bytes are touched; %s", f, a.Argument, a.Touched, a.Declared, a.Loosest)
			}
		}
		if whole {
			exact++
		} else {
			loose++
		}
	}
	t.Logf("%d declarations are exact, %d loose, on %d shapes", exact, loose, shapes)
	assert.GreaterOrEqual(t, 3*exact, 2*len(all))
}

// Proposals for our own kernels, made without their declarations, cover what is declared for the graph's dispatch
// wherever it is touched. The test counts how many of them equal the declaration.
func TestLibraryProposals(t *testing.T) {
	sample.Long(t)
	x := observer(t, Options{Shapes: 16, HeldOut: 8, Seed: 1})
	all := samples(t)
	step := 60
	if sample.Whole() { // each takes five to ten seconds
		step = 4
	}
	arguments, exact, tried := map[string]int{}, 0, 0
	names := slices.Sorted(maps.Keys(all))
	for i := 0; i < len(names); i += step {
		f := names[i]
		t.Run(f, func(t *testing.T) {
			tried++
			r, err := x.Propose(context.Background(), []*ir.Graph{all[f]}, every)
			require.NoError(t, err)
			require.Empty(t, r.Left, f)
			require.Len(t, r.Proposals, 1, f)
			p := &r.Proposals[0]
			if p.Exact {
				exact++
			} else {
				t.Logf("%s:\n%s%v", f, p.Text, p.Notes)
			}
			for _, a := range p.Fits {
				switch {
				case a.Exact:
					arguments["exact"]++
				default:
					arguments[a.Why]++
				}
			}
		})
	}
	t.Logf("%d of %d proposals are exact; arguments: %v", exact, tried, arguments)
	assert.GreaterOrEqual(t, 2*exact, tried)
}
