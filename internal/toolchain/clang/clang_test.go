package clang_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// program writes a script that prints a line when it is asked for its version.
func program(t *testing.T, dir, name, line string) string {
	p := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(p, []byte("#!/bin/sh\n[ \"$1\" = clang ] && shift\n[ \"$1\" = --version ] && echo '"+line+"'\n"), 0o755))
	return p
}

// alone hides the Python environments of the machine.
func alone(t *testing.T) {
	empty := t.TempDir()
	t.Cleanup(clang.SetMachine(empty))
	t.Setenv("HOME", empty)
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
}

// What pip has installed is found, in the active environment, beside the first python3 on PATH, and among a user's own packages, if
// nothing is on PATH.
func TestFindInPython(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(clang.Env, "")
	for _, c := range []struct{ name, env, below string }{
		{"active", "VIRTUAL_ENV", "lib/python3.12/site-packages/ziglang"},
		{"conda", "CONDA_PREFIX", "lib/python3.12/site-packages/ziglang"},
		{"this program's", "", "lib/python3.13/site-packages/ziglang"},
		{"own", "HOME", ".local/lib/python3.9/site-packages/ziglang"},
		{"on PATH", "PATH", "lib/python3.11/site-packages/ziglang"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alone(t)
			prefix := t.TempDir()
			t.Setenv("PATH", t.TempDir())
			if c.env == "" {
				t.Cleanup(clang.SetExecutable(filepath.Join(prefix, "bin", "mlxreplay")))
			} else {
				t.Setenv(c.env, prefix)
			}
			if c.env == "PATH" {
				require.NoError(t, os.MkdirAll(filepath.Join(prefix, "bin"), 0o755))
				program(t, filepath.Join(prefix, "bin"), "python3", "")
				t.Setenv("PATH", filepath.Join(prefix, "bin"))
			}
			dir := filepath.Join(prefix, filepath.FromSlash(c.below))
			require.NoError(t, os.MkdirAll(dir, 0o755))
			program(t, dir, "zig", "clang version 21.1.0")
			found, err := clang.Find(t.Context())
			require.NoError(t, err)
			assert.Equal(t, filepath.Join(dir, "zig clang"), found.String())
			// What is on PATH comes first.
			on := t.TempDir()
			program(t, on, "clang", "clang version 19.1.7")
			t.Setenv("PATH", on)
			found, err = clang.Find(t.Context())
			require.NoError(t, err)
			assert.Equal(t, filepath.Join(on, "clang"), found.String())
		})
	}
}

// TestFind looks in folders of made-up programs, outside any source tree.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		name     string
		programs map[string]string // on PATH, and their first lines
		want     string            // the program, or an error
		version  int
	}{
		{"plain", map[string]string{"clang": "clang version 19.1.7"}, "clang", 19},
		{"a distribution's", map[string]string{"clang": "Debian clang version 21.1.0 (3)"}, "clang", 21},
		{"numbered when the plain one is old", map[string]string{"clang": "Debian clang version 14.0.6", "clang-20": "clang version 20.1.0", "clang-22": "clang version 22.1.8"}, "clang-22", 22},
		{"zig", map[string]string{"clang": "clang version 18.1.3", "zig": "clang version 22.1.8"}, "zig clang", 22},
		{"not Apple's", map[string]string{"clang": "Apple clang version 21.0.0 (clang-2100.0.1)"}, "error: Apple's clang", 0},
		{"too old", map[string]string{"clang": "clang version 18.1.3"}, "error: clang 18, at least 19", 0},
		{"another program", map[string]string{"clang": "gcc 12"}, `error: it says "gcc 12"`, 0},
		{"none", nil, "error: no clang 19 or later found", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, line := range c.programs {
				program(t, dir, name, line)
			}
			t.Chdir(t.TempDir())
			t.Setenv("PATH", dir)
			t.Setenv(clang.Env, "")
			alone(t)
			found, err := clang.Find(context.Background())
			if text, ok := strings.CutPrefix(c.want, "error: "); ok {
				require.ErrorContains(t, err, text)
				assert.ErrorContains(t, err, "scripts/fetch-clang.sh")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, filepath.Join(dir, c.want), found.String())
			assert.Equal(t, c.version, found.Version)
		})
	}
}

// TestNamed checks that the program named by MLXC_CLANG is taken, or is an error.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	named := program(t, dir, "zig", "clang version 22.1.8")
	t.Setenv(clang.Env, named)
	found, err := clang.Find(context.Background())
	require.NoError(t, err)
	assert.Equal(t, named+" clang", found.String())

	t.Setenv(clang.Env, filepath.Join(dir, "nothing"))
	_, err = clang.Find(context.Background())
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, clang.Env)

	t.Setenv(clang.Env, program(t, dir, "old", "clang version 14.0.6"))
	_, err = clang.Find(context.Background())
	assert.ErrorContains(t, err, "clang 14, at least 19")
}

// TestOldest checks that Oldest returns a compiler of the minimum version, or an error.
func TestOldest(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	t.Setenv("PATH", dir)
	t.Setenv(clang.OldestEnv, "")
	_, err := clang.Oldest(context.Background())
	require.ErrorContains(t, err, "scripts/fetch-clang.sh oldest")
	program(t, dir, "clang-19", "Debian clang version 19.1.7")
	found, err := clang.Oldest(context.Background())
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "clang-19"), found.String())
	named := program(t, dir, "zig", "clang version 19.1.4")
	t.Setenv(clang.OldestEnv, named)
	found, err = clang.Oldest(context.Background())
	require.NoError(t, err)
	assert.Equal(t, named+" clang", found.String())
	t.Setenv(clang.OldestEnv, program(t, dir, "new", "clang version 20.1.0"))
	_, err = clang.Oldest(context.Background())
	assert.ErrorContains(t, err, "is clang 20, not 19")
}

// TestHere checks that the tests of this module have a compiler, and that it compiles.
func TestHere(t *testing.T) {
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f.ll"), []byte("define i32 @f(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n"), 0o644))
	for target, want := range map[string]string{"x86_64-unknown-linux-gnu": "leal", "aarch64-unknown-linux-gnu": "add\tw0, w0, #1", "nvptx64-nvidia-cuda": ".visible .func"} {
		cmd := c.Command(context.Background(), "--target="+target, "-O2", "-S", "-Wno-override-module", "f.ll", "-o", "f.s")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoErrorf(t, err, "%s\n%s", target, out)
		text, err := os.ReadFile(filepath.Join(dir, "f.s"))
		require.NoError(t, err)
		assert.Contains(t, string(text), want, target)
	}
}
