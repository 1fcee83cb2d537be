package chat_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/tokenizer/chat"
)

// TestRandomTemplatesAsJinja checks that random programs give what jinja2 gave
// (testdata/gen/chat_fuzz.py). A program that uses what this package lacks must give an error
// that says so, and such programs must be rare. The environment variable CHAT_FUZZ names
// another file of cases.
func TestRandomTemplatesAsJinja(t *testing.T) {
	path := os.Getenv("CHAT_FUZZ")
	if path == "" {
		path = filepath.Join("..", "..", "testdata", "tokenizer", "chat_fuzz.json")
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var o struct {
		Messages []chat.Message
		Cases    []struct {
			T      string
			X      *string
			Raised *string
			Error  string
		}
	}
	require.NoError(t, json.Unmarshal(b, &o))
	require.GreaterOrEqual(t, len(o.Cases), 2000)
	options := chat.Options{BOS: "<s>", EOS: "</s>", AddGenerationPrompt: true, Now: time.Date(2024, 2, 9, 7, 5, 3, 0, time.UTC)}
	lacking, wrong := 0, 0
	for _, c := range o.Cases {
		got, err := chat.Render(t.Context(), c.T, o.Messages, options)
		var e *chat.Error
		if err != nil {
			require.True(t, errors.As(err, &e), "%T", err)
		}
		ok := true
		switch {
		case err != nil && (strings.Contains(e.Reason, "not supported") || strings.Contains(e.Reason, "cannot be printed") ||
			strings.Contains(e.Reason, "cannot be sliced")): // jinja2 makes that undefined where it can tell before it runs
			lacking++
		case c.X != nil:
			ok = assert.NoError(t, err, "%s\nwant %q", c.T, *c.X) && assert.Equal(t, *c.X, got, "%s", c.T)
		case c.Raised != nil:
			ok = assert.Error(t, err, "%s", c.T) && assert.Equal(t, *c.Raised, e.Reason, "%s", c.T)
		default:
			ok = assert.Error(t, err, "%s\nwant %s, got %q", c.T, c.Error, got)
		}
		if !ok {
			if wrong++; wrong == 20 {
				t.Fatal("and so on")
			}
		}
	}
	assert.Less(t, lacking, len(o.Cases)/20, "templates that use what is not supported")
	t.Logf("%d templates, %d use what is not supported", len(o.Cases), lacking)
}
