package mlxreplay

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

type checkCmd struct {
	filling
	Kernel  []string      `placeholder:"NAME" help:"Check dispatches of this kernel only; * and ? stand for any letters. Repeatable."`
	Seed    uint64        `default:"1" help:"Seed of random inputs and of the order of threadgroups."`
	Orders  int           `placeholder:"N" help:"Replay so often more in random orders that the graph allows, and compare outputs and states."`
	Library string        `placeholder:"FILE" help:"Take builtin kernels from this .metallib, such as MLX's own, and not from their Metal source."`
	Memory  string        `placeholder:"SIZE" help:"Most memory that the device may take, as 900MiB or 8GiB; a checked byte takes two (default: what the machine has and its control group allows)."`
	MaxWork time.Duration `name:"max-work" default:"1h" help:"End dispatches that take one core longer than this."`
	Trust   bool          `name:"trust-kernels" help:"Run kernels of others also where this system has no way to confine them and the compiler (SECURITY.md)."`
	JSON    bool          `name:"json" help:"Print JSON."`
	Format  string        `enum:"text,json,github,sarif,junit" default:"text" help:"How findings are printed: text, json, github (annotations of a workflow), sarif (2.1.0) or junit (XML)."`
}

// finding is the JSON form of a finding.
type finding struct {
	Command  ir.ID             `json:"command"`
	Kernel   string            `json:"kernel"`
	Kind     string            `json:"kind"`
	Argument string            `json:"argument,omitempty"`
	Offset   int64             `json:"offset"`
	Thread   *softmetal.Thread `json:"thread,omitempty"`
	Other    *softmetal.Thread `json:"other,omitempty"`
	Line     int               `json:"line,omitempty"`
	Times    uint64            `json:"times"`
	Text     string            `json:"text"`
}

func (c *checkCmd) Run(env *cli.Env) error {
	memory := cpu.MachineMemory()
	if c.Memory != "" {
		var err error
		if memory, err = backend.ParseBytes(c.Memory); err != nil {
			return cli.BadUsage("--memory: %v", err)
		}
	}
	if c.MaxWork <= 0 {
		return cli.BadUsage("--max-work is %v, want more than 0", c.MaxWork)
	}
	f, err := c.filling.open(env)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := softmetal.New(env.Context, softmetal.Options{Check: true, Only: c.Kernel, Seed: c.Seed, Library: c.Library, Trust: c.Trust, Memory: memory, Work: c.MaxWork})
	if err != nil {
		return err
	}
	defer d.Close()
	s, g, err := compiled(env, d, f.Module, c.Name, replay.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.prepare(g, c.Seed); err != nil {
		return err
	}
	params := g.Params()
	if _, err := g.Run(env.Context); err != nil {
		return err
	}
	observed := d.Observed()
	between, err := orderOfObserved(env.Context, withParams(g.IR(), params), observed)
	if err != nil {
		return err
	}
	differ, err := c.orders(env, f.Module, memory)
	if err != nil {
		return err
	}
	return c.print(env, g.IR(), observed, append(between, differ...))
}

// orders replays the graph in its written order and in random orders, each time from the initial contents, and
// returns which outputs and states differ.
func (c *checkCmd) orders(env *cli.Env, m *ir.Module, memory int64) (differ []string, err error) {
	if c.Orders <= 0 {
		return nil, nil
	}
	d, err := softmetal.New(env.Context, softmetal.Options{Library: c.Library, Trust: c.Trust, Memory: memory, Work: c.MaxWork})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	progress := cli.StartProgress(env.Stderr, "replaying in other orders")
	defer progress.End()
	var want map[string][]byte
	for i := range c.Orders + 1 {
		progress.Set(float64(i) / float64(c.Orders+1))
		seed := uint64(0)
		if i > 0 {
			seed = c.Seed<<20 + uint64(i)
		}
		d.SetOrder(seed)
		got, err := c.once(env, d, m)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			want = got
			continue
		}
		for name, data := range want {
			if at := firstDifference(data, got[name]); at >= 0 {
				differ = append(differ, fmt.Sprintf("%s depends on the order: byte %d is %#x in the order of the list, and %#x in that of seed %d", name, at, data[at], got[name][at], seed))
			}
		}
		if len(differ) > 0 {
			break
		}
	}
	slices.Sort(differ)
	return differ, nil
}

