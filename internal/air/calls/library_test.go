package calls

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

var update = flag.Bool("update", false, "write math.ll anew")

func compiler(t testing.TB) clang.Compiler {
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	return c
}

func runs(t testing.TB, cmd *exec.Cmd) []byte {
	t.Helper()
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	require.NoErrorf(t, err, "%s\n%s", cmd, errors.String())
	return out
}

// What LLVM 19 does not know, or what a definition elsewhere would have to repeat.
var (
	unneeded = regexp.MustCompile(` (local_unnamed_addr|noundef|dso_local|samesign|signext|zeroext)\b| #\d+|range\(i\d+ [0-9, -]+\) ?|\btail |, !\S+ !\d+`)
	flags    = regexp.MustCompile(` (nuw|nsw|nneg|disjoint|exact)\b`)
	header   = regexp.MustCompile(`^define (\S+) @(\w+)\((.*)\) \{$`)
)

// mathTextOf compiles math.c to what math.ll holds.
func mathTextOf(t *testing.T) string {
	source, err := os.ReadFile("math/math.c")
	require.NoError(t, err)
	c := compiler(t)
	cmd := c.Command(context.Background(), "--target=aarch64-unknown-linux-gnu", "-std=c2x", "-O1", "-Wall", "-Werror", "-Wno-parentheses",
		"-fno-math-errno", "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-ffreestanding",
		"-fno-jump-tables", "-fno-strict-aliasing", "-S", "-emit-llvm", "-o", "-", "math/math.c")
	out := string(runs(t, cmd))
	text := []string{fmt.Sprintf("; math.c (SHA-256 %x) by clang %d; TestMathText -update\n", sha256.Sum256(source), c.Version)}
	var function []string
	for line := range strings.SplitSeq(out, "\n") {
		line = unneeded.ReplaceAllString(strings.TrimRight(line, " "), "")
		if m := header.FindStringSubmatch(line); m != nil {
			line = fmt.Sprintf("define internal %s @%s%s(%s) alwaysinline nounwind {", m[1], prefix, m[2], m[3])
			function = []string{}
		}
		if function == nil {
			require.NotRegexp(t, "^(define|@)", line)
			continue
		}
		if line == "" {
			continue
		}
		line, _, _ = strings.Cut(line, " ; preds")
		function = append(function, flags.ReplaceAllString(strings.TrimRight(line, " "), ""))
		if line == "}" {
			text = append(text, strings.Join(function, "\n")+"\n")
			function = nil
		}
	}
	return strings.Join(text, "\n")
}

// TestMathText checks that math.ll is what math.c says.
func TestMathText(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile("math/math.ll", []byte(mathTextOf(t)), 0o644))
	}
	written, err := os.ReadFile("math/math.ll")
	require.NoError(t, err)
	for name, f := range library() {
		if !regexp.MustCompile("^(sin|cos|tan|tanpi|fmod)_|^half_of_float|^float_of_half").MatchString(name) {
			assert.False(t, strings.Contains(f.text, "  br "), name)
		}
		assert.NotRegexp(t, "llvm.(floor|ceil|trunc|rint|round)", strings.Join(f.declares, " "), name)
	}
	source, err := os.ReadFile("math/math.c")
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(written), "\n")
	assert.Contains(t, first, fmt.Sprintf("SHA-256 %x", sha256.Sum256(source)), "math.c changed: go test -run TestMathText -update")
	if strings.Contains(first, fmt.Sprintf("clang %d;", compiler(t).Version)) {
		assert.Equal(t, mathTextOf(t), string(written))
	}
}

// compiles returns what clang makes of the text.
func compiles(t testing.TB, c clang.Compiler, text string, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f.ll"), []byte(text), 0o644))
	cmd := c.Command(context.Background(), append(args, "-Wno-override-module", "f.ll", "-o", "out")...)
	cmd.Dir = dir
	message, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "%s", message)
	code, err := os.ReadFile(filepath.Join(dir, "out"))
	require.NoError(t, err)
	return code
}
