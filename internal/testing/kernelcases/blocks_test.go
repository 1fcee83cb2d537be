//go:build unix

package kernelcases_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/kernelcases"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// blockCases returns ggml's cases of matrices in blocks, with a dispatch of our own kernel in place of ggml's, and
// what of ggml's each is.
func blockCases(t *testing.T) (cases []*kernelcases.Case, kinds map[string]string) {
	all, err := kernelcases.Load(filepath.Join("..", "..", "..", "testdata", "ggml"))
	require.NoError(t, err)
	kinds = map[string]string{}
	for _, c := range all {
		for _, f := range strings.Fields("q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl mxfp4 q2_K q3_K q4_K q5_K q6_K") {
			k, km := uint32(352), uint32(352) // as testdata/gen/ggml_metal/cases.cpp has them
			if strings.HasSuffix(f, "K") {
				k, km = 1280, 256
			}
			step := kernelcases.Step{Group: [3]uint32{32, 2, 1}}
			var device string
			var constants []uint32
			kind := strings.Replace(c.Name, f, "*", 1)
			switch kind {
			case "mul_mat * vector":
				step.Kernel, device, constants, step.Groups = "ggml_mul_mv_%s_f32", "b a out", []uint32{k, 7}, [3]uint32{1, 1, 1}
			case "mul_mat * matrix":
				step.Kernel, device, constants, step.Groups = "ggml_mul_mm_%s_f32", "a b out", []uint32{km, 9, 35}, [3]uint32{1, 2, 1}
				step.Group[2] = 2
				c.Args[2].Want.Abs = 5e-5 // ours multiplies numbers of f32, ggml's of f16
			case "mul_mat_id * few tokens":
				step.Kernel, device, constants, step.Groups = "ggml_mul_mv_id_%s_f32", "c b a out", []uint32{km, 5, 3}, [3]uint32{1, 2, 3}
			case "get_rows *":
				step.Kernel, device, constants, step.Groups = "ggml_get_rows_%s_f32", "a b out", []uint32{km, 5}, [3]uint32{km, 4, 1}
				step.Group = [3]uint32{1, 1, 1}
			default:
				continue
			}
			step.Kernel = fmt.Sprintf(step.Kernel, f)
			for i, name := range strings.Fields(device) {
				step.Bind = append(step.Bind, kernelcases.Bind{Slot: uint8(i), Arg: name})
			}
			inline := func(b []byte) {
				step.Bind = append(step.Bind, kernelcases.Bind{Slot: uint8(len(step.Bind)), Bytes: hex.EncodeToString(b)})
			}
			for _, v := range constants {
				inline(binary.LittleEndian.AppendUint32(nil, v))
			}
			if kind == "mul_mat_id * few tokens" {
				inline(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 2*uint64(km)), uint64(km)))
			}
			c.Steps = []kernelcases.Step{step}
			cases, kinds[c.Name] = append(cases, c), kind
		}
	}
	require.Len(t, cases, 4*12)
	return cases, kinds
}

// Our kernels for matrices in blocks compute from the blocks that ggml has quantized what ggml's CPU back end does.
func TestBlocks(t *testing.T) {
	sample.Seldom(t)
	cases, kinds := blockCases(t)
	run := func(name string, d backend.Device, cases []*kernelcases.Case) {
		q, err := d.NewQueue()
		require.NoError(t, err)
		defer q.Close()
		for _, c := range cases {
			g, err := kernelcases.StepGraph(ir.Library{Kind: ir.Builtin}, 0, c)
			require.NoError(t, err)
			g.Kernels[0].Args = msl.Declarations(g.Kernels[0].Function)[0].Kernel("k").Args
			p, err := c.Prepare(t.Context(), d, g)
			require.NoError(t, err, name)
			_, err = p.Run(t.Context(), q)
			assert.NoError(t, err, name)
			require.NoError(t, p.Close())
		}
	}
	host := cpu.New(1)
	defer host.Close()
	run("cpu", host, cases)
	d, err := softmetal.New(t.Context(), softmetal.Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	some := sample.Families(t, "blocks", slices.Clone(cases), func(c *kernelcases.Case) string { return kinds[c.Name] }, sample.Few)
	run("software Metal", d, some)
}
