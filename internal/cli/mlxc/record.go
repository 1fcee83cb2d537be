package mlxc

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/cli"
	"github.com/mlxc/mlxc/ir/mlxg"
)

type recordCmd struct {
	Model    string `arg:"" help:"Model file (GGUF, Llama architecture)."`
	Output   string `short:"o" required:"" placeholder:"FILE.mlxg" help:"Graph file to write."`
	Context  int64  `placeholder:"N" help:"Positions of the KV cache (default: the model's, at most 2048)."`
	Prefill  int64  `placeholder:"N" help:"Most tokens of one prefill (default: 128)."`
	External bool   `help:"Leave unquantized weights in the model file and refer to them."`
}

func (c *recordCmd) Run(env *cli.Env) error {
	start := time.Now()
	m, err := gguf.Load(c.Model)
	if err != nil {
		return err
	}
	defer m.Close()
	progress := cli.StartProgress(env.Stderr, "recording")
	defer progress.End()
	o := gguf.Options{Context: c.Context, Prefill: c.Prefill, Progress: progress.Set}
	if c.External {
		if o.External, err = relative(c.Output, c.Model); err != nil {
			return err
		}
	}
	module, err := m.Record(env.Context, o)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	progress.End()
	if err := env.Context.Err(); err != nil {
		return err
	}
	if err := mlxg.WriteFile(env.Context, c.Output, module, mlxg.WriteOptions{}); err != nil {
		return err
	}
	for _, g := range module.Graphs {
		s := g.Stats()
		fmt.Fprintf(env.Stdout, "recorded %-8s %4d dispatches, %4d barriers, weights %s, state %s, scratch %s\n",
			g.Name, s.Dispatches, s.Barriers, cli.Bytes(s.Bytes.Weight), cli.Bytes(s.Bytes.State), cli.Bytes(s.Bytes.Scratch))
	}
	fmt.Fprintf(env.Stdout, "wrote %s in %.1f s\n", c.Output, time.Since(start).Seconds())
	return nil
}

// relative returns target's path relative to the directory of file, with '/'.
func relative(file, target string) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(dir, abs)
	if err != nil {
		return "", fmt.Errorf("%s cannot be named relative to %s: %w", target, file, err)
	}
	return filepath.ToSlash(rel), nil
}
