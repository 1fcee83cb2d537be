package inputs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/tokenizer"
)

// opened is a model that remembers how it was opened.
type opened struct{ file *frontend.File }

func (opened) Record(context.Context, frontend.Options) (*ir.Module, error) {
	return nil, errors.New("no")
}
func (opened) Tokenizer() (*tokenizer.Spec, error) { return nil, errors.New("no") }
func (opened) Context() int64                      { return 1 }
func (opened) Remarks() []string                   { return nil }
func (opened) Close() error                        { return nil }

// TestSources: a file or folder goes to the front end that it matches, with its path if it has one.
func TestSources(t *testing.T) {
	before := sources
	t.Cleanup(func() { sources = before })
	open := func(f *frontend.File) (frontend.Model, error) { return opened{f}, nil }
	sources = append(sources, frontend.Source{Name: "TOY", Match: func(f *frontend.File) bool { return f.Begins("TOY") }, Open: open},
		frontend.Source{Name: "FOLDER", Open: open, Match: func(f *frontend.File) bool {
			_, err := os.Stat(filepath.Join(f.Path, "toy.json"))
			return f.Folder && err == nil
		}})
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	toy, folder, other := write("toy", "TOY 1"), filepath.Dir(write("folder/toy.json", "{}")), write("other", "x")
	model := func(path string) (frontend.Model, error) {
		in, err := Look(path)
		require.NoError(t, err)
		defer in.Close()
		return in.Model()
	}
	for _, path := range []string{toy, folder} {
		m, err := model(path)
		require.NoError(t, err)
		f := m.(opened).file
		assert.Equal(t, path, f.Path)
		assert.Equal(t, path == folder, f.Folder)
	}
	_, err := model(other)
	require.EqualError(t, err, other+" is no model of a kind that is known (GGUF or safetensors or mlxfn or TOY or FOLDER)")
	_, err = Look(dir)
	require.EqualError(t, err, dir+" is a directory, not a graph, and not the folder of a model, which has a config.json")
	in, err := Look(folder)
	require.NoError(t, err)
	_, err = in.Module(t.Context(), Options{})
	require.EqualError(t, err, folder+" is a FOLDER model, not a graph: record it first (mlxc record "+folder+" -o graph.mlxg)")

	// A pipe has no path: all of it is read.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = w.WriteString("TOY through a pipe")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	stdin := os.Stdin
	os.Stdin = r
	t.Cleanup(func() { os.Stdin, stdinRead = stdin, false })
	m, err := model("-")
	require.NoError(t, err)
	f := m.(opened).file
	assert.Equal(t, frontend.File{Name: "standard input", Head: []byte("TOY through a pipe")}, frontend.File{Name: f.Name, Path: f.Path, Head: f.Head})
	data, err := f.Read()
	require.NoError(t, err)
	assert.Equal(t, "TOY through a pipe", string(data))
}
