// Package chat renders a model's own chat template, Jinja2 source that models
// carry in their metadata, to the text of a prompt.
//
// The engine is gonja; trim_blocks and lstrip_blocks are on, as the programs
// that write these templates have them. raise_exception, which templates call
// to refuse a conversation, becomes an error.
package chat

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // "system", "user" or "assistant"
	Content string
}

// Options of a rendering.
type Options struct {
	BOS, EOS            string // texts of the tokens, "" if the model has none
	AddGenerationPrompt bool   // end where the assistant's answer begins
}

// Render applies a template to a conversation. The result is to be tokenized
// with special tokens allowed; whoever renders text from outside must have
// refused special tokens in it.
func Render(template string, messages []Message, o Options) (text string, err error) {
	if template == "" {
		return "", errors.New("the model has no chat template")
	}
	t, err := compile(template)
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	list := make([]map[string]any, len(messages))
	for i, m := range messages {
		list[i] = map[string]any{"role": m.Role, "content": m.Content}
	}
	ctx := exec.NewContext(map[string]any{
		"messages": list, "bos_token": o.BOS, "eos_token": o.EOS, "add_generation_prompt": o.AddGenerationPrompt,
		"raise_exception": func(message string) (string, error) { return "", fmt.Errorf("the template refuses: %s", message) },
		"strftime_now":    func(format string) string { return time.Now().Format(goLayout.Replace(format)) },
	})
	defer func() {
		// gonja panics on some wrong templates.
		if r := recover(); r != nil {
			err = fmt.Errorf("chat template: %v", r)
		}
	}()
	text, err = t.ExecuteToString(ctx)
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return text, nil
}

// goLayout turns the strftime fields that templates use into Go's.
var goLayout = strings.NewReplacer("%d", "02", "%b", "Jan", "%B", "January", "%Y", "2006", "%m", "01", "%H", "15", "%M", "04", "%S", "05")

func compile(source string) (t *exec.Template, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	c := config.New()
	c.TrimBlocks, c.LeftStripBlocks = true, true
	name := fmt.Sprintf("chat-%x", sha256.Sum256([]byte(source)))
	loader, err := loaders.NewShiftedLoader(name, bytes.NewReader([]byte(source)), loaders.MustNewMemoryLoader(nil))
	if err != nil {
		return nil, err
	}
	return exec.NewTemplate(name, c, loader, gonja.DefaultEnvironment)
}
