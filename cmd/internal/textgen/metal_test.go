//go:build linux

package textgen_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testkit/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// TestMetalDecode: the demonstration model decodes through Metal's messages, as recorded and
// optimized, and by an engine that dispatches each token by itself, exactly what it does on software
// Metal: every logit has the same bits. By other plans than these with MLXC_LONG=1.
func TestMetalDecode(t *testing.T) {
	soft, err := softmetal.New(t.Context(), softmetal.Options{})
	require.NoError(t, err)
	defer soft.Close()
	module := recorded(t, gguf.Options{Context: 32})
	module.Graphs = module.Graphs[:1] // tokens of the prompt go through decode too
	optimized := &ir.Module{Graphs: []*ir.Graph{module.Graphs[0].Clone()}, Data: module.Data}
	_, err = passes.Run(t.Context(), optimized.Graphs[0], passes.DefaultPipeline(), passes.Options{})
	require.NoError(t, err)
	prompt := oracle(t)[0].PromptIDs[:2]
	decode := func(d backend.Device, module *ir.Module) (logits []float32) {
		m, err := textgen.Open(t.Context(), d, module, replay.Options{})
		require.NoError(t, err)
		_, err = m.Generate(context.Background(), prompt, textgen.Options{N: 2, IgnoreEnd: true, Logits: func(l []float32) { logits = append(logits, l...) }})
		require.NoError(t, err)
		require.NoError(t, m.Close())
		return logits
	}
	want := decode(soft, module)
	require.Equal(t, want, decode(soft, optimized))
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	for _, k := range []struct {
		name   string
		module *ir.Module
		gpu    fakemetal.Options
		device metal.Options
		long   bool
	}{
		{"concurrent, recorded", module, fakemetal.Options{}, metal.Options{}, false},
		{"concurrent", optimized, fakemetal.Options{Seed: 1}, metal.Options{}, false},
		{"serial", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Serial}, true},
		{"parallel", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Parallel, Encoders: 4}, true},
		{"indirect", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Indirect}, false},
		{"indirect, recorded", module, fakemetal.Options{}, metal.Options{Plan: metal.Indirect}, true},
		{"indirect-barriers", optimized, fakemetal.Options{IndirectBarriers: true}, metal.Options{Plan: metal.IndirectBarriers}, true},
		{"indirect, fences", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Indirect, Fences: true}, true},
	} {
		if k.long && os.Getenv("MLXC_LONG") == "" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			k.gpu.Device = soft
			l.Serve(t, k.gpu)
			d, err := metal.Open(k.device)
			require.NoError(t, err)
			require.Equal(t, want, decode(d, k.module))
			require.NoError(t, d.Close())
		})
	}
	t.Run("live", func(t *testing.T) {
		l.Serve(t, fakemetal.Options{Device: soft})
		d, err := metal.Open(metal.Options{})
		require.NoError(t, err)
		require.Equal(t, want, live(t, d, prompt, 2))
		require.NoError(t, d.Close())
	})
}

// live decodes n tokens after a prompt, command by command, and returns their logits.
func live(t *testing.T, d backend.Device, prompt []int32, n int) (logits []float32) {
	m := demonstration(t)
	llama, err := m.Llama(t.Context(), gguf.Options{Context: 32})
	require.NoError(t, err)
	s := record.New("decode", record.Live(d))
	next := int32(0)
	for pos := range len(prompt) + n - 1 {
		if pos < len(prompt) {
			next = prompt[pos]
		}
		s.Param("pos", 0, 31)
		s.SetParam("pos", float64(pos))
		step := llama.Decode(s)
		require.NoError(t, s.Write(step.Tokens, binary.LittleEndian.AppendUint32(nil, uint32(next))))
		_, err := s.Finish()
		require.NoError(t, err)
		out, err := s.Bytes(step.Token)
		require.NoError(t, err)
		next = int32(binary.LittleEndian.Uint32(out))
		if pos < len(prompt)-1 {
			continue
		}
		out, err = s.Bytes(step.Logits)
		require.NoError(t, err)
		for ; len(out) > 0; out = out[4:] {
			logits = append(logits, math.Float32frombits(binary.LittleEndian.Uint32(out)))
		}
	}
	require.NoError(t, s.Close())
	return logits
}
