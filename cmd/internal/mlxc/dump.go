package mlxc

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

type dumpCmd struct {
	Graph  string `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Format string `short:"f" enum:"text,json,dot" default:"text" help:"text, json or dot (Graphviz)."`
	HTML   string `name:"html" placeholder:"FILE" help:"Write a page (HTML) that shows the graphs, instead of printing them."`
	Name   string `name:"graph" placeholder:"NAME" help:"Print this graph only."`
}

func (c *dumpCmd) Run(env *cli.Env) error {
	var files output.Files
	var html *output.File
	if c.HTML != "" {
		var err error
		if html, err = files.Write("--html", c.HTML); err != nil {
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
	m := f.Module
	if c.Name != "" {
		g := m.Graph(c.Name)
		if g == nil {
			return cli.BadUsage("%s has no graph %q", c.Graph, c.Name)
		}
		m = &ir.Module{Graphs: []*ir.Graph{g}}
	}
	found, err := meaningless(env.Context, m.Graphs)
	if err != nil {
		return err
	}
	if html != nil {
		return c.page(env, html, filepath.Base(f.Name), m, found)
	}
	switch c.Format {
	case "json":
		return cli.JSON(env.Context, env.Stdout, jsonModule(m, found))
	case "dot":
		if err := comment(env.Stdout, "// ", m.Graphs, found); err != nil {
			return err
		}
		return writeDot(env.Context, env.Stdout, filepath.Base(f.Name), m.Graphs)
	}
	// dump is for reading, so it names large contents instead of printing them. disasm
	// prints a text that can be assembled again.
	named := func(b *ir.Blob) (string, int64, bool) {
		if f.Container == nil || f.Pipe {
			return elided(b)
		}
		off, _ := f.Container.Offset(b)
		return filepath.Base(c.Graph), off, true
	}
	if err := comment(env.Stdout, "// ", m.Graphs, found); err != nil {
		return err
	}
	return mlxt.Options{InlineLimit: 64, External: named}.Print(cli.Until(env.Context, env.Stdout), m)
}

// page writes the graphs of m as a page.
func (c *dumpCmd) page(env *cli.Env, to *output.File, title string, m *ir.Module, found map[*ir.Graph]*meaning.Report) error {
	p := page.Page{Title: title}
	for _, g := range m.Graphs {
		p.Graphs = append(p.Graphs, page.Graph{Before: g, Faults: comments("", []*ir.Graph{g}, found)})
	}
	if err := to.Data(func(w io.Writer) error { return p.Write(env.Context, w) }); err != nil {
		return err
	}
	_, err := fmt.Fprintf(env.Stdout, "wrote %s\n", cli.Quote(c.HTML))
	return err
}
