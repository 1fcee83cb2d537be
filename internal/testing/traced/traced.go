// Package traced replays what the log of a captured program has, so that tests can compare it with what the program computed.
package traced

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// Result is what the captured program computed in one step.
type Result struct {
	Name string
	Data []byte
}

// Results reads the file that testdata/gen/ggmlhost/driver.cpp writes: of each result the size of its name, the name, its size and
// its bytes.
func Results(t testing.TB, data []byte) (out []Result) {
	t.Helper()
	next := func(n uint32) []byte {
		require.GreaterOrEqual(t, len(data), int(n))
		v := data[:n]
		data = data[n:]
		return v
	}
	for len(data) > 0 {
		name := string(next(binary.LittleEndian.Uint32(next(4))))
		out = append(out, Result{name, next(binary.LittleEndian.Uint32(next(4)))})
	}
	return out
}

// Import imports a log, and writes the libraries that its module names.
func Import(t testing.TB, path string, o trace.Options) *trace.Result {
	t.Helper()
	l, err := trace.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	user, err := os.UserCacheDir()
	require.NoError(t, err)
	// Paths are part of the keys by which compiled kernels are kept, so they are the same in every run; names have digests.
	folder := filepath.Join(user, "mlxc", "test", "traced")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	o.Folder = folder
	r, err := trace.Import(t.Context(), l, o)
	require.NoError(t, err)
	for _, f := range r.Files {
		require.NoError(t, atomicfile.Write(f.Path, func(w io.Writer) error {
			_, err := w.Write(f.Data)
			return err
		}))
	}
	return r
}

// Memory is what a memory holds after a run, an output or a state.
type Memory struct {
	Name string
	Data []byte
}

// Replay replays runs in their order, each behind what the host wrote before it, and returns after each what its outputs hold, and its
// states if the graph has no output.
func Replay(t testing.TB, d backend.Device, m *ir.Module, runs []trace.Run) (out [][]Memory) {
	t.Helper()
	instance, err := replay.Open(d, m, replay.Options{})
	require.NoError(t, err)
	defer instance.Close()
	inputs := map[[2]string][]byte{} // what they hold, from run to run of a graph
	for _, r := range runs {
		g := m.Graph(r.Graph)
		p, err := instance.Graph(t.Context(), r.Graph)
		require.NoError(t, err)
		states := map[string][]byte{}
		for _, x := range r.Writes {
			i := slices.IndexFunc(g.Memories, func(m ir.Memory) bool { return m.Name == x.Memory })
			if i < 0 { // no dispatch of the graph needs it
				continue
			}
			switch m := &g.Memories[i]; m.Kind {
			case ir.State:
				if states[x.Memory] == nil {
					states[x.Memory], err = p.State(x.Memory)
					require.NoError(t, err)
				}
				copy(states[x.Memory][x.Offset:], x.Data)
			case ir.Input:
				name := [2]string{r.Graph, x.Memory}
				if inputs[name] == nil {
					inputs[name] = make([]byte, m.Size)
				}
				copy(inputs[name][x.Offset:], x.Data)
			}
		}
		for name, data := range states {
			require.NoError(t, p.SetState(name, data))
		}
		for i := range g.Memories {
			if data := inputs[[2]string{r.Graph, g.Memories[i].Name}]; data != nil && g.Memories[i].Kind == ir.Input {
				require.NoError(t, p.SetInput(g.Memories[i].Name, data))
			}
		}
		for name, v := range r.Params {
			require.NoError(t, p.SetParam(name, float64(v)))
		}
		_, err = p.Run(t.Context())
		require.NoError(t, err)
		var left []Memory
		for _, kind := range []ir.MemKind{ir.Output, ir.State} {
			for i := range g.Memories {
				if name := g.Memories[i].Name; g.Memories[i].Kind == kind {
					data, err := p.Output(name)
					if kind == ir.State {
						data, err = p.State(name)
					}
					require.NoError(t, err)
					left = append(left, Memory{name, data})
				}
			}
			if len(left) > 0 {
				break
			}
		}
		out = append(out, left)
	}
	return out
}
