package cmd_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStatic: the commands for Linux need nothing of the system at their start, and so run where the C
// library is another, or none; those for Macs drive GPUs.
func TestStatic(t *testing.T) {
	const driver = "github.com/mlxc/mlxc/backend/metal"
	for system, drives := range map[string]bool{"linux": false, "darwin": true} {
		list := exec.Command("go", "list", "-deps", "./mlxreplay")
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH=arm64")
		list.Stderr = os.Stderr
		out, err := list.Output()
		require.NoError(t, err)
		packages := strings.Fields(string(out))
		if assert.Equal(t, drives, slices.Contains(packages, driver), system); !drives {
			assert.NotContains(t, packages, "github.com/ebitengine/purego", system)
		}
	}
	program := filepath.Join(t.TempDir(), "mlxreplay")
	build := exec.Command("go", "build", "-o", program, "./mlxreplay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		assert.NotEqual(t, elf.PT_INTERP, p.Type, "mlxreplay is linked dynamically")
	}
}
