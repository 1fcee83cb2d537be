// Package generated compares what a recorded language model computes with what another program has: tokens, and some
// logits.
package generated

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// Want is what another program computes of a model: testdata/gen/architectures.py and folders.py write it.
type Want struct {
	Prompt int         `json:"prompt"` // tokens
	IDs    []int32     `json:"ids"`    // those of the prompt, and after it each the one with the largest logit
	Logits [][]float64 `json:"logits"` // behind the prompt, one token later, and behind the last but one
	// Tolerance is by how much logits may be off, where the other program computes something roughly; 0: as the caller says.
	Tolerance float64 `json:"tolerance"`

	Texts [][2]json.RawMessage `json:"texts"` // each with its tokens
}

// Read reads a file of them.
func Read(t testing.TB, path string) (w Want) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &w))
	return w
}

// Check is [CheckOn] the CPU.
func Check(t testing.TB, module *ir.Module, want Want, tolerance float64) (worst float64) {
	t.Helper()
	d := cpu.New(2)
	defer d.Close()
	return CheckOn(t, d, module, want, tolerance)
}

// CheckOn runs a model's graphs with f32 logits on a device: the prompt in two parts, then one token after another. Each
// token must be the one wanted, and logits may be off by tolerance; by how much they are at most it returns. If there is a graph
// that verifies, it runs the same tokens again, as many at once as it takes, behind some that are wrong.
func CheckOn(t testing.TB, d backend.Device, module *ir.Module, want Want, tolerance float64) (worst float64) {
	t.Helper()
	s, err := replay.Open(d, module, replay.Options{Poison: true})
	require.NoError(t, err)
	defer s.Close()
	const first = 7
	for pos := 0; pos < len(want.IDs)-1; {
		graph, end := "decode", pos+1
		if pos < want.Prompt {
			graph, end = "prefill", first
			if pos == first {
				end = want.Prompt
			}
		}
		g, err := s.Graph(context.Background(), graph)
		require.NoError(t, err)
		require.NoError(t, g.SetInput("tokens", ir.ValueBytes(want.IDs[pos:end])))
		require.NoError(t, g.SetParam("pos", float64(pos)))
		if graph == "prefill" {
			require.NoError(t, g.SetParam("n", float64(end-pos)))
		}
		_, err = g.Run(context.Background())
		require.NoError(t, err)
		logits, err := g.Output("logits")
		require.NoError(t, err)
		if kept := slices.Index([]int{want.Prompt, want.Prompt + 1, len(want.IDs) - 1}, end); kept >= 0 {
			require.Len(t, logits, 4*len(want.Logits[kept]))
			for j, w := range want.Logits[kept] {
				got := math.Float32frombits(binary.LittleEndian.Uint32(logits[4*j:]))
				worst = max(worst, math.Abs(w-float64(got)))
				require.InDelta(t, w, got, cmp.Or(want.Tolerance, tolerance), "logit %d behind %d tokens", j, end)
			}
		}
		if end >= want.Prompt {
			token, err := g.Output("token")
			require.NoError(t, err)
			require.Equal(t, want.IDs[end], int32(binary.LittleEndian.Uint32(token)), "token %d", end)
		}
		pos = end
	}
	if module.Graph("verify") != nil {
		worst = max(worst, verify(t, s, want, cmp.Or(want.Tolerance, tolerance)))
	}
	return worst
}

// verify runs the tokens behind the prompt by the graph that has outputs for each of them.
func verify(t testing.TB, s *replay.Instance, want Want, tolerance float64) (worst float64) {
	t.Helper()
	g, err := s.Graph(context.Background(), "verify")
	require.NoError(t, err)
	n, _ := g.IR().ParamNamed("n")
	rows := int(g.IR().Params[n].Max)
	run := func(tokens []int32, pos int) {
		require.NoError(t, g.SetInput("tokens", ir.ValueBytes(tokens)))
		require.NoError(t, g.SetParam("pos", float64(pos)))
		require.NoError(t, g.SetParam("n", float64(len(tokens))))
		_, err := g.Run(context.Background())
		require.NoError(t, err)
	}
	for pos := want.Prompt; pos < len(want.IDs)-1; {
		end := min(pos+rows, len(want.IDs)-1)
		run(slices.Repeat(want.IDs[:1], end-pos), pos)
		run(want.IDs[pos:end], pos)
		tokens, err := g.Output("token")
		require.NoError(t, err)
		logits, err := g.Output("logits")
		require.NoError(t, err)
		for i := range end - pos {
			require.Equal(t, want.IDs[pos+i+1], int32(binary.LittleEndian.Uint32(tokens[4*i:])), "token %d, of row %d", pos+i+1, i)
			kept := slices.Index([]int{want.Prompt, want.Prompt + 1, len(want.IDs) - 1}, pos+i+1)
			if kept < 0 {
				continue
			}
			row := logits[4*i*len(want.Logits[kept]):]
			for j, w := range want.Logits[kept] {
				got := math.Float32frombits(binary.LittleEndian.Uint32(row[4*j:]))
				worst = max(worst, math.Abs(w-float64(got)))
				require.InDelta(t, w, got, tolerance, "logit %d of row %d behind %d tokens", j, i, pos+i+1)
			}
		}
		pos = end
	}
	return worst
}

// Roughly runs the prompt and one token of a model with logits of 16 bits, and returns by how much of the greatest logit they are
// off at most.
func Roughly(t testing.TB, module *ir.Module, typ ir.DType, want Want) (worst float64) {
	t.Helper()
	d := cpu.New(2)
	defer d.Close()
	s, err := replay.Open(d, module, replay.Options{Poison: true})
	require.NoError(t, err)
	defer s.Close()
	for i, graph := range []string{"prefill", "decode"} {
		g, err := s.Graph(context.Background(), graph)
		require.NoError(t, err)
		pos := i * want.Prompt
		require.NoError(t, g.SetParam("pos", float64(pos)))
		if graph == "prefill" {
			require.NoError(t, g.SetInput("tokens", ir.ValueBytes(want.IDs[:want.Prompt])))
			require.NoError(t, g.SetParam("n", float64(want.Prompt)))
		} else {
			require.NoError(t, g.SetInput("tokens", ir.ValueBytes(want.IDs[pos:pos+1])))
		}
		_, err = g.Run(context.Background())
		require.NoError(t, err)
		raw, err := g.Output("logits")
		require.NoError(t, err)
		require.Len(t, raw, int(typ.Size())*len(want.Logits[i]))
		greatest, off := 0.0, 0.0
		for j, v := range record.Numbers(typ, raw) {
			greatest = max(greatest, math.Abs(want.Logits[i][j]))
			diff := math.Abs(want.Logits[i][j] - float64(v))
			require.False(t, math.IsNaN(diff), "logit %d is %v", j, v)
			off = max(off, diff)
		}
		worst = max(worst, off/greatest)
	}
	return worst
}
