package simd

import (
	"context"
	"debug/elf"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// encoding is a line of neon_arm64.h: an instruction as a number, and as clang
// writes it.
type encoding struct {
	name     string
	params   []string
	word     string // a constant expression of the params
	assembly string // with {param}
}

var encodingLine = regexp.MustCompile(`^#define (\w+)\(([^)]*)\) WORD \$(.*) // (.*)$`)

func encodings(t *testing.T) []encoding {
	text, err := os.ReadFile("neon_arm64.h")
	require.NoError(t, err)
	var all []encoding
	for _, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		m := encodingLine.FindStringSubmatch(line)
		require.NotNilf(t, m, "%q is no macro of one instruction with its assembly", line)
		all = append(all, encoding{m[1], strings.Split(m[2], ", "), m[3], m[4]})
	}
	return all
}

// with puts numbers in place of the params.
func (e encoding) with(t *testing.T, values map[string]int) (word uint32, assembly string) {
	expr, assembly := e.word, e.assembly
	for _, p := range e.params {
		v := fmt.Sprint(values[p])
		require.Contains(t, assembly, "{"+p+"}", "%s does not say where %s stands", e.name, p)
		expr = regexp.MustCompile(`\b`+p+`\b`).ReplaceAllString(expr, v)
		assembly = strings.ReplaceAll(assembly, "{"+p+"}", v)
	}
	tv, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expr)
	require.NoError(t, err, e.name)
	n, exact := constant.Uint64Val(tv.Value)
	require.True(t, exact && n < 1<<32, "%s: %s", e.name, expr)
	return uint32(n), assembly
}

// TestNEONEncodings: each instruction that the assembly has as a number is what
// clang makes of its name, for all kinds of operands.
func TestNEONEncodings(t *testing.T) {
	var words []uint32
	var lines []string
	r := rng(7)
	for _, e := range encodings(t) {
		for range 40 {
			values := map[string]int{"d": r.IntN(32), "n": r.IntN(32), "m": r.IntN(32), "i": r.IntN(4), "f": 1 + r.IntN(32)}
			w, line := e.with(t, values)
			words, lines = append(words, w), append(lines, line)
		}
	}
	require.NotEmpty(t, words)
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f.s"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	cmd := c.Command(context.Background(), "--target=aarch64-unknown-linux-gnu", "-c", "f.s", "-o", "f.o")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	f, err := elf.Open(filepath.Join(dir, "f.o"))
	require.NoError(t, err)
	defer f.Close()
	code, err := f.Section(".text").Data()
	require.NoError(t, err)
	require.Len(t, code, 4*len(words))
	for i, w := range words {
		assert.Equal(t, fmt.Sprintf("%#08x", f.ByteOrder.Uint32(code[4*i:])), fmt.Sprintf("%#08x", w), lines[i])
	}
}
