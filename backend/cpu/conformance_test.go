package cpu

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	testsample "github.com/mlxc/mlxc/internal/testing/sample"
)

var (
	long = flag.Bool("long", false, "the long form of the conformance suite: 200 random dispatches of every function")
	seed = flag.Uint64("seed", 0, "other random dispatches in the conformance suite")
)

// TestConformance runs the suite with two workers and the implementation of
// package simd that this machine gets. With the other implementations and other numbers of
// workers it runs fewer random dispatches: the kernels are the same, and TestWorkers and
// TestAnySplit show that results do not depend on these numbers.
func TestConformance(t *testing.T) {
	run := func(t *testing.T, workers int, o conformance.Options) {
		o.Long, o.Seed = *long || testsample.Whole(), *seed
		o.Values, o.Turn = 3, testsample.Turn() // in the short form
		o.Other = func() backend.Device { return New(1) }
		conformance.Run(t, func() backend.Device { return New(workers) }, o)
	}
	cases := 6 // of each kernel; a device of Metal kernels runs fewer
	if testsample.Whole() {
		cases = 24
	}
	t.Run("whole", func(t *testing.T) { run(t, 2, conformance.Options{Cases: cases, Choose: testsample.Choose(t, "cpu")}) })
	if testing.Short() {
		return
	}
	few := func(functions []string, _ func(string) string) []string {
		return testsample.Of(t, "other implementations", functions, testsample.Runs)
	}
	for i, impl := range simd.Available() {
		if impl == simd.Active() {
			continue
		}
		workers := 1 + 2*(i%2)
		t.Run(fmt.Sprintf("%s, %d workers", impl, workers), func(t *testing.T) {
			previous, err := simd.Use(impl)
			require.NoError(t, err)
			defer simd.Use(previous)
			run(t, workers, conformance.Options{Cases: 4, Witnesses: 2, Choose: few})
		})
	}
}

// TestWorkers: results do not depend on the number of workers.
func TestWorkers(t *testing.T) {
	testsample.Seldom(t)
	var want map[string]uint64
	for _, workers := range []int{1, 2, 3} {
		d := New(workers)
		got, err := conformance.Fingerprint(d, 3, testsample.Choose(t, t.Name()))
		require.NoError(t, err)
		require.NoError(t, d.Close())
		if want == nil {
			want = got
		}
		assert.Equal(t, want, got, "%d workers", workers)
	}
}
