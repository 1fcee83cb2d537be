package chat_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/tokenizer/chat"
)

// TestModelsTemplates: templates that are made as those of model families are give what transformers gives
// (testdata/gen/chat_models.py). CHAT_MODELS names a file of other templates, such as published ones, of which errors need
// not have the same words.
func TestModelsTemplates(t *testing.T) {
	path, others := os.Getenv("CHAT_MODELS"), true
	if path == "" {
		path, others = filepath.Join("..", "..", "testdata", "tokenizer", "chat_models.json"), false
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var o oracle
	require.NoError(t, json.Unmarshal(b, &o))
	seen := map[string]int{}
	for _, c := range o.Cases {
		seen[c.Template]++
		got, err := chat.Render(t.Context(), o.Templates[c.Template], o.Conversations[c.Conversation], chat.Options{
			BOS: o.BOS, EOS: o.EOS, AddGenerationPrompt: c.AddGenerationPrompt, Now: time.Date(2024, 2, 9, 7, 5, 3, 0, time.UTC),
		})
		name := c.Template + ", " + c.Conversation
		if c.Text != nil {
			if assert.NoError(t, err, name) {
				assert.Equal(t, *c.Text, got, name)
			}
			continue
		}
		var e *chat.Error
		if assert.True(t, errors.As(err, &e), "%s: got %q, want %s", name, got, c.Error) && !others {
			assert.Equal(t, c.Error, e.Reason, name)
		}
	}
	if others {
		t.Logf("%d templates, %d cases", len(seen), len(o.Cases))
		return
	}
	for _, family := range []string{"llama3", "mistral", "qwen2", "qwen3", "gemma", "gemma3", "phi3", "granite", "gpt-oss", "smollm3"} {
		assert.Equal(t, 2*len(o.Conversations), seen[family], family)
	}
}
