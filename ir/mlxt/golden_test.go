package mlxt_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir/mlxt"
)

var update = flag.Bool("update", false, "rewrite the golden files; read the diff")

// Each archive in testdata/canonical is about one feature. NAME.canonical is what the printer
// writes for NAME.mlxt; if there is no such file, NAME.mlxt is canonical already.
func TestCanonicalText(t *testing.T) {
	files, err := filepath.Glob("testdata/canonical/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			golden(t, file, ".mlxt", ".canonical", func(t *testing.T, name string, in []byte) []byte {
				m, err := mlxt.Parse(context.Background(), name, in)
				require.NoError(t, err)
				out := mlxt.Format(m)
				again, err := mlxt.Parse(context.Background(), name, []byte(out))
				require.NoError(t, err)
				require.Empty(t, irtest.Diff(m, again))
				if out == string(in) {
					return nil
				}
				return []byte(out)
			})
		})
	}
}

// testdata/errors.txtar holds invalid texts, NAME.mlxt, and the parser's errors for them,
// NAME.error.
func TestErrors(t *testing.T) {
	cases := golden(t, "testdata/errors.txtar", ".mlxt", ".error", func(t *testing.T, name string, in []byte) []byte {
		m, err := mlxt.Parse(context.Background(), name, in)
		require.Error(t, err)
		require.Nil(t, m)
		return []byte(err.Error() + "\n")
	})
	require.GreaterOrEqual(t, cases, 40)
}

// golden runs f on each file of an archive whose name ends in suffix and
// compares its result with the file of the same stem that ends in want; a nil
// result is no file. It returns the number of inputs.
func golden(t *testing.T, path, suffix, want string, f func(t *testing.T, name string, in []byte) []byte) int {
	t.Helper()
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	var out []txtar.File
	wants := map[string][]byte{}
	for _, file := range a.Files {
		if strings.HasSuffix(file.Name, want) {
			wants[file.Name] = file.Data
		}
	}
	cases := 0
	for _, file := range a.Files {
		stem, isInput := strings.CutSuffix(file.Name, suffix)
		if !isInput {
			continue
		}
		cases++
		out = append(out, file)
		t.Run(stem, func(t *testing.T) {
			in := file.Data
			if stem == "no_last_newline" {
				in = bytes.TrimSuffix(in, []byte("\n"))
			}
			got := f(t, file.Name, in)
			if got != nil {
				out = append(out, txtar.File{Name: stem + want, Data: got})
			}
			if !*update {
				require.Equal(t, string(wants[stem+want]), string(got))
			}
			delete(wants, stem+want)
		})
	}
	if *update && !t.Failed() {
		a.Files = out
		require.NoError(t, os.WriteFile(path, txtar.Format(a), 0o666))
	} else {
		require.Empty(t, wants, "results without an input")
	}
	return cases
}
