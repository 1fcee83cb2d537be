//go:build unix

package infer

import (
	"cmp"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/kernelcases"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/ir"
)

// Of ggml's kernels, dispatched as ggml does, four of five are described exactly, on five shapes that the description was not made from:
// all that they touch, but for arguments of which memory decides what is touched.
func TestGGMLKernels(t *testing.T) {
	sample.Seldom(t)
	cases, err := kernelcases.Load(filepath.Join("..", "..", "testdata", "ggml"))
	require.NoError(t, err)
	of := map[string]*kernelcases.Case{} // the first case of each kernel, with its first dispatch of that alone
	var functions []string
	for _, c := range cases {
		for i := range c.Steps {
			if f := c.Steps[i].Kernel; of[f] == nil {
				one := *c
				one.Steps = c.Steps[i : i+1]
				of[f], functions = &one, append(functions, f)
			}
		}
	}
	family := func(f string) string {
		parts := strings.Split(f, "_")
		return strings.Join(parts[:min(3, len(parts))], "_")
	}
	slices.SortStableFunc(functions, func(a, b string) int { return cmp.Compare(hash(a), hash(b)) })
	if sample.Whole() {
		functions = sample.Parted(functions)
	} else {
		functions = sample.Of(t, "effects of ggml", functions, sample.Runs)
	}
	path := metallibs.GGML(t)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	library := ir.Library{Kind: ir.SourceFile, Path: path, Digest: sha256.Sum256(source)}
	tables := map[string]*air.Kernel{}
	for some := range slices.Chunk(functions, 32) {
		u, err := mslc.Compile(t.Context(), path, string(source), mslc.Options{Kernels: some})
		require.NoError(t, err)
		for i := range u.Kernels {
			tables[u.Kernels[i].Name] = &u.Kernels[i]
		}
	}
	x := observer(t, Options{Shapes: 24, HeldOut: 5, Seed: 1})
	var held tally
	for _, f := range functions {
		g, err := kernelcases.StepGraph(library, 1<<16, of[f])
		require.NoError(t, err)
		described(t, g, tables[f], library)
		k, d := &g.Kernels[0], g.Nodes[0].(*ir.Dispatch)
		for i := range d.Bindings { // views with the room that ggml's buffers have behind them
			b := &d.Bindings[i]
			if a, ok := k.Arg(b.Slot); ok && b.Kind == ir.BindBytes && a.Count > 0 { // as the importer does: ggml gives more than there is
				b.Bytes = b.Bytes[:min(int64(len(b.Bytes)), int64(a.Count)*a.Type.Size())]
			}
			if b.Kind == ir.BindView {
				b.View.Len = ir.Const(g.Memories[b.View.Mem].Size).Sub(b.View.Off)
			}
		}
		held.propose(t, x, f, g)
	}
	held.log(t, len(families(functions, family)))
	if sample.Whole() {
		assert.GreaterOrEqual(t, 5*held.possible, 4*len(held.times))
		assert.Less(t, held.times[len(held.times)/2], 10*time.Second)
	}
}

func families(list []string, of func(string) string) map[string]bool {
	out := map[string]bool{}
	for _, f := range list {
		out[of(f)] = true
	}
	return out
}

func hash(s string) (h uint32) {
	for _, c := range []byte(s) {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
