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
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// A model whose matrices have all block formats computes what the gguf package's weights make of it in float64, by
// kernels that read the blocks where the file has them, also when it is optimized.
func TestModelInBlocks(t *testing.T) {
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
	module, err := m.Record(context.Background(), frontend.Options{Blocks: true, Mapped: true, Prefill: 8})
	require.NoError(t, err)
	used := map[string]bool{}
	for n, g := range module.Graphs {
		for i := range g.Kernels {
			used[g.Kernels[i].Function] = true
		}
		for i := range g.Memories {
			if b := g.Memories[i].Init.Blob; b != nil && strings.HasPrefix(g.Memories[i].Name, "blk.") {
				data, err := b.Bytes()
				require.NoError(t, err)
				at := uintptr(unsafe.Pointer(unsafe.SliceData(data))) - uintptr(unsafe.Pointer(unsafe.SliceData(file)))
				require.Less(t, at, uintptr(len(file)), "%s is a copy", g.Memories[i].Name)
			}
		}
		module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g) // and proved
		require.NoError(t, err)
	}
	for _, f := range strings.Fields("q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl mxfp4 q2_K q3_K q4_K q5_K q6_K") {
		for _, kind := range []string{"mul_mv_", "mul_mm_"} {
			require.True(t, used["ggml_"+kind+f+"_f32"], "%s%s", kind, f)
		}
	}
	require.True(t, used["ggml_get_rows_q6_K_f32"])

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
		require.Len(t, logits, 4*len(want.Logits[i]))
		for j, w := range want.Logits[i] {
			require.InDelta(t, w, float64(math.Float32frombits(binary.LittleEndian.Uint32(logits[4*j:]))), 2e-5)
		}
		pos = end
	}
}
