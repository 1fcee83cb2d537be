package chat

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // "system", "user", "assistant"; the template decides which ones it knows
	Content string `json:"content"`
}

// Options are the other variables of the template, and its limits.
type Options struct {
	BOS, EOS            string    // texts of the tokens, for bos_token and eos_token
	AddGenerationPrompt bool      // end with the beginning of the assistant's turn
	Now                 time.Time // for strftime_now; zero: the current time
	Limits              Limits
}

// Render runs the template on the messages and returns its output. Every error is an
// [*Error]. It wraps the context's error if that ended the rendering, and [ErrLimit] if
// a limit did.
func Render(ctx context.Context, template string, messages []Message, o Options) (text string, err error) {
	if template == "" {
		return "", &Error{Reason: "the model has no chat template"}
	}
	if len(template) > maxTemplate {
		return "", &Error{Reason: fmt.Sprintf("it has %d bytes, at most %d are supported", len(template), maxTemplate)}
	}
	b := newBudget(ctx, o.Limits)
	r := &run{budget: &b, options: o, scope: &scope{}}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Error:
			if p.Line == 0 {
				p.Line = r.line
			}
			text, err = "", p
		case runtime.Error:
			// This is a mistake of this package. A template must not end the program.
			text, err = "", &Error{Line: r.line, Reason: "internal error: " + p.Error(), Err: p}
		default:
			panic(p)
		}
	}()
	b.check()
	body := parse(&b, template)
	turns := r.room(len(messages))
	for _, m := range messages {
		d := r.newDict()
		r.put(d, "role", m.Role)
		r.put(d, "content", m.Content)
		turns = append(turns, d)
	}
	r.assign("messages", &list{aList, turns})
	r.assign("bos_token", o.BOS)
	r.assign("eos_token", o.EOS)
	r.assign("add_generation_prompt", o.AddGenerationPrompt)
	r.assign("tools", none{}) // as transformers passes them where there are none
	r.assign("documents", none{})
	r.body(body)
	return string(r.out), nil
}
