package kernelcases_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/kernelcases"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// taken are the beginnings of the names of kernels whose cases ours take.
var taken = []string{"affine_", "arange", "gather_mm_offsets", "rope_", "sdpa_", "steel_attention_", "steel_gemm_splitk_accum"}

// Kernels of our library of affine codes, rotations, attention and some others that have the name of one of MLX's take its dispatches, and compute what NumPy
// does. On the CPU, to whose results the conformance suite holds all devices.
func TestOurKernelsTakeCases(t *testing.T) {
	cases, err := kernelcases.Load("../../../testdata/kernelcases")
	require.NoError(t, err)
	lib := metallibs.Open(t, "0.32.4")
	d := cpu.New(1)
	q, err := d.NewQueue()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	n := 0
	for _, c := range cases {
		if msl.Declarations(c.Kernel) == nil || !slices.ContainsFunc(taken, func(prefix string) bool { return strings.HasPrefix(c.Kernel, prefix) }) {
			continue
		}
		if slices.ContainsFunc(c.Constants, func(x kernelcases.Constant) bool { return x.Name == "save_lse" && x.Value != 0 }) {
			continue // another result, which no operation asks for
		}
		k, err := lib.Describe(c.Kernel)
		require.NoError(t, err)
		g, err := c.Graph(ir.Library{}, k)
		require.NoError(t, err)
		takeOurs(g)
		_, err = msl.Bind(g, g.Nodes[0].(*ir.Dispatch))
		require.NoError(t, err, c.Name)
		p, err := c.Prepare(t.Context(), d, g)
		require.NoError(t, err)
		_, err = p.Run(t.Context(), q)
		require.NoError(t, err)
		require.NoError(t, p.Close())
		n++
	}
	t.Logf("%d cases", n)
}

// takeOurs puts our kernel of the same name in the place of the kernel of a graph's one dispatch. As recorders do, it
// leaves out what ours has no use for, and fills up arrays of constants that are declared longer.
func takeOurs(g *ir.Graph) {
	k, d := &g.Kernels[0], g.Nodes[0].(*ir.Dispatch)
	declared := decl.For(msl.Declarations(k.Function), k.Constants)
	constants := slices.DeleteFunc(k.Constants, func(c ir.FunctionConstant) bool {
		for _, x := range declared.Constants {
			if x.Index == c.Index {
				return false
			}
		}
		return true
	})
	*k = declared.Kernel(k.Name, constants...)
	var bindings []ir.Binding
	for _, b := range d.Bindings {
		if a, ok := k.Arg(b.Slot); ok {
			if more := int(a.Type.Size())*int(a.Count) - len(b.Bytes); b.Kind == ir.BindBytes && more > 0 {
				b.Bytes = append(slices.Clone(b.Bytes), make([]byte, more)...)
			}
			bindings = append(bindings, b)
		}
	}
	d.Bindings = bindings
}
