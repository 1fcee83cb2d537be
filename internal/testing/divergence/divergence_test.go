package divergence

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// TestMasksAreKnown: the compiler knows which threads are active in such a kernel, without asking the GPU.
func TestMasksAreKnown(t *testing.T) {
	sample.Seldom(t)
	r := rand.New(rand.NewPCG(1, 2))
	programs := make([]*Program, 6)
	for i := range programs {
		programs[i] = Random(fmt.Sprint("divergent", i), r)
	}
	u, err := mslc.Compile(t.Context(), "divergent.metal", Source(programs), mslc.Options{})
	require.NoError(t, err)
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	votes := 0
	for i := range u.Kernels {
		k := &u.Kernels[i]
		module, err := u.Module(k.Name)
		require.NoError(t, err)
		out, err := nvptx.Compile(t.Context(), c, air.Input{Name: "divergent.metal", IR: []byte(module), Kernel: k}, nvptx.Launch{})
		require.NoError(t, err)
		assert.NotContains(t, string(out), "activemask", k.Name)
		votes += strings.Count(string(out), "vote.sync.ballot")
	}
	assert.Positive(t, votes)
}
