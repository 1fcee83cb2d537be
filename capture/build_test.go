package capture

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuildFails: a compiler that fails, as one does that is interrupted, is an error, and leaves nothing behind.
func TestBuildFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	compiler := filepath.Join(os.Getenv("TMPDIR"), "compiler") // there is no such program
	_, _, err := Build(func(args ...string) *exec.Cmd { return exec.CommandContext(t.Context(), compiler, args...) })
	require.ErrorContains(t, err, "does not compile")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}
