//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// TestGraphs: each test graph leaves the same bytes by all plans, in random orders, as when it is launched one by
// one.
func TestGraphs(t *testing.T) {
	sample.Long(t)
	all := testGraphs(t)
	names := sample.Of(t, t.Name(), slices.Sorted(maps.Keys(all)), 4)
	want := map[string][]map[string]string{}
	for seed, options := range []cuda.Options{{Plan: cuda.Stream}, {Plan: cuda.Edges}, {Plan: cuda.Edges, Full: true}, {Plan: cuda.Chain}, {Plan: cuda.Edges}} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			serve(t, fakecuda.Options{Seed: uint64(seed)})
			d := standIn(t, options)
			for _, name := range names {
				o := open(t, d, all[name])
				for input := range 2 {
					got := o.run(uint64(input))
					if seed == 0 {
						want[name] = append(want[name], got)
					}
					assert.True(t, maps.Equal(want[name][input], got), "%s: input %d", name, input)
				}
				o.close()
			}
			require.NoError(t, d.Close())
		})
	}
}

// replayed opens the stand-in, replays a graph with two inputs in turn, and returns the results.
func replayed(t *testing.T, g *ir.Graph, f fakecuda.Options, options cuda.Options, change func(d *cuda.Device)) (x *fakecuda.GPU, out []map[string]string) {
	t.Helper()
	x = serve(t, f)
	d := standIn(t, options)
	if change != nil {
		change(d)
	}
	o := open(t, d, g)
	for i := range 4 {
		out = append(out, o.run(uint64(i%2)))
	}
	o.close()
	require.NoError(t, d.Close())
	x.Close()
	require.Empty(t, x.Failures())
	return x, out
}

func equalRuns(a, b []map[string]string) bool {
	return slices.EqualFunc(a, b, func(x, y map[string]string) bool { return maps.Equal(x, y) })
}

// TestEdgesNeeded: a CUDA graph without any one of its edges has other results in at least one of a few random
// orders.
func TestEdgesNeeded(t *testing.T) {
	sample.Long(t)
	all := testGraphs(t)
	count, n := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		if g.Ordering != ir.ByEdges {
			continue
		}
		var edges *[][2]int
		_, want := replayed(t, g, fakecuda.Options{}, cuda.Options{Plan: cuda.Edges, Full: true}, func(d *cuda.Device) { edges = d.Without(-1) })
		for i, e := range *edges {
			if n++; !sample.Takes(t.Name(), n, sample.Rare) {
				continue
			}
			differs := false
			for seed := uint64(2); seed <= 30 && !differs; seed += 2 {
				_, got := replayed(t, g, fakecuda.Options{Seed: seed}, cuda.Options{Plan: cuda.Edges, Full: true}, func(d *cuda.Device) { d.Without(i) })
				differs = !equalRuns(want, got)
			}
			assert.True(t, differs, "%s: without edge %v nothing differs", name, e)
			count++
		}
	}
	assert.Greater(t, n, 40)
	assert.GreaterOrEqual(t, count, 40/sample.Rare)
}

// TestWaitsNeeded: a kernel that does not wait, behind a programmatic edge, has other results in at least one of a
// few random orders.
func TestWaitsNeeded(t *testing.T) {
	sample.Seldom(t)
	all := testGraphs(t)
	count, n := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		if name == "lookahead, optimized" || !strings.HasSuffix(name, ", optimized") {
			continue // its commands do not depend on each other
		}
		_, want := replayed(t, g, fakecuda.Options{}, cuda.Options{Plan: cuda.Chain}, nil)
		for i := range g.Kernels {
			if n++; !sample.Takes(t.Name(), n, 4) {
				continue
			}
			k := g.Kernels[i].Function
			image := func(ctx context.Context, in air.Input, form nvptx.Launch) ([]byte, error) {
				form.Programmatic = form.Programmatic && in.Kernel.Name != k
				return images(ctx, in, form)
			}
			differs, needed := false, false
			for seed := uint64(2); seed <= 30 && !differs; seed += 2 {
				x, got := replayed(t, g, fakecuda.Options{Seed: seed}, cuda.Options{Plan: cuda.Chain}.WithImages(image), nil)
				if x.Unordered() == 0 {
					differs = equalRuns(want, got) // no programmatic edge leads to it
					break
				}
				count++
				differs = !equalRuns(want, got)
				needed = differs
			}
			assert.True(t, differs, "%s: nothing differs when %s does not wait", name, k)
			if needed {
				reason, _ := waitOf(annotated(t, g), k)
				assert.NotEqual(t, forNothing, reason, "%s: %s was seen to need its wait", name, k)
			}
		}
	}
	assert.Positive(t, count)
	assert.Greater(t, n, 30)
}
