//go:build linux

package textgen_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// counted is the cost of encoding a token, as the stand-in for Metal counts it.
type counted struct {
	Calls    int // calls from Go to C
	Messages int // Objective-C messages
	Buffers  int // command buffers
	Sets     int // setBytes messages
	Bytes    int // bytes that these have copied
}

// counter returns the counts since it was last read.
type counter struct {
	l    *fakemetal.Library
	last counted
}

func (c *counter) read() counted {
	calls, messages := objc.Transitions()
	now := counted{
		int(calls), int(messages), c.l.Made("MTLCommandBuffer"),
		c.l.Sent("setBytes:length:atIndex:"), c.l.InlineBytes(),
	}
	d := counted{now.Calls - c.last.Calls, now.Messages - c.last.Messages, now.Buffers - c.last.Buffers, now.Sets - c.last.Sets, now.Bytes - c.last.Bytes}
	c.last = now
	return d
}

// TestMetalDecode: the demonstration model, decoded through Metal's messages, as recorded, optimized, and
// recorded live for each token, gives the logits of software Metal to the bit. The calls, messages and
// bytes of a token are as the table says (docs/benchmarks.md has it too). Of the cases that are long, a run
// takes one in eight.
func TestMetalDecode(t *testing.T) {
	sample.Seldom(t)
	soft, err := fakemetal.SoftMetal(softmetal.Options{})
	require.NoError(t, err)
	defer soft.Close()
	module := recorded(t, frontend.Options{Context: 32})
	module.Graphs = module.Graphs[:1] // tokens of the prompt go through decode too
	optimized := &ir.Module{Graphs: []*ir.Graph{module.Graphs[0].Clone()}, Data: module.Data}
	_, err = passes.Run(t.Context(), optimized.Graphs[0], passes.DefaultPipeline(), passes.Options{})
	require.NoError(t, err)
	prompt := oracle(t)[0].PromptIDs[:1]
	decode := func(d backend.Device, module *ir.Module, seen func()) (logits []float32) {
		m, err := textgen.Open(t.Context(), d, module, replay.Options{})
		require.NoError(t, err)
		_, err = m.Generate(context.Background(), prompt, textgen.Options{N: 2, IgnoreEnd: true, Logits: func(l []float32) {
			logits = append(logits, l...)
			seen()
		}})
		require.NoError(t, err)
		require.NoError(t, m.Close())
		return logits
	}
	want := decode(soft, module, func() {})
	require.Equal(t, want, decode(soft, optimized, func() {}))
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	keeps := &cost.Model{Litmus: cost.Litmus{Fences: true, IndirectBarriers: true}}
	for i, k := range []struct {
		name   string
		module *ir.Module // nil: live
		gpu    fakemetal.Options
		device metal.Options
		long   bool
		want   counted // of the last token
	}{
		{"concurrent, recorded", module, fakemetal.Options{}, metal.Options{}, true, counted{5, 4154, 2, 677, 2972}},
		{"live", nil, fakemetal.Options{}, metal.Options{}, true, counted{11, 4156, 2, 677, 2972}},
		{"concurrent", optimized, fakemetal.Options{Seed: 1}, metal.Options{}, false, counted{3, 2061, 1, 437, 2236}},
		{"serial", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Serial}, true, counted{3, 1909, 1, 437, 2236}},
		{"parallel, 2", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Parallel}, true, counted{7, 2084, 2, 448, 2288}},
		{"parallel, 4", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Parallel, Encoders: 4}, true, counted{13, 2128, 4, 470, 2392}},
		{"indirect, recorded", module, fakemetal.Options{}, metal.Options{Plan: metal.Indirect}, true, counted{5, 1056, 2, 0, 0}},
		{"indirect", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Indirect}, true, counted{3, 408, 1, 0, 0}},
		{"indirect, fences", optimized, fakemetal.Options{}, metal.Options{Plan: metal.Indirect, Fences: true, Measured: keeps}, true, counted{3, 410, 1, 0, 0}},
		{"indirect-barriers", optimized, fakemetal.Options{IndirectBarriers: true}, metal.Options{Plan: metal.IndirectBarriers, Measured: keeps}, true, counted{3, 104, 1, 0, 0}},
	} {
		if k.long && !sample.Takes(t.Name(), i, sample.Few) {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			// Residency requests and the pipeline archive would send messages at times of their own.
			k.gpu.Device, k.device.Warn, k.device.NoResidency, k.device.Cache = soft, func(string) {}, true, metal.NoCache
			l.Serve(t, k.gpu)
			d, err := metal.Open(k.device)
			require.NoError(t, err)
			c := &counter{l: l}
			var last counted
			seen := func() { last = c.read() }
			var got []float32
			if k.module == nil {
				got = live(t, d, prompt, 2, seen)
			} else {
				got = decode(d, k.module, seen)
			}
			require.Equal(t, want, got)
			assert.Equal(t, k.want, last)
			require.NoError(t, d.Close())
		})
	}
}

// live decodes n tokens after a prompt in live recordings and returns their logits.
func live(t *testing.T, d backend.Device, prompt []int32, n int, seen func()) (logits []float32) {
	m := demonstration(t)
	llama, err := m.Decoder(t.Context(), frontend.Options{Context: 32})
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
		seen()
	}
	require.NoError(t, s.Close())
	return logits
}
