package mlxc

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/output"
)

type asmCmd struct {
	Text   string `arg:"" help:"Text file (.mlxt); - is standard input."`
	Output string `short:"o" required:"" placeholder:"FILE.mlxg" help:"Container to write."`
	Embed  bool   `help:"Copy external contents into the container."`
}

func (c *asmCmd) Run(env *cli.Env) error {
	if strings.EqualFold(filepath.Ext(c.Output), ".mlxt") {
		return cli.BadUsage("-o %s: asm writes a container, a text is .mlxt: name it .mlxg", cli.Quote(c.Output))
	}
	var files output.Files
	out, err := files.WriteGraph("-o", c.Output)
	if err != nil {
		return err
	}
	f, err := inputs.Open(env.Context, c.Text, inputs.Options{SkipExternal: !c.Embed})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := files.ReadGraph(f); err != nil {
		return err
	}
	return out.Graph(env.Context, f.Module, f, output.Options{Embed: c.Embed})
}

type disasmCmd struct {
	Graph  string `arg:"" help:"Container (.mlxg); - is standard input."`
	Output string `short:"o" placeholder:"FILE.mlxt" help:"Text file to write (default: standard output)."`
	Inline int64  `default:"4096" placeholder:"BYTES" help:"Write embedded contents up to this length into the text; refer to the container for longer ones (0: write all)."`
}

func (c *disasmCmd) Run(env *cli.Env) error {
	if strings.EqualFold(filepath.Ext(c.Output), ".mlxg") {
		return cli.BadUsage("-o %s: disasm writes a text, a container is .mlxg: name it .mlxt", cli.Quote(c.Output))
	}
	var files output.Files
	var out *output.File
	if c.Output != "" {
		var err error
		if out, err = files.WriteText("-o", c.Output); err != nil {
			return err
		}
	}
	f, err := inputs.Open(env.Context, c.Graph, inputs.Options{SkipExternal: true})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := files.ReadGraph(f); err != nil {
		return err
	}
	found, err := meaningless(env.Context, f.Module.Graphs)
	if err != nil {
		return err
	}
	head := comments("// ", f.Module.Graphs, found)
	if out == nil {
		if _, err := io.WriteString(env.Stdout, head); err != nil {
			return err
		}
		return output.PrintText(env.Stdout, f.Module, f, ".", c.Inline)
	}
	return out.Graph(env.Context, f.Module, f, output.Options{Inline: c.Inline, Head: head})
}
