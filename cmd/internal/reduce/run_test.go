//go:build unix

package reduce_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/reduce"
)

// A command is told the path in both ways, whatever characters it has, and its exit code is what counts.
func TestCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it's a $graph.mlxt")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	for text, want := range map[string]int{
		"cat {} | grep -q one && test -f {}": 0,
		`test "$MLXC_GRAPH" = {}`:            0,
		"grep -q two {}":                     1,
		"exit 3":                             3,
		"sleep 1000 &":                       0, // it leaves something behind that holds its output
		"cat":                                0, // nothing can be read
		"yes | head -c 10000000":             0, // of much that is printed the end is kept
		"echo out; echo err >&2; kill -9 $$; yes": -1,
	} {
		r, err := (&reduce.Command{Text: text, Path: path}).Run(t.Context())
		require.NoError(t, err, text)
		assert.Equal(t, want, r.Code, text)
		if want == -1 {
			assert.Contains(t, r.String(), "out\nerr")
		}
	}
}

// What takes too long is ended with all that it has started, and so is everything where the context ends.
func TestCommandEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g")
	mark := filepath.Join(t.TempDir(), "mark")
	start := time.Now()
	left, err := (&reduce.Command{Text: "(sleep 0.5; touch " + mark + ") >/dev/null 2>&1 & exit 3", Path: path}).Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, left.Code)
	r, err := (&reduce.Command{Text: "trap '' TERM; (sleep 0.8; touch " + mark + ") & sleep 1000", Path: path, Limit: 200 * time.Millisecond}).Run(t.Context())
	require.NoError(t, err)
	assert.True(t, r.Late)
	assert.NotZero(t, r.Code)
	assert.Less(t, time.Since(start), 30*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = (&reduce.Command{Text: "sleep 1000", Path: path}).Run(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	time.Sleep(time.Until(start.Add(1300 * time.Millisecond)))
	assert.NoFileExists(t, mark, "what it has started has ended too")
}
