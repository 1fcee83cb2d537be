package mlxreplay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/tokenizer"
)

type tokenizeCmd struct {
	Model   string `arg:"" name:"graph" help:"Recorded model (.mlxg) or ${kinds} model."`
	Special bool   `help:"Read texts such as <|im_start|> as the special tokens that they name."`
}

// Run reads lines of text from standard input, and writes a JSON array of token IDs for
// each.
func (c *tokenizeCmd) Run(env *cli.Env) error {
	t, err := c.tokenizer(env.Context)
	if err != nil {
		return err
	}
	in := bufio.NewReader(env.Stdin)
	out := bufio.NewWriter(env.Stdout)
	for {
		line, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("standard input: %w", err)
		}
		last := err == io.EOF
		if last && line == "" {
			return out.Flush()
		}
		if !last {
			line = line[:len(line)-1]
		}
		ids := t.Encode(line, c.Special)
		if ids == nil {
			ids = []int32{}
		}
		b, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", b); err != nil {
			return err
		}
		if err := env.Context.Err(); err != nil {
			return err
		}
		// A program that waits for each answer before it writes the next line gets it
		// at once.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (c *tokenizeCmd) tokenizer(ctx context.Context) (*tokenizer.Tokenizer, error) {
	if c.Model == "-" || c.Model == "/dev/stdin" {
		return nil, cli.BadUsage("the model cannot come from standard input, which is the text")
	}
	in, err := inputs.Look(c.Model)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if in.IsModel() {
		m, err := in.Model()
		if err != nil {
			return nil, err
		}
		defer m.Close()
		spec, err := m.Tokenizer()
		if err != nil {
			return nil, err
		}
		return tokenizer.New(spec)
	}
	f, err := in.Module(ctx, inputs.Options{SkipExternal: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := textgen.Tokenizer(f.Module)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Model, err)
	}
	return t, nil
}
