package mlxc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/ir/mlxg"
)

type recordCmd struct {
	Model    string `arg:"" help:"Model file or folder (${models})."`
	Output   string `short:"o" required:"" placeholder:"FILE.mlxg" help:"Graph file to write. Sources of kernels that an exported function brings along are written beside it, into FILE.kernels."`
	Advance  bool   `default:"true" negatable:"" help:"Make the decode graph advance its position and carry its token to the next replay ($$pos += 1, carry), so that one submission can decode many tokens."`
	Sample   bool   `help:"Make the graphs draw their token by the params temp, top_p, seed_low and seed_high, so that mlxreplay generate --temp needs no host between tokens."`
	Draft    int64  `placeholder:"N" help:"Record a graph verify too, which runs up to N guesses of what follows the next token along with it (mlxreplay generate --draft)."`
	External bool   `help:"Leave weights that are not repacked in the model file and refer to them."`
	inputs.Recording
	tracedFlags
}

func (c *recordCmd) Run(env *cli.Env) error {
	start := time.Now()
	if strings.EqualFold(filepath.Ext(c.Output), ".mlxt") {
		return cli.BadUsage("-o %s: a recorded model has too many weights for a text: record into a container (.mlxg), and disasm that", cli.Quote(c.Output))
	}
	var files output.Files
	if err := files.Read(c.Model, "the model"); err != nil {
		return err
	}
	if err := c.reads(&files); err != nil {
		return err
	}
	out, err := files.WriteGraph("-o", c.Output)
	if err != nil {
		return err
	}
	before := filesOf(c.Model) // before anything is read, so that a change meanwhile shows
	in, err := inputs.Look(c.Model)
	if err != nil {
		return err
	}
	defer in.Close()
	m, err := in.Model()
	if err != nil {
		return err
	}
	defer m.Close()
	remarks := m.Remarks()
	cli.Remark(env, remarks...)
	progress := cli.StartProgress(env.Stderr, "recording")
	defer progress.End()
	o, err := c.Options(false)
	if err != nil {
		return err
	}
	o.Advance, o.Sample, o.Draft, o.Progress = c.Advance, c.Sample, c.Draft, progress.Set
	closeLibrary, err := c.traced(m, c.Model, c.Output, &o)
	if err != nil {
		return err
	}
	defer closeLibrary()
	if c.External {
		if in.Pipe() {
			return cli.BadUsage("--external: %s is a pipe, but a graph can only refer to a file", cli.Quote(c.Model))
		}
		if o.External, err = output.Relative(filepath.Dir(c.Output), c.Model); err != nil {
			return err
		}
	}
	module, err := m.Record(env.Context, o)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	progress.End()
	cli.Remark(env, m.Remarks()[len(remarks):]...) // what showed meanwhile
	if err := env.Context.Err(); err != nil {
		return err
	}
	if err := c.writeSources(&files, c.Output); err != nil {
		return err
	}
	writing := cli.StartProgress(env.Stderr, "writing")
	defer writing.End()
	if err := out.Graph(env.Context, module, nil, output.Options{Progress: writing.Set}); err != nil {
		return err
	}
	writing.End()
	mlxg.Remember(module, c.Output, "", before)
	for _, g := range module.Graphs {
		s := g.Stats()
		fmt.Fprintf(env.Stdout, "recorded %-8s %4d dispatches, %4d barriers, weights %s, state %s, scratch %s\n",
			g.Name, s.Dispatches, s.Barriers, cli.Bytes(s.Bytes.Weight), cli.Bytes(s.Bytes.State), cli.Bytes(s.Bytes.Scratch))
	}
	fmt.Fprintf(env.Stdout, "wrote %s in %.1f s\n", cli.Quote(c.Output), time.Since(start).Seconds())
	return nil
}

// filesOf returns what the file at path is or, if it is a folder, what the files in it are.
func filesOf(path string) map[string]os.FileInfo {
	paths, out := []string{path}, map[string]os.FileInfo{}
	if entries, err := os.ReadDir(path); err == nil {
		paths = nil
		for _, e := range entries {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			out[p] = info
		}
	}
	return out
}
