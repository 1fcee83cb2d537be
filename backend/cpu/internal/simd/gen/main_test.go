package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files in the package's folder are those that this program writes.
func TestGenerated(t *testing.T) {
	files, err := generate()
	require.NoError(t, err)
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		// No assert.Equal: it would print a file's difference line by line for minutes.
		assert.True(t, string(text) == string(got), "%s is not what go generate writes", name)
	}
	there, err := filepath.Glob("../loops_*")
	require.NoError(t, err)
	assert.Len(t, there, len(files), "a file is left that nothing writes")
}

func TestRegistersRunOut(t *testing.T) {
	c := &code{name: "f", regs: []reg{"AX"}, used: make([]bool, 2)}
	c.scope(func() {
		c.reg()
		c.vecs(2)
		assert.PanicsWithValue(t, "f: no register is left", func() { c.reg() })
		assert.PanicsWithValue(t, "f: no vector registers are left", func() { c.vec() })
	})
	assert.Equal(t, reg("AX"), c.reg(), "the scope gives them back")
	assert.Equal(t, []vec{0, 1}, c.vecs(2))
}
