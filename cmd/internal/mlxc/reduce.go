package mlxc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/cmd/internal/part"
	"github.com/mlxc/mlxc/cmd/internal/reduce"
	"github.com/mlxc/mlxc/ir"
)

type reduceCmd struct {
	cli.OrderFlag

	Graph     string        `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Check     string        `required:"" placeholder:"COMMAND" help:"What is run for each graph that is tried, by the shell: {} stands for the path of the graph, and the environment's MLXC_GRAPH has it. Exit code 0 says that the graph is still what you look for."`
	Output    string        `short:"o" required:"" placeholder:"FILE" help:"Graph file to write: the smallest that was found, a text if it ends in .mlxt."`
	Name      string        `name:"graph" placeholder:"NAME" help:"Begin with this graph of the file alone."`
	Time      time.Duration `default:"10m" placeholder:"TIME" help:"End after so long (default: 10m; 0: no limit)."`
	Tries     int           `default:"10000" placeholder:"N" help:"End after so many runs of the command (default: 10000; 0: no limit)."`
	CheckTime time.Duration `default:"1m" placeholder:"TIME" help:"End a run of the command that takes longer; it counts as one with another exit code (default: 1m; 0: no limit)."`
	Faults    bool          `help:"Try graphs with races and undefined reads too, although the graph has none."`
	JSON      bool          `name:"json" help:"Print JSON."`
}

// Help implements kong's HelpProvider.
func (*reduceCmd) Help() string {
	return "Finds a small graph that still fails, as C-Reduce does for programs: \"mlxc reduce g.mlxg -o small.mlxt --check 'mlxreplay check {}; test $? = 1'\". Graphs, commands, barriers, memories, contents and bounds of params are left out, as long as the command ends with exit code 0. Nothing is run but that command, with your rights, in this folder: give it none that you do not trust. Ctrl-C leaves the smallest graph that was found so far."
}

// size counts what a module has.
type size struct {
	Graphs   int   `json:"graphs"`
	Commands int   `json:"commands"`
	Barriers int   `json:"barriers"`
	Memories int   `json:"memories"`
	Free     int   `json:"free_params"` // params with more than one value
	Bytes    int64 `json:"stored_bytes"`
}

func sizeOf(m *ir.Module) (s size) {
	s.Graphs = len(m.Graphs)
	for _, g := range m.Graphs {
		s.Commands += len(part.Commands(g))
		s.Barriers += g.Stats().Barriers
		s.Memories += len(g.Memories)
		for _, p := range g.Params {
			if p.Min != p.Max {
				s.Free++
			}
		}
	}
	for _, b := range m.Blobs() {
		s.Bytes += b.Length
	}
	return s
}

// between is how often the output is written at most, so that little is lost if the program is killed.
const between = 2 * time.Second

func (c *reduceCmd) Run(env *cli.Env) error {
	switch {
	case strings.TrimSpace(c.Check) == "":
		return cli.BadUsage("--check: give the command that says whether a graph is still what you look for")
	case c.Time < 0 || c.Tries < 0 || c.CheckTime < 0:
		return cli.BadUsage("--time, --tries and --check-time are 0 or more")
	}
	var files output.Files
	out, err := files.WriteGraph("-o", c.Output)
	if err != nil {
		return err
	}
	f, err := inputs.Open(env.Context, c.Graph, inputs.Options{})
	if err != nil {
		return err
	}
	defer f.Close()
	files.Keep = true
	if err := files.ReadGraph(f); err != nil {
		return err
	}
	m := f.Module
	c.Apply(m.Graphs...)
	if c.Name != "" {
		g := m.Graph(c.Name)
		if g == nil {
			return cli.BadUsage("%s has no graph %q", c.Graph, c.Name)
		}
		m = &ir.Module{Graphs: []*ir.Graph{g}, Data: m.Data}
	}
	dir, remove, err := output.Scratch("mlxc-reduce-")
	if err != nil {
		return err
	}
	defer remove()
	var tries output.Files
	form := ".mlxg"
	if out.Form() == output.Text {
		form = ".mlxt"
	}
	command := &reduce.Command{Text: c.Check, Path: filepath.Join(dir, "graph"+form), Limit: c.CheckTime}
	candidate, err := tries.WriteGraph("the graph that is tried", command.Path)
	if err != nil {
		return err
	}
	var first *reduce.Outcome
	o := reduce.Options{Time: c.Time, Tries: c.Tries, Faults: c.Faults}
	o.Check = func(ctx context.Context, m *ir.Module) (bool, error) {
		if err := candidate.Graph(ctx, m, f, output.Options{Inline: output.InlineLimit}); err != nil {
			return false, err
		}
		r, err := command.Run(ctx)
		if err != nil {
			return false, err
		}
		if first == nil {
			first = r
		}
		return r.Code == 0, nil
	}
	best, wrote := m, time.Now()
	pending := false // best is not written
	write := func() error {
		wrote, pending = time.Now(), false
		return out.Graph(context.WithoutCancel(env.Context), best, f, output.Options{Inline: output.InlineLimit})
	}
	o.Better = func(m *ir.Module) error {
		best, pending = m, true
		if time.Since(wrote) < between {
			return nil
		}
		return write()
	}
	bar := cli.StartProgress(env.Stderr, "reducing")
	defer bar.End()
	before, start := sizeOf(m), time.Now()
	o.Progress = func(tries, commands int) {
		share := 1 - float64(commands)/float64(max(1, before.Commands))
		if c.Time > 0 {
			share = max(share, time.Since(start).Seconds()/c.Time.Seconds())
		}
		bar.Set(min(share, 1))
	}
	r, err := reduce.Module(env.Context, m, o)
	bar.End()
	switch {
	case errors.Is(err, reduce.ErrNot):
		return cli.Fail(fmt.Errorf("%s: the command does not end with exit code 0 for the graph itself: %s (say --check so that it does, and that it does not for a graph that you do not look for)", cli.Quote(c.Graph), first))
	case r == nil:
		return err
	}
	if pending || r.Kept == 0 && err == nil {
		if wrong := write(); wrong != nil {
			return wrong
		}
	}
	if err != nil {
		if r.Kept > 0 {
			fmt.Fprintf(env.Stderr, "wrote the smallest so far, of %d commands, to %s\n", sizeOf(best).Commands, cli.Quote(c.Output))
		}
		return err
	}
	return c.print(env, r, before, sizeOf(best), time.Since(start))
}

func (c *reduceCmd) print(env *cli.Env, r *reduce.Result, before, after size, took time.Duration) error {
	if c.JSON {
		return cli.JSON(env.Context, env.Stdout, c.Mention(map[string]any{"before": before, "after": after, "tries": r.Tries, "kept": r.Kept, "ended": r.Why, "seconds": took.Seconds(), "output": c.Output}))
	}
	w := env.Stdout
	line := func(what string, a, b any) error {
		_, err := fmt.Fprintf(w, "%-11s %v → %v\n", what, a, b)
		return err
	}
	err := errors.Join(line("graphs", before.Graphs, after.Graphs), line("commands", before.Commands, after.Commands), line("barriers", before.Barriers, after.Barriers),
		line("memories", before.Memories, after.Memories), line("free params", before.Free, after.Free), line("stored", cli.Bytes(before.Bytes), cli.Bytes(after.Bytes)))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, fmt.Sprintf("wrote %s: %s; the command was run %d times in %.1f s, and %d times the graph became smaller%s\n", c.Output, r.Why, r.Tries, took.Seconds(), r.Kept, c.Note()))
	return err
}
