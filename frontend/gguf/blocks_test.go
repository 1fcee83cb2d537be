package gguf_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// A model whose matrices have all block formats computes what the gguf package's weights make of it in float64, by
// kernels that read the blocks where the file has them, also when it is optimized.
// Activations have any type: logits differ by what it rounds, and the passes make as many dispatches.
func TestModelInBlocks(t *testing.T) {
	var counts [][]int
	for _, c := range []struct {
		of  ir.DType
		tol float64
	}{{ir.F32, 2e-5}, {ir.F16, 5e-3}, {ir.BF16, 4e-2}} {
		t.Run(c.of.String(), func(t *testing.T) { counts = append(counts, modelInBlocks(t, c.of, c.tol)) })
	}
	require.Equal(t, [][]int{counts[0], counts[0], counts[0]}, counts)
}

// modelInBlocks returns the number of commands of each graph.
func modelInBlocks(t *testing.T, of ir.DType, tol float64) (counts []int) {
	folder := filepath.Join("..", "..", "testdata", "blocks")
	packed, err := os.ReadFile(filepath.Join(folder, "model.gguf.gz"))
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	file, err := io.ReadAll(z)
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(folder, "logits.json"))
	require.NoError(t, err)
	var want struct {
		Tokens []int32     `json:"tokens"`
		Logits [][]float64 `json:"logits"`
	}
	require.NoError(t, json.Unmarshal(raw, &want))

	m, err := gguf.Read("model.gguf", file)
	require.NoError(t, err)
	module, err := m.Record(context.Background(), frontend.Options{Type: of, Blocks: true, Mapped: true, Prefill: 8})
	require.NoError(t, err)
	used := map[string]bool{}
	for n, g := range module.Graphs {
		for i := range g.Kernels {
			used[g.Kernels[i].Function] = true
		}
		for i := range g.Memories {
			m := &g.Memories[i]
			norm := strings.HasSuffix(m.Name, "norm.weight") && of != ir.F32 // it becomes one of the type
			if b := m.Init.Blob; b != nil && strings.HasPrefix(m.Name, "blk.") && !norm {
				data, err := b.Bytes()
				require.NoError(t, err)
				at := uintptr(unsafe.Pointer(unsafe.SliceData(data))) - uintptr(unsafe.Pointer(unsafe.SliceData(file)))
				require.Less(t, at, uintptr(len(file)), "%s is a copy", m.Name)
			}
		}
		module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g) // and proved
		require.NoError(t, err)
		counts = append(counts, len(module.Graphs[n].Nodes))
	}
	for _, f := range strings.Fields("q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl mxfp4 q2_K q3_K q4_K q5_K q6_K") {
		for _, kind := range []string{"mul_mv_", "mul_mm_"} {
			require.True(t, used["ggml_"+kind+f+"_"+of.String()], "%s%s", kind, f)
		}
	}
	require.True(t, used["ggml_get_rows_q6_K_"+of.String()])

	d := cpu.New(2)
	defer d.Close()
	s, err := replay.Open(d, module, replay.Options{Poison: true})
	require.NoError(t, err)
	defer s.Close()
	pos := 0
	for i, graph := range []string{"prefill", "prefill", "decode"} {
		end := []int{6, 8, 9}[i]
		g, err := s.Graph(context.Background(), graph)
		require.NoError(t, err)
		require.NoError(t, g.SetInput("tokens", ir.ValueBytes(want.Tokens[pos:end])))
		require.NoError(t, g.SetParam("pos", float64(pos)))
		if graph == "prefill" {
			require.NoError(t, g.SetParam("n", float64(end-pos)))
		}
		_, err = g.Run(context.Background())
		require.NoError(t, err)
		logits, err := g.Output("logits")
		require.NoError(t, err)
		size := int(of.Size())
		require.Len(t, logits, size*len(want.Logits[i]))
		for j, w := range want.Logits[i] {
			require.InDelta(t, w, floatOf(of, logits[size*j:]), tol)
		}
		pos = end
	}
	return counts
}

// floatOf is the number of a type that b begins with.
func floatOf(of ir.DType, b []byte) float64 {
	switch of {
	case ir.F16:
		return term.F16Value(binary.LittleEndian.Uint16(b))
	case ir.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}
