package cmd_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/python"
)

// TestFormula: the formula for Homebrew names each archive of a release with its digest, and none whose digest is another than
// the list says; ruby, where there is one, takes it, and what it calls there are methods of Homebrew's.
func TestFormula(t *testing.T) {
	interpreter, err := python.Find()
	require.NoError(t, err)
	dist := t.TempDir()
	digests, list := map[string]string{}, ""
	for _, target := range []string{"darwin_arm64", "linux_arm64", "linux_amd64"} {
		name := "mlxc_1.2.3_" + target + ".tar.gz"
		require.NoError(t, os.WriteFile(filepath.Join(dist, name), []byte("an archive for "+target), 0o644))
		digests[name] = fmt.Sprintf("%x", sha256.Sum256([]byte("an archive for "+target)))
		list += digests[name] + "  " + name + "\n"
	}
	sums := filepath.Join(dist, "checksums.txt")
	require.NoError(t, os.WriteFile(sums, []byte(list), 0o644))
	out, err := exec.Command(interpreter, "../scripts/formula.py", "v1.2.3", dist).Output()
	require.NoError(t, err)
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`url "\S+/releases/download/v1\.2\.3/(\S+)"\s+sha256 "(\w+)"`).FindAllStringSubmatch(string(out), -1) {
		found[m[1]] = m[2]
	}
	assert.Equal(t, digests, found)

	require.NoError(t, os.WriteFile(sums, []byte(strings.Replace(list, list[:8], "00000000", 1)), 0o644))
	_, err = exec.Command(interpreter, "../scripts/formula.py", "1.2.3", dist).Output()
	assert.Error(t, err, "an archive that is not what checksums.txt says")

	if _, err := exec.LookPath("ruby"); err != nil {
		t.Log("there is no ruby to read the formula")
		return
	}
	formula := filepath.Join(dist, "mlxc.rb")
	require.NoError(t, os.WriteFile(formula, out, 0o644))
	said, err := exec.Command("ruby", "-c", formula).CombinedOutput()
	require.NoError(t, err, "%s", said)
	// A stand-in for Homebrew's class says what is taken on a Mac and on Linux by an Intel processor.
	said, err = exec.Command("ruby", "-e", `
class Formula
  %w[desc homepage version license depends_on test sha256].each { |m| define_singleton_method(m) { |*a| } }
  %w[on_macos on_linux on_arm on_intel].each { |m| define_singleton_method(m) { |&b| b.call if ARGV.include?(m) } }
  define_singleton_method(:url) { |u| puts u }
end
load ARGV.shift`, formula, "on_linux", "on_intel").CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Equal(t, "mlxc_1.2.3_linux_amd64.tar.gz", filepath.Base(strings.TrimSpace(string(said))))
}