// once replays the graph once from the initial contents and returns the contents of its outputs and states, by name.
func (c *checkCmd) once(env *cli.Env, d *softmetal.Device, m *ir.Module) (map[string][]byte, error) {
	s, err := replay.Open(d, m, replay.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	g, err := s.Graph(env.Context, c.Name)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(g, c.Seed); err != nil {
		return nil, err
	}
	if _, err := g.Run(env.Context); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for i := range g.IR().Memories {
		mem := &g.IR().Memories[i]
		if mem.Alias != ir.NoMem || mem.Kind != ir.Output && mem.Kind != ir.State {
			continue
		}
		get := g.Output
		if mem.Kind == ir.State {
			get = g.State
		}
		data, err := get(mem.Name)
		if err != nil {
			return nil, err
		}
		out[mem.Kind.String()+" %"+ir.QuoteName(mem.Name)] = bytes.Clone(data)
	}
	return out, nil
}

// firstDifference returns the index of the first byte in which a and b differ, −1 if they are equal.
func firstDifference(a, b []byte) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// print prints the findings; any finding is a failed check.
func (c *checkCmd) print(env *cli.Env, g *ir.Graph, observed []softmetal.Observed, between []string) error {
	found := []finding{}
	dropped := uint64(0)
	kernels, of := map[string]bool{}, kernelsOf(g)
	for i := range observed {
		o := &observed[i]
		dropped += o.Dropped
		if k := of[o.Command]; k != nil {
			kernels[k.Name] = true
		}
		for k := range o.Findings {
			x := &o.Findings[k]
			f := finding{Command: x.Command, Kernel: x.Kernel, Kind: x.Kind.String(), Argument: x.Argument, Offset: x.Offset, Other: x.Other, Line: x.Line, Times: x.Times, Text: x.String()}
			if x.Kind < softmetal.NonFinite {
				f.Thread = &x.Thread
			}
			found = append(found, f)
		}
	}
	total := len(found) + len(between)
	r := &report{g, c.Graph, observed, found, between}
	failed := func(err error) error {
		if err == nil && total > 0 {
			err = cli.Fail(fmt.Errorf("graph %s: %d findings", ir.QuoteName(g.Name), total))
		}
		return err
	}
	switch c.Format {
	case "github":
		return failed(r.github(env.Stdout))
	case "sarif":
		return failed(cli.JSON(env.Context, env.Stdout, r.sarif()))
	case "junit":
		return failed(r.junit(env.Stdout))
	}
	if c.JSON || c.Format == "json" {
		err := cli.JSON(env.Context, env.Stdout, c.Mention(map[string]any{"graph": g.Name, "dispatches": len(observed), "kernels": len(kernels), "findings": found, "order": between, "dropped": dropped}))
		if err == nil && total > 0 {
			err = cli.Fail(fmt.Errorf("%d findings", total))
		}
		return err
	}
	for _, f := range found {
		if _, err := fmt.Fprintf(env.Stdout, "%s %s: %s: %s\n", f.Command, f.Kernel, f.Kind, f.Text); err != nil {
			return err
		}
	}
	for _, l := range between {
		if _, err := fmt.Fprintln(env.Stdout, l); err != nil {
			return err
		}
	}
	if dropped > 0 {
		fmt.Fprintf(env.Stdout, "and %d more, of dispatches with too many\n", dropped)
	}
	_, err := fmt.Fprintf(env.Stdout, "checked %d dispatches of %d kernels in graph %s: %d findings%s\n", len(observed), len(kernels), ir.QuoteName(g.Name), total, c.Note())
	return failed(err)
}

// kernelsOf returns the kernels of dispatches, by ID.
func kernelsOf(g *ir.Graph) map[ir.ID]*ir.Kernel {
	out := map[ir.ID]*ir.Kernel{}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			out[d.ID] = &g.Kernels[d.Kernel]
		}
	}
	return out
}

// withParams returns a graph whose params have no other values than these bits of theirs. What dispatches were observed to touch is so for these
// values only: for others it may be more or less than what commands touch whose effects are declared.
func withParams(g *ir.Graph, bits []uint32) *ir.Graph {
	g = g.Clone()
	for i := range g.Params {
		if p := &g.Params[i]; p.Type == ir.U32 {
			p.Min, p.Max = float64(bits[i]), float64(bits[i])
		}
	}
	return g
}

// orderOfObserved lists commands that were observed to touch the same bytes although nothing orders them.
func orderOfObserved(ctx context.Context, g *ir.Graph, observed []softmetal.Observed) ([]string, error) {
	effects := map[ir.ID]*ir.Effects{}
	for i := range observed {
		effects[observed[i].Command] = &observed[i].Effects
	}
	r, err := meaning.OfEffects(ctx, g, func(d *ir.Dispatch) *ir.Effects {
		if e := effects[d.ID]; e != nil {
			return e
		}
		return d.Effects
	})
	if err != nil {
		return nil, err
	}
	return r.Lines(), nil
}
