package mlxreplay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
)

// answer prints the text of an answer as its tokens come: as it is, or as a JSON object a line.
type answer struct {
	env  *cli.Env
	json bool
	made *textgen.Text
	text strings.Builder
}

func newAnswer(env *cli.Env, m *textgen.Model, stops []string, asJSON bool) *answer {
	return &answer{env: env, json: asJSON, made: textgen.NewText(m.Tokenizer, stops)}
}

// token takes a token, as textgen.Options.Emit.
func (a *answer) token(id int32) error {
	s, stop := a.made.Next(id)
	err := a.say(s, map[string]any{"id": id, "text": s})
	return errors.Join(err, stop)
}

// end prints what was held back.
func (a *answer) end() error {
	s := a.made.Flush()
	if s == "" {
		return nil
	}
	return a.say(s, map[string]any{"text": s})
}

func (a *answer) say(s string, line map[string]any) error {
	a.text.WriteString(s)
	if a.json {
		return jsonLine(a.env, line)
	}
	_, err := io.WriteString(a.env.Raw(), s)
	return err
}

// jsonLine prints an object in one line.
func jsonLine(env *cli.Env, v any) error {
	e := json.NewEncoder(cli.Until(env.Context, env.Stdout))
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// figures are what JSON says of a whole answer: prompt_seconds until the first token was known, decode_seconds for those after it,
// and seconds for both.
func (a *answer) figures(m *textgen.Model, prompt []int32, r *textgen.Result) map[string]any {
	out := map[string]any{
		"prompt_ids": prompt, "ids": r.IDs, "text": a.text.String(), "stopped": r.Stopped,
		"prompt_tokens": len(prompt), "tokens": len(r.IDs), "context": m.Context(),
		"prompt_seconds": round9(r.Prompt.Seconds()), "decode_seconds": round9(r.Decode.Seconds()), "seconds": round9((r.Prompt + r.Decode).Seconds()),
		"prompt_tokens_per_second": round3(float64(len(prompt)-r.Kept) / r.Prompt.Seconds()),
	}
	if r.Guessed > 0 {
		out["guessed"], out["guessed_right"] = r.Guessed, r.Right
	}
	if r.Timed() {
		out["tokens_per_second"] = round3(r.TokensPerSecond())
	}
	return out
}

// pace says how many tokens an answer has and, if there is anything to time, how fast they came.
func pace(r *textgen.Result) string {
	tokens := "1 token"
	if n := len(r.IDs); n != 1 {
		tokens = fmt.Sprintf("%d tokens", n)
	}
	if !r.Timed() {
		return tokens
	}
	if r.Guessed > 0 {
		tokens += fmt.Sprintf(", %d of %d guesses right,", r.Right, r.Guessed)
	}
	return fmt.Sprintf("%s at %.1f tokens/s", tokens, r.TokensPerSecond())
}

// full says why an answer ended at the end of the context, if it did.
func full(m *textgen.Model, r *textgen.Result) string {
	if r.Stopped != "context" {
		return ""
	}
	return fmt.Sprintf("the context is full: all %d positions are taken (%s)\n", m.Context(), m.Larger)
}

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

// generate continues the prompt, and prints what comes.
func (a *answer) generate(ctx context.Context, m *textgen.Model, prompt []int32, o textgen.Options) (*textgen.Result, error) {
	o.Emit = a.token
	r, err := m.Generate(ctx, prompt, o)
	if err != nil {
		return nil, err
	}
	return r, a.end()
}
