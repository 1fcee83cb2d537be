package mlxreplay

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/tokenizer/chat"
)

type chatCmd struct {
	Model    string `arg:"" name:"graph" help:"Recorded model (.mlxg), or a ${kinds} model, which is recorded and optimized in memory."`
	System   string `help:"System message."`
	Messages string `placeholder:"FILE.json" help:"Conversation to go on with: a list of {\"role\": …, \"content\": …}."`
	N        int    `short:"n" default:"512" help:"Most tokens of an answer."`
	JSON     bool   `name:"json" help:"Print a JSON object a line instead of text: for each token, and at the end of each answer, as generate does."`
	Time     bool   `help:"Say after each answer how fast it was decoded."`
	samplingFlags
	modelFlags
}

// Help implements kong's HelpProvider.
func (c *chatCmd) Help() string {
	return "Each line of standard input is a message. /exit or Ctrl-D ends the conversation. Ctrl-C ends an answer; a second Ctrl-C ends the conversation too."
}

const maxLine = 1 << 20 // the longest message, in bytes

func (c *chatCmd) Run(env *cli.Env) error {
	burst, err := c.burst()
	if err != nil {
		return err
	}
	o, err := c.options(c.N, burst)
	if err != nil {
		return err
	}
	o.Continue = true
	messages, err := conversation(c.System, c.Messages)
	if err != nil {
		return err
	}
	m, closeModel, err := c.openModel(env, &output.Files{}, c.Model, c.Temp > 0, &o)
	if err != nil {
		return err
	}
	defer closeModel()

	if c.RecordedOrder {
		fmt.Fprintln(env.Stderr, "the lists of the graphs are taken as their order (--recorded-order)")
	}
	prompt := func() {}
	if f, ok := env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		prompt = func() { fmt.Fprint(env.Stderr, "> ") }
	}
	lines := bufio.NewScanner(env.Stdin)
	lines.Buffer(nil, maxLine)
	for prompt(); lines.Scan(); prompt() {
		line := strings.TrimSpace(lines.Text())
		if line == "/exit" {
			return nil
		}
		if line == "" {
			continue
		}
		messages = append(messages, chat.Message{Role: "user", Content: line})
		answer, err := c.answer(env, m, o, messages)
		if err != nil {
			return err
		}
		messages = append(messages, chat.Message{Role: "assistant", Content: remembered(answer)})
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a message has more than %d bytes", maxLine)
	}
	return lines.Err()
}

// remembered returns what of an answer goes on in the conversation. An answer of gpt-oss has channels, of which its template
// takes the last alone, without its marks.
func remembered(answer string) string {
	const channel, final = "<|channel|>", "<|channel|>final<|message|>"
	if !strings.Contains(answer, channel) {
		return answer
	}
	if i := strings.LastIndex(answer, final); i >= 0 {
		return answer[i+len(final):]
	}
	return "" // it ended before it came to that
}

// answer prints and returns what the model says next. If Ctrl-C ends the answer, it is
// what was said until then.
func (c *chatCmd) answer(env *cli.Env, m *textgen.Model, o textgen.Options, messages []chat.Message) (string, error) {
	ctx, release := env.Answer()
	defer release()
	said := newAnswer(env, m, c.Stop, c.JSON)
	tokens, err := render(ctx, m, messages)
	var r *textgen.Result
	if err == nil {
		var seconds float64
		if seconds, err = m.Work(len(tokens), min(c.N, m.Context())); err == nil {
			err = c.allowed(fmt.Sprintf("%d tokens after a conversation of %d", c.N, len(tokens)), seconds)
		}
	}
	if err == nil {
		r, err = said.generate(ctx, m, tokens, o)
	}
	stopped := ctx.Err() != nil && env.Context.Err() == nil
	release() // from here on a Ctrl-C ends the command: the answer is complete
	if err != nil && !stopped {
		return "", err
	}
	if stopped {
		if err := said.end(); err != nil {
			return "", err
		}
	}
	switch {
	case c.JSON && r != nil:
		err = jsonLine(env, c.Mention(said.figures(m, tokens, r)))
	case c.JSON:
		err = jsonLine(env, map[string]any{"stopped": "interrupted", "text": said.text.String()})
	default:
		_, err = fmt.Fprintln(env.Raw())
	}
	if err != nil {
		return "", err
	}
	switch {
	case stopped:
		fmt.Fprintln(env.Stderr, "(stopped)")
	case r.Stopped == "length":
		fmt.Fprintf(env.Stderr, "(ended at -n %d tokens)\n", c.N)
	case r.Stopped == "context":
		fmt.Fprint(env.Stderr, full(m, r))
	}
	if c.Time && r != nil {
		fmt.Fprintf(env.Stderr, "(%s)\n", pace(r))
	}
	return said.text.String(), nil
}
