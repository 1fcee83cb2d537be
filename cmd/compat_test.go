package cmd_test

import (
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/npy"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// TestCompatibility: what each release has written is read as it was meant then (docs/stability.md): graphs are whole, proved
// against one another, and give the text and the logits that they gave; a measured profile is taken; logs become graphs.
// scripts/compat.sh makes the files of a release.
func TestCompatibility(t *testing.T) {
	releases, err := filepath.Glob("../testdata/compat/*/COMMIT")
	require.NoError(t, err)
	require.NotEmpty(t, releases)
	compiler, err := clang.Find(t.Context())
	require.NoError(t, err)
	for i, mark := range releases {
		from, err := filepath.Abs(filepath.Dir(mark))
		require.NoError(t, err)
		t.Run(filepath.Base(from), func(t *testing.T) {
			if !sample.Takes("TestCompatibility", i, 2) {
				t.Skip("another run takes this release")
			}
			dir := t.TempDir()
			run := func(program string, args ...string) string {
				t.Helper()
				c := exec.Command(program, args...)
				c.Dir, c.Env = dir, append(os.Environ(), clang.Env+"="+compiler.Path, "XDG_CACHE_HOME="+dir)
				out, err := c.CombinedOutput()
				require.NoError(t, err, "%s %v\n%s", program, args, out)
				return string(out)
			}
			file := func(name string) string {
				path := filepath.Join(from, name)
				if _, err := os.Stat(path); err != nil {
					return ""
				}
				return path
			}
			known := []string{"COMMIT"}
			for _, name := range []string{"recorded.mlxg", "optimized.mlxg", "recorded.mlxt", "logits.npy", "text.txt", "cpu.profile"} {
				require.NotEmpty(t, file(name), "%s is missing: scripts/compat.sh", name)
				known = append(known, name, "log.mlxtrace")
			}
			all, err := os.ReadDir(from)
			require.NoError(t, err)
			for _, f := range all {
				assert.True(t, slices.Contains(known, f.Name()), "nothing is tested of %s", f.Name())
			}
			recorded := file("recorded.mlxg")
			text, err := os.ReadFile(file("text.txt"))
			require.NoError(t, err)
			logits := array(t, file("logits.npy"))
			for _, name := range []string{"recorded.mlxg", "optimized.mlxg"} {
				run("mlxc", "verify", "--verify", file(name))
				run("mlxc", "verify", recorded, file(name))
				said := run("mlxreplay", "generate", file(name), "--device", "cpu", "--prompt", "ABC", "-n", "16", "--ignore-eos", "--logits", "logits.npy")
				assert.Contains(t, said, strings.TrimSpace(string(text)), name)
				now := array(t, filepath.Join(dir, "logits.npy"))
				require.Len(t, now, len(logits))
				for i := range now {
					// Sums of today's loops may have another order.
					assert.InDelta(t, logits[i], now[i], 1e-4*math.Max(1, math.Abs(logits[i])), "%s: logit %d", name, i)
				}
			}
			run("mlxc", "asm", file("recorded.mlxt"), "-o", "again.mlxg")
			run("mlxc", "diff", recorded, "again.mlxg")
			run("mlxc", "optimize", recorded, "-o", "now.mlxg", "--profile", file("cpu.profile"))
			// What a release has optimized is proved against its recording above, and so is this: where each of the two has fused what the other
			// has not, neither is a step from the other.
			run("mlxc", "verify", recorded, "now.mlxg")

			if log := file("log.mlxtrace"); log != "" {
				run("mlxc", "import", log, "-o", "log.mlxg")
				run("mlxc", "verify", "--verify", "log.mlxg")
				assert.Contains(t, run("mlxc", "dump", "log.mlxg"), "n = $pos)")
				c := exec.Command("mlxc", "import", log, "-o", "without.mlxg")
				c.Dir, c.Env = dir, append(os.Environ(), clang.Env+"=/nowhere")
				out, err := c.CombinedOutput()
				require.Error(t, err)
				assert.Contains(t, string(out), "only what is bound is known", "without a clang the kernel is taken to write its input, and it is said why")
			}
		})
	}
}

// array reads the f32 of a file.
func array(t *testing.T, path string) []float64 {
	t.Helper()
	a, err := npy.Load(path)
	require.NoError(t, err)
	require.Equal(t, npy.Float32, a.DType)
	var out []float64
	for b := range slices.Chunk(a.Data, 4) {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	require.NotEmpty(t, out)
	return out
}
