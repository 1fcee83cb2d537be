package output

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// Two names that differ only in case are one file if the directory ignores case, and
// two files otherwise, also before either exists.
func TestNamesThatDifferInCase(t *testing.T) {
	dir := t.TempDir()
	a, b := at(filepath.Join(dir, "Y.npy")), at(filepath.Join(dir, "y.npy"))
	require.False(t, a.is(b))
	a.folds = true
	require.True(t, a.is(b))
	require.True(t, b.is(a))
	c := at(filepath.Join(dir, "z.npy"))
	require.False(t, a.is(c))
	require.False(t, a.is(at(filepath.Join(t.TempDir(), "Y.npy"))))
	// An existing file is recognized under any of its names.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")))
	require.True(t, at(filepath.Join(dir, "f")).is(at(filepath.Join(dir, "g"))))
	require.False(t, at(filepath.Join(dir, "f")).is(a))
	// Two paths to one directory.
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "again")))
	require.True(t, at(filepath.Join(dir, "new")).is(at(filepath.Join(dir, "again", "new"))))
	require.False(t, at(os.DevNull).is(at(os.DevNull)), "a device keeps nothing")
}

// References within a container that is referred to are followed, also in rings.
func TestReferencesOfReferences(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	file := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(file("sub"), 0o755))
	require.NoError(t, os.WriteFile(file("model.bin"), make([]byte, 64), 0o600))
	zeros := sha256.Sum256(make([]byte, 64))
	contents := make([]byte, 8192)
	inner := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{
		{Name: "w", Blob: ir.ExternalBlob("../model.bin", 0, 64, zeros)},
		{Name: "ring", Blob: ir.ExternalBlob("inner.mlxg", 0, 1, zeros)},
		{Name: "own", Blob: ir.NewBlob(contents)},
	}}
	// A ring cannot be written directly, so the bytes of another name are changed.
	inner.Data[1].Blob.Path = "innex.mlxg"
	require.NoError(t, mlxg.WriteFile(ctx, file("sub/inner.mlxg"), inner, mlxg.WriteOptions{}))
	require.NoError(t, os.Symlink("inner.mlxg", file("sub/innex.mlxg")))
	require.Equal(t, []string{"../model.bin", "innex.mlxg"}, references(t, file("sub/inner.mlxg")))
	c, err := mlxg.Open(ctx, file("sub/inner.mlxg"), mlxg.OpenOptions{SkipExternal: true})
	require.NoError(t, err)
	off, ok := c.Offset(c.Module.Lookup("own"))
	require.True(t, ok)
	require.NoError(t, c.Close())

	outer := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{{Name: "own", Blob: ir.ExternalBlob("sub/inner.mlxg", off, 8192, sha256.Sum256(contents))}}}
	require.NoError(t, os.WriteFile(file("outer.mlxt"), []byte(mlxt.Format(outer)), 0o600))
	for _, target := range []string{"model.bin", "sub/inner.mlxg"} {
		link := file("link" + filepath.Base(target) + ".mlxg")
		require.NoError(t, os.Symlink(target, link))
		for _, outputFirst := range []bool{true, false} {
			f, err := inputs.Open(ctx, file("outer.mlxt"), inputs.Options{})
			require.NoError(t, err)
			var files Files
			var errs []error
			read := func() { errs = append(errs, files.ReadGraph(f)) }
			write := func() { _, err := files.WriteGraph("-o", link); errs = append(errs, err) }
			if outputFirst {
				write()
				read()
			} else {
				read()
				write()
			}
			require.NoError(t, f.Close())
			require.NoError(t, errs[0])
			require.ErrorContains(t, errs[1], "it would be destroyed", "sub/inner.mlxg refers to both")
		}
	}
}

func references(t *testing.T, path string) []string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return mlxg.References(path, data)
}
