package mlxreplay

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/cmd/internal/npy"
	"github.com/mlxc/mlxc/cmd/internal/output"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

type runCmd struct {
	Graph  string   `arg:"" help:"Graph file (.mlxg or .mlxt); - is standard input."`
	Name   string   `name:"graph" placeholder:"NAME" help:"Graph to replay (default: the first)."`
	In     []string `placeholder:"NAME=FILE.npy" help:"Fill an input or state. Repeatable."`
	Out    []string `placeholder:"NAME=FILE.npy" help:"Write an output or state after the last replay. Repeatable."`
	Set    []string `placeholder:"PARAM=VALUE" help:"Set a param. Repeatable."`
	Repeat int      `default:"1" help:"Replay this often."`
	Zeros  bool     `help:"Inputs without --in are zeros; otherwise each must be given."`
	Poison bool     `help:"Fill scratch and outputs with garbage before each replay."`
	JSON   bool     `name:"json" help:"Print JSON."`
	Verify bool     `help:"Check every checksum and digest of the file first."`
	deviceFlags
	cli.OrderFlag
}

func (c *runCmd) Run(env *cli.Env) error {
	if c.Repeat < 1 {
		return cli.BadUsage("--repeat is %d, want at least 1", c.Repeat)
	}
	in, out, set, err := c.assignments()
	if err != nil {
		return err
	}
	var files output.Files
	if err := c.reads(&files, false); err != nil {
		return err
	}
	for _, a := range in {
		if err := files.ReadState(a.value, a.name); err != nil {
			return err
		}
	}
	outputs := make([]*output.File, len(out))
	for i, a := range out {
		if outputs[i], err = files.WriteState("--out "+cli.Quote(a.name), a.value, a.name); err != nil {
			return err
		}
	}
	checking := cli.StartProgress(env.Stderr, "checking contents")
	f, err := inputs.Open(env.Context, c.Graph, inputs.Options{Verify: c.Verify, Progress: checking.Set})
	checking.End()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := files.ReadGraph(f); err != nil {
		return err
	}
	c.Apply(f.Module.Graphs...)
	var d backend.Device
	var s *replay.Instance
	var g *replay.Graph
	closeDevice, err := c.open(env, func(on backend.Device) (err error) {
		d = on
		s, g, err = compiled(env, d, f.Module, c.Name, replay.Options{Poison: c.Poison})
		return err
	})
	if err != nil {
		return err
	}
	defer closeDevice()
	defer s.Close()
	if err := setParams(g, set); err != nil {
		return err
	}
	if err := fillInputs(g, in); err != nil {
		return err
	}
	if !c.Zeros {
		if err := inputsGiven(g, in); err != nil {
			return err
		}
	}
	if err := checkOutputs(g, out); err != nil {
		return err
	}
	if err := c.affordable(g, c.Repeat); err != nil {
		return err
	}
	total := 0.0
	var took accounts
	for range c.Repeat {
		t, err := g.Run(env.Context)
		if err != nil {
			return err
		}
		total += t.Duration().Seconds()
		took.add(g.IR(), t)
	}
	if err := writeOutputs(g, out, outputs); err != nil {
		return err
	}
	if c.JSON {
		return cli.JSON(env.Context, env.Stdout, c.Mention(took.mention(d, map[string]any{"graph": g.IR().Name, "device": d.Name(), "replays": c.Repeat, "seconds": round9(total)})))
	}
	took.say(env, d)
	_, err = fmt.Fprintf(env.Stdout, "replayed %s on %s: %d time(s), %.3f ms each%s\n", g.IR().Name, d.Name(), c.Repeat, 1e3*total/float64(c.Repeat), c.Note())
	return err
}

// assignment is a value NAME=VALUE of a flag.
type assignment struct{ name, value string }

// assignments parses the values of a flag. A name given twice is an error, because one
// of the two values would be lost.
func assignments(flag, form string, list []string) ([]assignment, error) {
	var out []assignment
	seen := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, cli.BadUsage("%s wants %s, not %q", flag, form, s)
		}
		if before, twice := seen[name]; twice {
			return nil, cli.BadUsage("%s %s is given twice, as %s and as %s", flag, cli.Quote(name), cli.Quote(before), cli.Quote(value))
		}
		seen[name] = value
		out = append(out, assignment{name, value})
	}
	return out, nil
}

func (c *runCmd) assignments() (in, out, set []assignment, err error) {
	if in, err = assignments("--in", "NAME=FILE.npy", c.In); err != nil {
		return
	}
	if out, err = assignments("--out", "NAME=FILE.npy", c.Out); err != nil {
		return
	}
	set, err = assignments("--set", "PARAM=VALUE", c.Set)
	return
}

