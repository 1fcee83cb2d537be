package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/declarations"
	"github.com/mlxc/mlxc/backend/cpu"
)

// TestKernel: with a source, a twin and a golden result, the new kernel passes the tests of the
// library's kernels.
func TestKernel(t *testing.T) {
	declarations.Source(t, func() backend.Device { return cpu.New(2) }, "add_l2_norm.metal", os.DirFS("."))
}

// TestFusion: the passes and the prover find the kernel by its declaration.
func TestFusion(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	assert.Equal(t, `annotate,barriers: proved, 2 dispatches
annotate,fuse,dce,barriers: proved, 1 dispatches
5760 results, equal to the bit
`, out.String())
}
