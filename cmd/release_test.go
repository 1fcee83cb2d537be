package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestReleaseConfiguration: goreleaser's configuration names programs, scripts and files that there are, and what builds programs
// elsewhere (wheels, the comparison of two builds) builds them with the same flags, for the same systems.
func TestReleaseConfiguration(t *testing.T) {
	text, err := os.ReadFile("../.goreleaser.yaml")
	require.NoError(t, err)
	var c struct {
		Before struct{ Hooks []string }
		Dist   string
		Builds []struct {
			ID, Main, Binary                   string
			Env, Flags, Ldflags, Tags, Targets []string
		}
		Archives []struct {
			ID     string
			Builds []string
			Files  []struct{ Src string }
		}
		SBOMs []struct{ Cmd string } `yaml:"sboms"`
	}
	require.NoError(t, yaml.Unmarshal(text, &c))
	at := func(name string) string { return filepath.Join("..", filepath.FromSlash(name)) }
	for _, h := range c.Before.Hooks {
		if script := strings.Fields(h)[0]; strings.Contains(script, "/") {
			assert.FileExists(t, at(script))
		}
	}
	for _, s := range c.SBOMs {
		assert.FileExists(t, filepath.Join("..", filepath.FromSlash(c.Dist), filepath.FromSlash(s.Cmd)), "from %s", c.Dist)
	}
	var built, archived []string
	for _, b := range c.Builds {
		built = append(built, b.ID)
		assert.FileExists(t, filepath.Join(at(b.Main), "main.go"))
		assert.Equal(t, filepath.Base(b.Main), b.Binary)
		assert.Equal(t, []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=true"}, b.Env, b.ID)
		assert.Equal(t, []string{"-trimpath"}, b.Flags, b.ID)
		assert.Equal(t, []string{"-s -w -buildid="}, b.Ldflags, b.ID)
		if strings.HasSuffix(b.ID, "-static") {
			assert.Equal(t, []string{"linux_amd64", "linux_arm64"}, b.Targets, b.ID)
		} else {
			assert.Equal(t, []string{"darwin_arm64", "linux_amd64", "linux_arm64", "windows_amd64"}, b.Targets, b.ID)
		}
	}
	for _, a := range c.Archives {
		archived = append(archived, a.Builds...)
		for _, f := range a.Files {
			if !strings.HasPrefix(f.Src, "out/") {
				assert.FileExists(t, at(f.Src))
			}
		}
	}
	assert.ElementsMatch(t, built, archived)
	for _, script := range []string{"scripts/wheel.py", "scripts/reproducible.sh"} {
		text, err := os.ReadFile(at(script))
		require.NoError(t, err)
		for _, want := range []string{"-trimpath", "-s -w -buildid=", "-buildvcs=true", "CGO_ENABLED"} {
			assert.Contains(t, string(text), want, script)
		}
	}
}
