package mlxt_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir/mlxt"
)

// The examples of docs/text-format.md are true: whole modules parse, and the
// pieces of a graph, put together, are what the printer writes.
func TestTheDocumentedExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/text-format.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(mlxt|graph)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	var modules int
	var inside strings.Builder
	for _, b := range blocks {
		if b[1] == "mlxt" {
			_, err := mlxt.Parse(context.Background(), "text-format.md", []byte(b[2]))
			require.NoError(t, err, b[2])
			modules++
			continue
		}
		inside.WriteString(b[2])
	}
	require.Equal(t, 5, modules)
	m, err := mlxt.Parse(context.Background(), "text-format.md", []byte("mlxt 1\n\ngraph g {\n"+inside.String()+"}\n"))
	require.NoError(t, err)
	require.Equal(t, "mlxt 1\n\ngraph g {\n"+inside.String()+"}\n", strings.Replace(mlxt.Format(m), "\n\n  #0", "\n  #0", 1))
}
