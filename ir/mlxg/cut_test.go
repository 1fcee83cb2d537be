//go:build linux || darwin

package mlxg

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// If a container is cut after its checksums were verified, the goroutine that reads the
// missing part of its commands makes it an error.
func TestCutWhileNodesAreRead(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	b := ir.NewBuilder("g")
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 8})
	for i := range 4 * nodesPerPiece {
		b.Fill(ir.ViewOf(s, int64(i%8), 1), byte(i), "")
	}
	g, err := b.Graph()
	require.NoError(t, err)
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.NoError(t, WriteFile(ctx, path, &ir.Module{Graphs: []*ir.Graph{g}}, WriteOptions{}))
	m, err := mmap.Open(path)
	require.NoError(t, err)
	defer m.Close()
	im, err := parse(path, m.Bytes())
	require.NoError(t, err)
	strs, err := im.decodeStrings(ctx)
	require.NoError(t, err)
	meta := im.sections[metaSection]
	_, err = im.decodeMeta(ctx, strs, nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(meta.offset+meta.length/2)))
	err = mmap.Guard(func() error {
		_, err := im.decodeMeta(ctx, strs, nil, nil)
		return err
	})
	var fault *mmap.FaultError
	require.ErrorAs(t, err, &fault)
}
