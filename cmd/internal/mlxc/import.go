package mlxc

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/frontend/trace"
)

type importCmd struct {
	Log     string            `arg:"" help:"Log of a program (.mlxtrace), which capture/mlxrec.h writes."`
	Output  string            `short:"o" required:"" placeholder:"FILE.mlxg" help:"Graph file to write. The libraries that it needs are written beside it, into FILE.kernels."`
	Param   string            `default:"pos" placeholder:"NAME" help:"Name of the number that counts the runs of a step which does not say its params."`
	Max     map[string]uint32 `placeholder:"NAME=N" help:"Greatest value of a param (default: as far as the buffers reach). Repeatable."`
	Builtin bool              `help:"Take kernels that are named as MLX's from the builtin library, which declares what they do, so that they can be fused. That the program's own compute the same is believed."`
	Outputs []string          `name:"output-memory" sep:"none" placeholder:"NAME" help:"A memory that shall be an output, as the program reads it, though a kernel reads it last. Repeatable."`
	Values  bool              `help:"Believe that a kernel which may touch everything behind what it gets, since indices in memory say what, touches no more than the value that lies there (rows of a result). A replay under the checker finds one that does not."`
	kernelFlags
	Trust bool `name:"trust-kernels" help:"Compile Metal sources of the log also where this system has no way to confine the compiler (SECURITY.md)."`
}

func (c *importCmd) Run(env *cli.Env) error {
	var files output.Files
	if err := files.Read(c.Log, "the log"); err != nil {
		return err
	}
	if _, err := c.register(); err != nil {
		return err
	}
	out, err := files.WriteGraph("-o", c.Output)
	if err != nil {
		return err
	}
	l, err := trace.Open(c.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	folder := strings.TrimSuffix(c.Output, filepath.Ext(c.Output)) + ".kernels"
	r, err := trace.Import(env.Context, l, trace.Options{Folder: filepath.Base(folder), Param: c.Param, Max: c.Max, Builtin: c.Builtin, Outputs: c.Outputs, Values: c.Values, Trust: c.Trust})
	if err != nil {
		return err
	}
	if len(r.Files) > 0 {
		if err := files.Folder(folder); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		file, err := files.Write("library", filepath.Join(folder, filepath.Base(f.Path)))
		if err != nil {
			return err
		}
		if err := file.Data(func(w io.Writer) error {
			_, err := w.Write(f.Data)
			return err
		}); err != nil {
			return err
		}
	}
	if err := out.Graph(env.Context, r.Module, nil, output.Options{}); err != nil {
		return err
	}
	if err := c.used(r.Module.Graphs...); err != nil {
		return err
	}
	for _, text := range r.Remarks {
		fmt.Fprintln(env.Stderr, "remark:", text)
	}
	for _, g := range r.Module.Graphs {
		s := g.Stats()
		fmt.Fprintf(env.Stdout, "imported %-8s %4d dispatches, %4d barriers, weights %s, state %s, scratch %s\n",
			g.Name, s.Dispatches, s.Barriers, cli.Bytes(s.Bytes.Weight), cli.Bytes(s.Bytes.State), cli.Bytes(s.Bytes.Scratch))
	}
	fmt.Fprintf(env.Stdout, "wrote %s and %d libraries\n", cli.Quote(c.Output), len(r.Files))
	return nil
}
