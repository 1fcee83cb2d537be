package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// Bounds. The longest published templates have some 30 KB.
const (
	maxTemplate = 256 << 10 // bytes; also bounds the depth of gonja's recursion
	maxOutput   = 16 << 20  // bytes
	maxRange    = 100_000   // elements, as in Jinja's sandbox
	maxDepth    = 100       // brackets, blocks and macro calls within one another
	maxReason   = 500       // bytes of an error's reason: gonja repeats whole expressions
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // "system", "user", "assistant"; the template decides what it knows
	Content string
}

// Options are the template's other variables.
type Options struct {
	BOS, EOS            string    // texts of the tokens, for bos_token and eos_token
	AddGenerationPrompt bool      // end with the beginning of the assistant's turn
	Now                 time.Time // for strftime_now; zero: the present
}

// Error says why a template failed and in which line of it.
type Error struct {
	Line   int    // from 1; 0 when no line is to blame
	Reason string // for raise_exception: the template's own words
	Err    error  // the whole story from gonja, or nil
}

// Error formats as "chat: template line N: reason".
func (e *Error) Error() string {
	reason := e.Reason
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	if e.Line == 0 {
		return "chat: template: " + reason
	}
	return fmt.Sprintf("chat: template line %d: %s", e.Line, reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

const templateName = "/template" // the memory loader wants a rooted path

// Render runs the template. Every error is an [*Error].
func Render(template string, messages []Message, o Options) (text string, err error) {
	if template == "" {
		return "", &Error{Reason: "the model has no chat template"}
	}
	if len(template) > maxTemplate {
		return "", &Error{Reason: fmt.Sprintf("it has %d bytes, at most %d are supported", len(template), maxTemplate)}
	}
	run := &run{}
	defer func() {
		// gonja has panics of its own (an index of the wrong type, a division
		// by zero); they are the template's mistakes, not this program's.
		if p := recover(); p != nil {
			text, err = "", &Error{Line: run.line, Reason: fmt.Sprintf("gonja gave up: %v", p)}
		}
	}()
	src, err := applyWhitespace(template)
	if err != nil {
		return "", err
	}
	loader, err := loaders.NewMemoryLoader(map[string]string{templateName: src})
	if err != nil {
		return "", &Error{Reason: err.Error(), Err: err}
	}
	cfg := config.New()
	cfg.KeepTrailingNewline = true // applyWhitespace has dropped the one to be dropped
	t, err := exec.NewTemplate(templateName, cfg, loader, run.environment(o))
	if err != nil {
		return "", parseError(err)
	}
	turns := make(list, len(messages))
	for i, m := range messages {
		turns[i] = dict("role", m.Role, "content", m.Content)
	}
	out := &boundedBuffer{}
	err = t.Execute(out, exec.NewContext(map[string]any{
		"messages":              turns,
		"bos_token":             o.BOS,
		"eos_token":             o.EOS,
		"add_generation_prompt": o.AddGenerationPrompt,
	}))
	if err != nil {
		return "", run.error(err)
	}
	return out.String(), nil
}

// boundedBuffer refuses to grow beyond maxOutput.
type boundedBuffer struct{ bytes.Buffer }

var errOutput = errors.New("the output is larger than 16 MiB")

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, errOutput
	}
	return b.Buffer.Write(p)
}

func (b *boundedBuffer) WriteString(s string) (int, error) {
	if b.Len()+len(s) > maxOutput {
		return 0, errOutput
	}
	return b.Buffer.WriteString(s)
}
