package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// each runs a test with every implementation that the machine has, and with
// both placements of slices against a guard page.
func each(t *testing.T, test func(t *testing.T, g *guard)) {
	t.Helper()
	for _, impl := range Available() {
		for _, at := range guards {
			t.Run(string(impl)+"/"+at.name, func(t *testing.T) {
				previous, err := Use(impl)
				require.NoError(t, err)
				g := &guard{atEnd: at.atEnd}
				defer func() {
					g.release()
					_, err := Use(previous)
					require.NoError(t, err)
				}()
				test(t, g)
			})
		}
	}
}

// random fills x with numbers of [-1, 1).
func random(r *rand.Rand, x []float32) []float32 {
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

// wild fills x with numbers of very different sizes, zeros and subnormals among
// them, none so great that a product could overflow.
func wild(r *rand.Rand, x []float32) []float32 {
	for i := range x {
		switch r.IntN(8) {
		case 0:
			x[i] = 0
		case 1:
			x[i] = math.Float32frombits(r.Uint32() & 0x807fffff)
		default:
			x[i] = float32(math.Ldexp(2*r.Float64()-1, r.IntN(80)-50))
		}
	}
	return x
}

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// tolerance is the bound that the package names for sums, relative to the sum of
// the absolute values of the terms.
const tolerance = 1e-5

// near wants got within tolerance of a sum; tiny is what underflowing terms may
// have lost.
func near(t require.TestingT, want, magnitude float64, got float32, format string, args ...any) {
	const tiny = 1e-38
	if !(math.Abs(float64(got)-want) <= tolerance*magnitude+tiny) {
		require.Failf(t, "outside the bound", "got %v, want %v ± %v: "+format,
			append([]any{got, want, tolerance * magnitude}, args...)...)
	}
}

func TestUseUnknown(t *testing.T) {
	before := Active()
	previous, err := Use("sse9")
	assert.ErrorContains(t, err, `implementation "sse9": this machine has generic`)
	assert.Equal(t, before, previous)
	assert.Equal(t, before, Active())
	best := Available()[len(Available())-1]
	got, err2 := choose("sse9")
	assert.Equal(t, best, got)
	assert.EqualError(t, err2, `the environment has MLXC_SIMD="sse9": `+err.Error())
	got, err2 = choose("generic")
	assert.NoError(t, err2)
	assert.Equal(t, Generic, got)
	got, err2 = choose("")
	assert.NoError(t, err2)
	assert.Equal(t, best, got, "the best one is the default")
}

var fills = []struct {
	name string
	fn   func(*rand.Rand, []float32) []float32
}{{"random", random}, {"wild", wild}}
