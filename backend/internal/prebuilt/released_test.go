package prebuilt

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// most is how many bytes the archive of a release may have: each stays in the history for good. The archive from
// before that rule has no release.
const most = 4 << 20

// TestReleased: the archive in the tree changes with a release alone, which make ptx-release notes and CHANGELOG.md
// tells of.
func TestReleased(t *testing.T) {
	text, err := os.ReadFile("released.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	release, digest, ok := strings.Cut(lines[len(lines)-1], " ")
	require.True(t, ok)
	assert.Equal(t, digest, fmt.Sprintf("%x", sha256.Sum256(embedded)), "kernels.bin is not that of release %s: between releases leave it as it is (git checkout), and use make ptx; for a release say make ptx-release TAG=…", release)
	if len(lines) == 1 && release == "none" {
		return
	}
	changes, err := os.ReadFile(filepath.Join("..", "..", "..", "CHANGELOG.md"))
	require.NoError(t, err)
	assert.True(t, strings.Contains(string(changes), "\n## "+release+"\n"), "CHANGELOG.md does not tell of release %s", release)
	assert.LessOrEqual(t, len(embedded), most, "the archive of a release has at most %d bytes", most)
}
