//go:build unix

package kernelcases_test

import (
	"context"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/kernelcases"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// checkedHere reports whether a family's kernel runs under the checker and not plainly: every fourth one, unless all
// kernels do both.
func checkedHere(family int) bool { return family%4 == 3 }

// chosenCases returns the cases of one kernel of each family that take accepts, or all cases with MLXC_LONG=1.
// KERNELCASES is a regular expression that chooses cases by their names instead.
func chosenCases(t *testing.T, take func(family int) bool) []*kernelcases.Case {
	cases, err := kernelcases.Load("../../../testdata/kernelcases")
	require.NoError(t, err)
	if only := os.Getenv("KERNELCASES"); only != "" {
		var some []*kernelcases.Case
		for _, c := range cases {
			if regexp.MustCompile(only).MatchString(c.Name) {
				some = append(some, c)
			}
		}
		return some
	}
	if !sample.Whole() {
		cases, err = kernelcases.Choose(cases, take)
		require.NoError(t, err)
	}
	return cases
}

// prepareCases compiles the kernels of cases, as many at a time as there are cores. A kernel that does not compile
// fails the test.
func prepareCases(t *testing.T, d *softmetal.Device, cases []*kernelcases.Case, graph func(c *kernelcases.Case) (*ir.Graph, error)) []*kernelcases.Prepared {
	out := make([]*kernelcases.Prepared, len(cases))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, c := range cases {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			g, err := graph(c)
			if err == nil {
				out[i], err = c.Prepare(context.Background(), d, g)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	t.Cleanup(func() {
		for _, p := range out {
			if p != nil {
				assert.NoError(t, p.Close())
			}
		}
	})
	return out
}

// compiledGraph returns a function that makes a case's graph with the kernel of MLX's library.
func compiledGraph(t *testing.T) func(c *kernelcases.Case) (*ir.Graph, error) {
	lib := metallibs.Open(t, "0.32.4")
	path := ir.Library{Kind: ir.Metallib, Path: metallibs.Path(t, "0.32.4")}
	return func(c *kernelcases.Case) (*ir.Graph, error) {
		k, err := lib.Describe(c.Kernel)
		if err != nil {
			return nil, err
		}
		return c.Graph(path, k)
	}
}

// runCases runs cases on a device, compares their results, and calls after for each.
func runCases(t *testing.T, d *softmetal.Device, prepared []*kernelcases.Prepared, after func(c *kernelcases.Case)) {
	q, err := d.NewQueue()
	require.NoError(t, err)
	defer q.Close()
	kernels, families, agreed := map[string]bool{}, map[int]bool{}, 0
	for _, p := range prepared {
		if p == nil {
			continue
		}
		_, err := p.Run(t.Context(), q)
		after(p.Case)
		if err != nil {
			t.Error(err)
			continue
		}
		agreed++
		kernels[p.Kernel] = true
		f, err := kernelcases.FamilyOf(p.Kernel)
		assert.NoError(t, err)
		families[f] = true
	}
	t.Logf("%d cases of %d kernels of %d families", agreed, len(kernels), len(families))
}

// MLX's kernels, as Apple's compiler compiled them, compute what NumPy does.
func TestKernelCases(t *testing.T) {
	sample.Long(t)
	d, err := softmetal.New(t.Context(), softmetal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	runCases(t, d, prepareCases(t, d, chosenCases(t, func(f int) bool { return !checkedHere(f) && sample.Takes(t.Name(), f, 6) }), compiledGraph(t)), func(*kernelcases.Case) {})
}

// Under the checker MLX's kernels compute the same, and the checker finds only known defects.
func TestCheckedKernelCases(t *testing.T) {
	sample.Long(t)
	d, err := softmetal.New(t.Context(), softmetal.Options{Check: true})
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	count := 0
	runCases(t, d, prepareCases(t, d, chosenCases(t, func(f int) bool { return checkedHere(f) && sample.Takes(t.Name(), f/4, 6) }), compiledGraph(t)), func(c *kernelcases.Case) {
		for _, o := range d.Observed() {
		next:
			for i := range o.Findings {
				f := &o.Findings[i]
				if f.Kind == softmetal.NonFinite && c.NonFinite() {
					continue // NumPy's result is not finite either
				}
				for _, k := range known {
					if regexp.MustCompile(k.function).MatchString(c.Kernel) && strings.HasPrefix(f.Kind.String()+" of "+f.Argument, k.what) {
						count++
						continue next
					}
				}
				t.Errorf("%s: %v of %s: %v", c.Name, f.Kind, f.Argument, f)
			}
		}
	})
	t.Logf("%d known defects", count)
}

// MLX's kernels, compiled by our compiler from MLX's headers, compute NumPy's results in the same cases as those of
// its library.
func TestKernelCasesFromSource(t *testing.T) {
	sample.Seldom(t)
	cases, err := kernelcases.Load("../../../testdata/kernelcases")
	require.NoError(t, err)
	sources, err := kernelcases.Sources("../../../testdata/kernelcases/source", metallibs.Headers(t))
	require.NoError(t, err)
	lib := metallibs.Open(t, "0.32.4")
	d, err := softmetal.New(t.Context(), softmetal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	// The keys of the cache depend on the path of the source, so the paths are relative to a temporary folder.
	t.Chdir(t.TempDir())
	from := map[string]ir.Library{}
	for _, s := range sources {
		require.NoError(t, os.WriteFile(s.Name, []byte(s.Text), 0o600))
		kernels := s.Kernels
		kernels = sample.Of(t, s.Name, kernels, sample.Few)
		for _, k := range kernels {
			from[k] = ir.Library{Kind: ir.SourceFile, Path: s.Name}
		}
	}
	var chosen []*kernelcases.Case
	met := map[string]bool{}
	for _, c := range cases {
		if _, ok := from[c.Kernel]; ok {
			chosen = append(chosen, c)
			met[c.Kernel] = true
		}
	}
	for k := range from {
		assert.True(t, met[k], "%s has no case", k)
	}
	require.GreaterOrEqual(t, len(met), len(sources))
	prepared := prepareCases(t, d, chosen, func(c *kernelcases.Case) (*ir.Graph, error) {
		// The arguments are those of the library's kernel: names, slots, constants.
		k, err := lib.Describe(c.Kernel)
		if err != nil {
			return nil, err
		}
		return c.Graph(from[c.Kernel], k)
	})
	runCases(t, d, prepared, func(*kernelcases.Case) {})
}
