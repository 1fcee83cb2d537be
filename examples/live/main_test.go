package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestLive: the engine's tokens are the same by the library's source and by MLX's compiled
// kernels, live and under the checker, which finds nothing.
func TestLive(t *testing.T) {
	sample.Seldom(t)
	const library = "../../out/metallib/mlx-0.32.4.metallib" // scripts/fetch-metallib.sh
	require.FileExists(t, library)
	tokens := map[options]string{}
	for _, o := range []options{{}, {check: true}, {library: library}, {library: library, check: true}} {
		var out strings.Builder
		require.NoError(t, run(context.Background(), &out, o))
		line, rest, _ := strings.Cut(out.String(), "\n")
		require.Len(t, strings.Fields(line), 12)
		tokens[o] = line
		assert.Equal(t, o.check, rest == "0 findings\n", out.String())
	}
	for o, line := range tokens {
		assert.Equal(t, tokens[options{}], line, "%+v", o)
	}
}

// TestBroken: without its barrier the engine's kernel is wrong, and the checker says why.
func TestBroken(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(context.Background(), &out, options{broken: true, check: true}), "the kernel says token")
	text, err := os.ReadFile("best.metal")
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(text), "values[simdgroup] = greatest;")
	assert.Regexp(t, `race: thread \[32 0 0\] .* \(line `+strconv.Itoa(1+strings.Count(before, "\n"))+`\) writes byte 4 of threadgroup values, which thread \[0 0 0\] .* read; nothing orders the two`, out.String())
}
