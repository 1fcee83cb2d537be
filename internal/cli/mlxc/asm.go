package mlxc

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/atomicfile"
	"github.com/mlxc/mlxc/internal/cli"
	"github.com/mlxc/mlxc/internal/modfile"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

type asmCmd struct {
	Text   string `arg:"" help:"Text file (.mlxt)."`
	Output string `short:"o" required:"" placeholder:"FILE.mlxg" help:"Container to write."`
	Embed  bool   `help:"Copy external contents into the container."`
}

func (c *asmCmd) Run(env *cli.Env) error {
	f, err := modfile.Open(env.Context, c.Text, modfile.Options{SkipExternal: !c.Embed})
	if err != nil {
		return err
	}
	defer f.Close()
	return mlxg.WriteFile(env.Context, c.Output, f.Module, mlxg.WriteOptions{EmbedExternal: c.Embed, Base: filepath.Dir(c.Text)})
}

type disasmCmd struct {
	Graph  string `arg:"" help:"Container (.mlxg)."`
	Output string `short:"o" placeholder:"FILE.mlxt" help:"Text file to write (default: standard output)."`
	Inline int64  `default:"4096" placeholder:"BYTES" help:"Write embedded contents up to this length into the text; refer to the container for longer ones (0: write all)."`
}

func (c *disasmCmd) Run(env *cli.Env) error {
	f, err := modfile.Open(env.Context, c.Graph, modfile.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer f.Close()
	dir := "."
	if c.Output != "" {
		dir = c.Output
	} else if wd, err := os.Getwd(); err == nil {
		dir = filepath.Join(wd, "stdout")
	}
	rel, err := relative(dir, c.Graph)
	if err != nil {
		return err
	}
	o := mlxt.Options{InlineLimit: c.Inline}
	if f.Container != nil {
		o.External = func(b *ir.Blob) (string, int64, bool) {
			off, ok := f.Container.Offset(b)
			return rel, off, ok
		}
	}
	if c.Output == "" {
		return o.Print(env.Stdout, f.Module)
	}
	return atomicfile.Write(c.Output, func(w io.Writer) error {
		if err := o.Print(w, f.Module); err != nil {
			return fmt.Errorf("%s: %w", c.Graph, err)
		}
		return nil
	})
}
