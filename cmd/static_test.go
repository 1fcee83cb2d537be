package cmd_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestStatic: the compiler needs nothing of the system at its start, and so runs where the C library is
// another, or none; so does the replayer for Linux if it is built with the tag static. Without it, it
// drives NVIDIA's GPUs there; for Macs it drives Apple's.
func TestStatic(t *testing.T) {
	sample.Seldom(t)
	const (
		metal  = "github.com/mlxc/mlxc/backend/metal"
		cuda   = "github.com/mlxc/mlxc/backend/cuda"
		purego = "github.com/ebitengine/purego"
	)
	for _, k := range []struct {
		command, system, tags string
		want                  []string // of these three
	}{
		{"mlxreplay", "linux", "", []string{cuda, purego}},
		{"mlxreplay", "linux", "static", nil},
		{"mlxreplay", "darwin", "", []string{metal, purego}},
		{"mlxc", "linux", "", nil},
		{"mlxc", "darwin", "", nil},
	} {
		list := exec.Command("go", "list", "-tags", k.tags, "-deps", "./"+k.command)
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+k.system, "GOARCH=arm64")
		list.Stderr = os.Stderr
		out, err := list.Output()
		require.NoError(t, err)
		packages := strings.Fields(string(out))
		assert.NotContains(t, packages, "github.com/stretchr/testify/assert", "%s has a library for tests in it", k.command)
		var found []string
		for _, p := range []string{metal, cuda, purego} {
			if slices.Contains(packages, p) {
				found = append(found, p)
			}
		}
		assert.Equal(t, k.want, found, "%s for %s, tags %q", k.command, k.system, k.tags)
	}
	for tags, dynamic := range map[string]bool{"": true, "static": false} {
		if tags != "" && !sample.Takes(t.Name(), 0, 4) {
			continue // a build of its own
		}
		program := filepath.Join(t.TempDir(), "mlxreplay")
		build := exec.Command("go", "build", "-tags", tags, "-o", program, "./mlxreplay")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, dynamic, linked(t, program), "mlxreplay is linked dynamically, tags %q", tags)
		if runtime.GOOS != "linux" {
			continue
		}
		out, err = exec.Command(program, "devices").CombinedOutput()
		require.NoError(t, err, "%s", out)
		missing := strings.Contains(string(out), "cuda       unavailable: cuda: this program was built without it")
		assert.Equal(t, !dynamic, missing, "tags %q: %s", tags, out)
	}
}

// linked reports whether a program needs a dynamic linker.
func linked(t *testing.T, program string) bool {
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
