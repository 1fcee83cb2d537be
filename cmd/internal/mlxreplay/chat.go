package mlxreplay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/tokenizer/chat"
)

type chatCmd struct {
	Model    string  `arg:"" name:"graph" help:"Recorded model (.mlxg), or a ${kinds} model, which is recorded and optimized in memory."`
	System   string  `help:"System message."`
	Messages string  `placeholder:"FILE.json" help:"Conversation to go on with: a list of {\"role\": …, \"content\": …}."`
	N        int     `short:"n" default:"512" help:"Most tokens of an answer."`
	Temp     float64 `default:"0" help:"Temperature; 0 takes the most likely token."`
	TopP     float64 `default:"1" help:"Sample from the most likely tokens of this total probability."`
	Seed     uint64  `default:"0" help:"Seed of the sampler."`
	Time     bool    `help:"Say after each answer how fast it was decoded."`
	modelFlags
}

// Help implements kong's HelpProvider.
func (c *chatCmd) Help() string {
	return "Each line of standard input is a message. /exit or Ctrl-D ends the conversation. Ctrl-C ends an answer; a second Ctrl-C ends the conversation too."
}

const maxLine = 1 << 20 // the longest message, in bytes

func (c *chatCmd) Run(env *cli.Env) error {
	if err := sampling(c.N, c.Temp, c.TopP); err != nil {
		return err
	}
	burst, err := c.burst()
	if err != nil {
		return err
	}
	messages, err := conversation(c.System, c.Messages)
	if err != nil {
		return err
	}
	m, closeModel, err := c.openModel(env, &output.Files{}, c.Model, c.Temp > 0)
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
		answer, err := c.answer(env, m, burst, messages)
		if err != nil {
			return err
		}
		messages = append(messages, chat.Message{Role: "assistant", Content: answer})
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a message has more than %d bytes", maxLine)
	}
	return lines.Err()
}

// answer prints and returns what the model says next. If Ctrl-C ends the answer, it is
// what was said until then.
func (c *chatCmd) answer(env *cli.Env, m *textgen.Model, burst int, messages []chat.Message) (string, error) {
	ctx, release := env.Answer()
	defer release()
	decoder := m.Tokenizer.NewDecoder(false)
	var text strings.Builder
	say := func(s string) error {
		text.WriteString(s)
		_, err := io.WriteString(env.Raw(), s)
		return err
	}
	tokens, err := render(ctx, m, messages)
	var r *textgen.Result
	if err == nil {
		var seconds float64
		if seconds, err = m.Work(len(tokens), min(c.N, m.Context())); err == nil {
			err = c.allowed(fmt.Sprintf("%d tokens after a conversation of %d", c.N, len(tokens)), seconds)
		}
	}
	if err == nil {
		r, err = m.Generate(ctx, tokens, textgen.Options{
			N: c.N, Temp: c.Temp, TopP: c.TopP, Seed: c.Seed, Continue: true, Burst: burst,
			Emit: func(id int32) error { return say(decoder.Next(id)) },
		})
	}
	stopped := ctx.Err() != nil && env.Context.Err() == nil
	release() // from here on a Ctrl-C ends the command: the answer is complete
	if err != nil && !stopped {
		return "", err
	}
	if err := say(decoder.Flush()); err != nil {
		return "", err
	}
	fmt.Fprintln(env.Raw())
	if stopped {
		fmt.Fprintln(env.Stderr, "(stopped)")
	}
	if c.Time && r != nil {
		fmt.Fprintf(env.Stderr, "(%d tokens at %.1f tokens/s)\n", len(r.IDs), r.TokensPerSecond())
	}
	return text.String(), nil
}
