//go:build linux && amd64

package trace_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// named is a result of the program that was captured.
type named struct {
	name string
	data []byte
}

// results reads what the driver of ggml has written: sizes, names and bytes.
func results(t *testing.T, data []byte) (out []named) {
	t.Helper()
	next := func(n uint32) []byte {
		require.GreaterOrEqual(t, len(data), int(n))
		v := data[:n]
		data = data[n:]
		return v
	}
	for len(data) > 0 {
		name := string(next(binary.LittleEndian.Uint32(next(4))))
		out = append(out, named{name, next(binary.LittleEndian.Uint32(next(4)))})
	}
	return out
}

// replayed replays all runs of a log on software Metal and returns what they leave in their outputs.
func replayed(t *testing.T, m *ir.Module, runs []trace.Run) (out [][]byte) {
	t.Helper()
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	instance, err := replay.Open(d, m, replay.Options{})
	require.NoError(t, err)
	defer instance.Close()
	for _, r := range runs {
		g := m.Graph(r.Graph)
		p, err := instance.Graph(t.Context(), r.Graph)
		require.NoError(t, err)
		for _, x := range r.Writes {
			for i := range g.Memories {
				if g.Memories[i].Name != x.Memory {
					continue
				}
				require.Equal(t, ir.State, g.Memories[i].Kind)
				state, err := p.State(x.Memory)
				require.NoError(t, err)
				copy(state[x.Offset:], x.Data)
				require.NoError(t, p.SetState(x.Memory, state))
			}
		}
		for name, v := range r.Params {
			require.NoError(t, p.SetParam(name, float64(v)))
		}
		_, err = p.Run(t.Context())
		require.NoError(t, err)
		for i := range g.Memories {
			if g.Memories[i].Kind == ir.Output {
				raw, err := p.Output(g.Memories[i].Name)
				require.NoError(t, err)
				out = append(out, raw)
			}
		}
	}
	return out
}

func TestGGMLDecode(t *testing.T) {
	l, err := trace.Open(os.Getenv("GGML_LOG"))
	require.NoError(t, err)
	defer l.Close()
	data, err := os.ReadFile(os.Getenv("GGML_OUT"))
	require.NoError(t, err)
	want := results(t, data)
	r, err := trace.Import(t.Context(), l, trace.Options{Folder: t.TempDir()})
	require.NoError(t, err)
	for _, f := range r.Files {
		require.NoError(t, os.MkdirAll(filepath.Dir(f.Path), 0o755))
		require.NoError(t, os.WriteFile(f.Path, f.Data, 0o600))
	}
	got := replayed(t, r.Module, r.Runs)
	require.Len(t, got, len(want))
	for i := range want {
		t.Log(want[i].name, r.Runs[i].Graph, len(r.Runs[i].Writes))
		require.Equal(t, want[i].data, got[i])
	}
}
