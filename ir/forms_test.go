package ir_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// The two forms say the same: text → container → text is the same text, byte
// for byte, and container → text → container the same container.
func TestTextAndContainerAgree(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "g.mlxg")
	again := filepath.Join(dir, "h.mlxg")
	rapid.Check(t, func(t *rapid.T) {
		text := mlxt.Format(irtest.Module(t))
		m, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(text))
		require.NoError(t, err)
		require.NoError(t, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}))
		f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{SkipExternal: true})
		require.NoError(t, err)
		back := mlxt.Format(f.Module)
		require.Equal(t, text, back)

		n, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(back))
		require.NoError(t, err)
		require.NoError(t, mlxg.WriteFile(context.Background(), again, n, mlxg.WriteOptions{}))
		require.NoError(t, f.Close())
		a, err := os.ReadFile(path)
		require.NoError(t, err)
		b, err := os.ReadFile(again)
		require.NoError(t, err)
		require.Equal(t, a, b)
	})
}
