package mlxreplay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/tokenizer"
	"github.com/mlxc/mlxc/tokenizer/chat"
)

// maxMessages bounds the size of a file of messages, in bytes. No model has a context
// for more.
const maxMessages = 64 << 20

// conversation returns the messages that the flags --system and --messages begin a
// conversation with.
func conversation(system, path string) ([]chat.Message, error) {
	var out []chat.Message
	if system != "" {
		out = append(out, chat.Message{Role: "system", Content: system})
	}
	if path == "" {
		return out, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxMessages+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(raw) > maxMessages {
		return nil, fmt.Errorf("%s: it has more than %d bytes", path, maxMessages)
	}
	var list []map[string]any
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%s: want a list of {\"role\": …, \"content\": …}: %w", path, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: it has no messages", path)
	}
	for i, m := range list {
		role, ok := m["role"].(string)
		content, ok2 := m["content"].(string)
		if !ok || !ok2 || role == "" || len(m) != 2 {
			return nil, fmt.Errorf("%s: message %d: want role and content, both texts, and nothing else", path, i)
		}
		if role == "system" && i == 0 && system != "" {
			return nil, fmt.Errorf("%s: message 0 is a system message: leave out --system", path)
		}
		out = append(out, chat.Message{Role: role, Content: content})
	}
	return out, nil
}

// render returns a conversation as tokens, as the model expects them before its answer.
func render(ctx context.Context, m *textgen.Model, messages []chat.Message) ([]int32, error) {
	t := m.Tokenizer
	text := func(r tokenizer.Role) string {
		if id, ok := t.ID(r); ok {
			return t.Piece(id, true)
		}
		return ""
	}
	rendered, err := chat.Render(ctx, t.ChatTemplate(), messages, chat.Options{BOS: text(tokenizer.BOS), EOS: text(tokenizer.EOS), AddGenerationPrompt: true})
	if err != nil {
		return nil, err
	}
	return t.Encode(rendered, true), nil
}