func setParams(g *replay.Graph, settings []assignment) error {
	for _, s := range settings {
		name, value := s.name, s.value
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return cli.BadUsage("--set %s: %q is no number", name, value)
		}
		if err := g.SetParam(name, v); err != nil {
			return cli.BadUsage("--set: %v", err)
		}
	}
	if err := g.Check(); err != nil {
		return cli.BadUsage("--set: %v", err)
	}
	return nil
}

// memory finds, by name, a memory of one of the kinds, which the host may read or fill.
func memory(g *replay.Graph, name string, kinds ...ir.MemKind) (*ir.Memory, error) {
	var have []string
	for i := range g.IR().Memories {
		m := &g.IR().Memories[i]
		for _, k := range kinds {
			if m.Kind != k {
				continue
			}
			if m.Name == name {
				return m, nil
			}
			if k != ir.State {
				have = append(have, name2(m.Name))
			}
		}
	}
	return nil, cli.BadUsage("graph %s has no %s %q (it has %s)", name2(g.IR().Name), kinds[0], name, strings.Join(have, ", "))
}

// round9 rounds seconds to nanoseconds.
func round9(s float64) float64 { return math.Round(s*1e9) / 1e9 }

func name2(s string) string { return ir.QuoteName(s) }

// npyTypes are the element types that .npy files can hold.
var npyTypes = map[ir.DType]npy.DType{
	ir.Bool: npy.Bool, ir.U8: npy.Uint8, ir.I8: npy.Int8, ir.U16: npy.Uint16, ir.I16: npy.Int16, ir.U32: npy.Uint32, ir.I32: npy.Int32,
	ir.U64: npy.Uint64, ir.I64: npy.Int64, ir.F16: npy.Float16, ir.F32: npy.Float32,
}

func fillInputs(g *replay.Graph, files []assignment) error {
	for _, s := range files {
		name, path := s.name, s.value
		m, err := memory(g, name, ir.Input, ir.State)
		if err != nil {
			return err
		}
		a, err := npy.Load(path)
		if err != nil {
			return err
		}
		data, err := fromFile(a, m.DType)
		if err != nil {
			return fmt.Errorf("%s, for %s %%%s: it %w", path, m.Kind, m.Name, err)
		}
		if len(data) == 0 && m.Size > 0 {
			return fmt.Errorf("%s has no elements (shape %v), %s %%%s has %d bytes: leave out --in %s for zeros", path, a.Shape, m.Kind, m.Name, m.Size, name)
		}
		if int64(len(data)) > m.Size {
			return fmt.Errorf("%s has %d bytes (shape %v), %s %%%s has %d", path, len(data), a.Shape, m.Kind, m.Name, m.Size)
		}
		// A shorter array fills only the front of an input, which has room for the most
		// that a param allows.
		set := g.SetInput
		if m.Kind == ir.State {
			set = g.SetState
		}
		if err := set(name, data); err != nil {
			return err
		}
	}
	return nil
}

// inputsGiven returns an error if an input is not named by --in, because zeros in its
// place would hide a mistake.
func inputsGiven(g *replay.Graph, files []assignment) error {
	for i := range g.IR().Memories {
		m := &g.IR().Memories[i]
		if m.Kind != ir.Input || m.Alias != ir.NoMem {
			continue
		}
		if !slices.ContainsFunc(files, func(s assignment) bool { return s.name == m.Name }) {
			return cli.BadUsage("input %%%s is not given: --in %s=FILE.npy, or --zeros", m.Name, m.Name)
		}
	}
	return nil
}

// checkOutputs finds mistakes in the names of outputs before anything is replayed.
func checkOutputs(g *replay.Graph, files []assignment) error {
	for _, s := range files {
		m, err := memory(g, s.name, ir.Output, ir.State)
		if err != nil {
			return err
		}
		if _, ok := npyTypes[m.DType]; !ok && m.DType.Valid() && m.DType != ir.BF16 {
			return fmt.Errorf("%s %%%s is of type %s, which .npy files cannot hold", m.Kind, m.Name, m.DType)
		}
	}
	return nil
}

func writeOutputs(g *replay.Graph, out []assignment, files []*output.File) error {
	for i, s := range out {
		m, err := memory(g, s.name, ir.Output, ir.State)
		if err != nil {
			return err
		}
		get := g.Output
		if m.Kind == ir.State {
			get = g.State
		}
		data, err := get(s.name)
		if err != nil {
			return err
		}
		a := toFile(data, m.DType, m.Shape)
		if err := files[i].Data(func(w io.Writer) error { return npy.Write(w, a) }); err != nil {
			return err
		}
	}
	return nil
}
