package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planted are the texts with each of the faults.
func planted(text string, faults []fault) (out []string) {
	for _, f := range faults {
		out = append(out, text[:f.from]+f.text+text[f.to:])
	}
	return out
}

func TestInGo(t *testing.T) {
	const text = "package p\n\nfunc f(a int) bool {\n\tif a < 3 {\n\t\treturn true\n\t}\n\tg()\n\treturn false\n}\n\nfunc (x T) String() string { return g(1) }\n"
	all := planted(text, inGo("p.go", []byte(text)))
	for _, x := range all {
		_, err := parser.ParseFile(token.NewFileSet(), "p.go", x, 0)
		require.NoError(t, err, x)
	}
	require.Len(t, all, 6)
	assert.Contains(t, all[0], "if false && (a < 3) {")
	assert.Contains(t, all[1], "if a <= 3 {")
	assert.Contains(t, all[2], "if a < 4 {")
	assert.Contains(t, all[3], "return false\n\t}")
	assert.NotContains(t, all[4], "\tg()")
	assert.Contains(t, all[5], "return true\n}")
}

func TestInC(t *testing.T) {
	const text = "#include <x>\n// a + 1\nint f(int a) {\n  return a + 2; // - 3\n}\n"
	all := planted(text, inC("p.c", []byte(text)))
	require.Len(t, all, 2)
	assert.Contains(t, all[0], "a - 2;")
	assert.Contains(t, all[1], "a + 3;")
}

// TestRooms: every room has faults, and its paths are there.
func TestRooms(t *testing.T) {
	t.Chdir("../../..")
	share := 0
	for _, r := range rooms {
		all, err := r.faults()
		require.NoError(t, err, r.name)
		assert.Greater(t, len(all), 100, r.name)
		share += r.share
	}
	assert.Equal(t, 100, share)
}
