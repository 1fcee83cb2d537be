package textgen_test

import (
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
)

// TestLiveSessionAgainstLlamaCpp: an engine that records every token live gets
// llama.cpp's tokens, whether commands are executed as they come, also captured,
// executed at the end, or optimized, with a proof for every token, and executed at the end.
func TestLiveSessionAgainstLlamaCpp(t *testing.T) {
	path := os.Getenv("MODEL")
	if path == "" {
		path = "../../../testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf"
	}
	m, err := gguf.Load(path)
	require.NoError(t, err, "the demonstration model is missing: run scripts/fetch-model.sh")
	defer func() { require.NoError(t, m.Close()) }()
	llama, err := m.Decoder(context.Background(), frontend.Options{Context: 64})
	require.NoError(t, err)
	want := oracle(t)[0]
	const n = 12

	for _, k := range []struct {
		name   string
		with   func(d *cpu.Device) []record.Setting
		finish []record.FinishOption
	}{
		{"live", func(d *cpu.Device) []record.Setting { return []record.Setting{record.Live(d)} }, nil},
		{"live and captured", func(d *cpu.Device) []record.Setting { return []record.Setting{record.Live(d), record.Capture()} }, nil},
		{"deferred", func(d *cpu.Device) []record.Setting { return []record.Setting{record.Deferred(d)} }, nil},
		{"deferred and optimized", func(d *cpu.Device) []record.Setting { return []record.Setting{record.Deferred(d)} }, []record.FinishOption{record.Optimize(optimize.New(""))}},
	} {
		t.Run(k.name, func(t *testing.T) {
			d := cpu.New(0)
			s := record.New("decode", k.with(d)...)
			var got []int32
			next := int32(-1)
			for pos := range len(want.PromptIDs) + n - 1 {
				if pos < len(want.PromptIDs) {
					next = want.PromptIDs[pos]
				}
				if pos > 0 {
					s.SetParam("pos", float64(pos))
				} else {
					s.Param("pos", 0, 63) // as in the model's graphs; it needs a value before the first command
					s.SetParam("pos", 0)
				}
				step := llama.Decode(s)
				in, err := s.Bytes(step.Tokens)
				require.NoError(t, err)
				binary.LittleEndian.PutUint32(in, uint32(next))
				r, err := s.Finish(k.finish...)
				require.NoError(t, err)
				if r.Optimized != nil {
					require.Less(t, len(r.Optimized.Nodes), len(r.Graph.Nodes))
				}
				out, err := s.Bytes(step.Token)
				require.NoError(t, err)
				next = int32(binary.LittleEndian.Uint32(out))
				if pos >= len(want.PromptIDs)-1 {
					got = append(got, next)
				}
			}
			require.Equal(t, want.IDs[:n], got)
			require.NoError(t, s.Close())
			require.NoError(t, d.Close())
		})
	}
}
