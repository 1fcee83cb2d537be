package calls

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExtremes has the compiler compute fmaxf and fminf of constants by the bodies that Runtime
// gives them.
func TestExtremes(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	values := []float64{0, 1, -1, 2.5, -2.5, 1e-40, -1e-40, inf, -inf, nan, math.MaxFloat32}
	text := strings.NewReplacer("weak hidden float @fmaxf(", "internal float @greater(", "weak hidden float @fminf(", "internal float @less(").Replace(Runtime())
	require.Contains(t, text, "@greater(")
	literal := func(x float64) string { return fmt.Sprintf("0x%016X", math.Float64bits(float64(float32(x)))) }
	want := map[string]float64{}
	for i, x := range values {
		for j, y := range values {
			for name, f := range map[string]func(x, y float64) float64{"greater": math.Max, "less": math.Min} {
				k := fmt.Sprintf("%s.%d.%d", name, i, j)
				text += fmt.Sprintf("define i32 @%s() {\n  %%r = call float @%s(float %s, float %s)\n  %%b = bitcast float %%r to i32\n  ret i32 %%b\n}\n", k, name, literal(x), literal(y))
				switch {
				case math.IsNaN(x):
					want[k] = y
				case math.IsNaN(y):
					want[k] = x
				default:
					want[k] = f(float64(float32(x)), float64(float32(y)))
				}
			}
		}
	}
	ir := string(compiles(t, compiler(t), text, "-O2", "-S", "-emit-llvm"))
	results := regexp.MustCompile(`@((?:greater|less)\.\d+\.\d+)\(\)[^{]*\{\s*ret i32 (-?\d+)`).FindAllStringSubmatch(ir, -1)
	require.Len(t, results, len(want))
	for _, r := range results {
		var bits int32
		_, err := fmt.Sscan(r[2], &bits)
		require.NoError(t, err)
		got, want := math.Float32frombits(uint32(bits)), float32(want[r[1]])
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(got), r[1])
	}
}
