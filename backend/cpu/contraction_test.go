package cpu

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	testsample "github.com/mlxc/mlxc/internal/testing/sample"
)

// contracted are the functions in which the compiler may contract a product and a sum into one operation with a
// single rounding.
var contracted = map[string]string{
	"(*sdpa).valueTile": "adds zeros, to find what is not finite",
}

// TestNothingIsContracted: a term rounds each product. On some architectures Go's compiler contracts a product and the
// following sum into a fused multiply-add, unless a conversion stands between them. The code that it generates for
// arm64 shows where a conversion is missing. Sums of products, where contraction is allowed, are in
// backend/cpu/internal/simd.
func TestNothingIsContracted(t *testing.T) {
	testsample.Long(t)
	if !testsample.Takes(t.Name(), 0, testsample.Few) {
		t.Skip("compiles everything for arm64: one run in eight does")
	}
	cmd := exec.Command("go", "build", "-gcflags=-S", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "%.2000s", out)
	header := regexp.MustCompile(`^github\.com/mlxc/mlxc/backend/cpu\.(\S+) STEXT`)
	fused := regexp.MustCompile(`\(([^)]*)\)\s+FN?M(ADD|SUB)S\s`)
	function, functions := "", 0
	used := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := header.FindStringSubmatch(line); m != nil {
			function = m[1]
			functions++
		} else if m := fused.FindStringSubmatch(line); m != nil {
			if used[function] = true; contracted[function] == "" {
				assert.Failf(t, "a product and a sum have one rounding", "%s, at %s: convert the product to float32", function, m[1][strings.LastIndex(m[1], "/")+1:])
			}
		}
	}
	require.NoError(t, lines.Err())
	assert.Greater(t, functions, 100, "the compiler printed no assembly")
	for f := range contracted {
		assert.True(t, used[f], "%s needs no exception", f)
	}
}
