package declarations

import (
	"flag"
	"testing"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

var long = flag.Bool("long", false, "200 random dispatches for each corruption that does not show at once")

// TestDeclarationsDoNotLie corrupts the declarations of all kernels: the tests of
// kernels, run on the CPU backend, must notice.
func TestDeclarationsDoNotLie(t *testing.T) {
	sample.Long(t)
	Corrupt(t, func() backend.Device { return cpu.New(1) }, Options{Long: *long, Choose: sample.ChooseSome(t, t.Name(), sample.Runs)})
}
