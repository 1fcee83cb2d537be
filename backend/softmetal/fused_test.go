package softmetal_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
)

// The dispatches that pass `fuse` makes of a layer compute the same bits as the recorded ones: a fused kernel adds in
// the same order, within simdgroups too, as the kernels that it replaces.
func TestFusedBits(t *testing.T) {
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 2})
	require.NoError(t, err)
	defer d.Close()
	for _, file := range sample.Of(t, t.Name(), []string{"../../passes/testdata/fuse_norm.txtar", "../../passes/testdata/fuse_head.txtar", "../../testdata/graphs/llama_layer_decode.txtar", "../../testdata/graphs/llama_layer_prefill.txtar"}, 3) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			require.NoError(t, err)
			var text []byte
			for _, f := range a.Files {
				if f.Name == "in.mlxt" || f.Name == "recorded.mlxt" {
					text = f.Data
				}
			}
			m, err := mlxt.Parse(context.Background(), file, text)
			require.NoError(t, err)
			recorded := m.Graphs[0]
			fused := recorded.Clone()
			_, err = passes.Run(t.Context(), fused, passes.DefaultPipeline(), passes.Options{})
			require.NoError(t, err)
			require.Less(t, fused.Stats().Dispatches, recorded.Stats().Dispatches)
			require.Equal(t, outputs(t, d, recorded), outputs(t, d, fused))
		})
	}
}

// outputs returns the contents of g's outputs and states after each of two replays.
func outputs(t *testing.T, d *softmetal.Device, g *ir.Graph) (out []map[string][]byte) {
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	p, err := s.Graph(t.Context(), g.Name)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for r := range 2 {
		for _, q := range g.Params {
			require.NoError(t, p.SetParam(q.Name, math.Floor(float64(q.Min+q.Max)/2)-float64(r)))
		}
		result := map[string][]byte{}
		for i := range g.Memories {
			if m := &g.Memories[i]; m.Kind == ir.Input {
				var in []byte
				for range m.Size / 4 {
					in = binary.LittleEndian.AppendUint32(in, math.Float32bits(float32(random.NormFloat64())))
				}
				require.NoError(t, p.SetInput(m.Name, in))
			}
		}
		_, err := p.Run(t.Context())
		require.NoError(t, err)
		for i := range g.Memories {
			switch m := &g.Memories[i]; m.Kind {
			case ir.Output:
				result[m.Name], err = p.Output(m.Name)
			case ir.State:
				result[m.Name], err = p.State(m.Name)
			}
			require.NoError(t, err)
		}
		out = append(out, result)
	}
	return out
}
