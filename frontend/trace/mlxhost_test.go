package trace_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

// written reads what a program of testdata/gen/mlxhost has written, by its names.
func written(t *testing.T, data []byte) map[string][][]byte {
	t.Helper()
	out := map[string][][]byte{}
	for len(data) > 0 {
		var parts [2][]byte
		for i := range parts {
			n := binary.LittleEndian.Uint32(data)
			parts[i], data = data[4:4+n], data[4+n:]
		}
		out[string(parts[0])] = append(out[string(parts[0])], parts[1])
	}
	return out
}

func TestDev(t *testing.T) {
	base := os.Getenv("DEV")
	if base == "" {
		t.Skip()
	}
	effects, err := os.ReadFile("/tmp/dec.effects")
	require.NoError(t, err)
	require.NoError(t, msl.Register("dec.effects", string(effects)))
	l, err := trace.Open(base)
	require.NoError(t, err)
	defer l.Close()
	dir := t.TempDir()
	builtin := os.Getenv("BUILTIN") != "0"
	o := trace.Options{Folder: dir, Builtin: builtin}
	if builtin && os.Getenv("ONLY") == "" {
		o.Outputs = []string{os.Getenv("LOGITS")}
	}
	r, err := trace.Import(t.Context(), l, o)
	require.NoError(t, err)
	t.Log(r.Remarks)
	for _, f := range r.Files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f.Path)), f.Data, 0o600))
	}
	data, err := os.ReadFile(base + ".outputs")
	require.NoError(t, err)
	want := written(t, data)
	g := r.Module.Graphs[0]
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	if !builtin || os.Getenv("ONLY") != "" {
		i, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
		require.NoError(t, err)
		defer i.Close()
		p, err := i.Graph(t.Context(), g.Name)
		require.NoError(t, err)
		for pos := range want["token"] {
			require.NoError(t, p.SetParam("pos", float64(pos)))
			_, err := p.Run(t.Context())
			require.NoError(t, err)
			got, err := p.State(os.Getenv("LOGITS"))
			require.NoError(t, err)
			require.True(t, bytes.Equal(want["logits"][pos], got), "logits of step %d: %x %x", pos, want["logits"][pos], got)
		}
		return
	}
	result, err := optimize.Run(t.Context(), g, optimize.Options{Pipeline: passes.DefaultPipeline(), Proof: prove.Options{Sources: []string{"dec.effects"}}})
	require.NoError(t, err)
	t.Log(result.Proof.Verdict)
	require.Equal(t, prove.Proved, result.Proof.Verdict)
	for _, g := range []*ir.Graph{g, result.Optimized} {
		i, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
		require.NoError(t, err)
		defer i.Close()
		p, err := i.Graph(t.Context(), g.Name)
		require.NoError(t, err)
		for pos := range want["token"] {
			require.NoError(t, p.SetParam("pos", float64(pos)))
			_, err := p.Run(t.Context())
			require.NoError(t, err)
			for m := range g.Memories {
				if m := &g.Memories[m]; m.Kind == ir.Output {
					got, err := p.Output(m.Name)
					require.NoError(t, err)
					name := "token"
					if m.Size > 4 {
						name = "logits"
					}
					require.True(t, bytes.Equal(want[name][pos], got), "%s of step %d", name, pos)
				}
			}
		}
	}
}
