package mlxt_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// Nothing makes the parser panic, and whatever it accepts prints and reads back
// equal.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	require.NoError(f, err)
	for _, file := range append(files, "testdata/errors.txtar") {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		for _, part := range txtar.Parse(data).Files {
			f.Add(part.Data)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := mlxt.Parse(context.Background(), "fuzz.mlxt", src)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		text := mlxt.Format(m)
		again, err := mlxt.Parse(context.Background(), "again.mlxt", []byte(text))
		require.NoError(t, err, text)
		require.Empty(t, irtest.Diff(m, again), text)
		require.Equal(t, text, mlxt.Format(again))
	})
}
