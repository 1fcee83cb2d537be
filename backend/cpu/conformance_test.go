package cpu_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
)

var (
	long = flag.Bool("long", false, "the long form of the conformance suite: 200 random dispatches of every function")
	seed = flag.Uint64("seed", 0, "other random dispatches in the conformance suite")
)

// TestConformance runs the whole suite with two workers, and less of it with
// one and three: fewer random dispatches, for what depends on the number of
// workers is how units are shared, which TestWorkers looks at too.
func TestConformance(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			o := conformance.Options{Long: *long, Seed: *seed}
			if workers != 2 {
				o.Cases = 30
			}
			conformance.Run(t, func() backend.Device { return cpu.New(workers) }, o)
		})
	}
}

// TestWorkers: results do not depend on the number of workers.
func TestWorkers(t *testing.T) {
	var want map[string]uint64
	for _, workers := range []int{1, 2, 3} {
		d := cpu.New(workers)
		got, err := conformance.Fingerprint(d)
		require.NoError(t, err)
		require.NoError(t, d.Close())
		if want == nil {
			want = got
		}
		assert.Equal(t, want, got, "%d workers", workers)
	}
}
