package record_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/record"
)

// A capture that the environment asks for is never written over the file from which the
// weights are mapped, nor twice to one file that has two names.
func TestDumpDestroysNothing(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	s := record.New("first")
	s.Add(s.Weight("w", ir.NewBlob(make([]byte, 1<<16)), ir.F32, 1<<14), s.Input("x", ir.F32, 1<<14), record.Into(s.Output("y", ir.F32, 1<<14)))
	g, err := s.Graph()
	require.NoError(t, err)
	require.NoError(t, mlxg.WriteFile(context.Background(), file("weights.mlxg"), &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{}))
	before, err := os.ReadFile(file("weights.mlxg"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink("weights.mlxg", file("t.mlxg")))

	f, err := mlxg.Open(context.Background(), file("weights.mlxg"), mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	d := device(t, testdevice.Options{})
	run := func(name string) error {
		s := record.New(name, record.Live(d))
		defer s.Close()
		w := s.Weight("w", f.Module.Graphs[0].Memories[0].Init.Blob, ir.F32, 1<<14)
		s.Add(w, w, record.Into(s.Output("y", ir.F32, 1<<14)))
		_, err := s.Finish()
		return err
	}
	t.Setenv(record.DumpVariable, dir)
	require.ErrorContains(t, run("t"), "is in use: this process reads its contents")
	after, err := os.ReadFile(file("weights.mlxg"))
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.NoError(t, os.Symlink("one.mlxg", file("two.mlxg")))
	require.NoError(t, run("one"))
	// If the file cannot be written, this is an error before anything is executed.
	t.Setenv(record.DumpVariable, file("no/such/place"))
	late := record.New("late", record.Live(d))
	require.ErrorContains(t, late.Err(), "MLXC_CAPTURE: there is no directory")
	late.Close()
	t.Setenv(record.DumpVariable, dir)

	one, err := os.ReadFile(file("one.mlxg"))
	require.NoError(t, err)
	require.NoError(t, run("two"))
	same, err := os.ReadFile(file("one.mlxg"))
	require.NoError(t, err)
	require.Equal(t, string(one), string(same), "the first stays")
}
