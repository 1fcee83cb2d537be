package mlxfn

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page names all primitives that are recorded, and README how many there are.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/mlxfn.md")
	require.NoError(t, err)
	count := 0
	for name := range primitives {
		count++
		assert.Regexp(t, `\b`+name+`\b`, string(page))
		assert.Contains(t, states, name)
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	said := regexp.MustCompile(`(\d+) kinds of primitives`).FindSubmatch(readme)
	require.NotNil(t, said)
	require.Equal(t, string(said[1]), strconv.Itoa(count))
}
