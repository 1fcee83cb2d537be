package mlxreplay

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

type compareCmd struct {
	filling
	With      string  `default:"cpu" placeholder:"NAME" help:"Device to compare with."`
	Seed      uint64  `default:"1" help:"Seed of random inputs."`
	Replays   int     `default:"1" placeholder:"N" help:"Replay so often; states go on from replay to replay."`
	Tolerance float64 `default:"1e-3" help:"Most that floats may differ by, beside the greatest of their output."`
	JSON      bool    `name:"json" help:"Print JSON."`
	deviceFlags
}

// Help implements kong's HelpProvider.
func (*compareCmd) Help() string {
	return "Outputs of the same inputs are compared: floats within the tolerance, all else to the bit. Exit code 1 says that they differ by more."
}

// difference says how two contents of an output differ.
type difference struct {
	Output   string  `json:"output"`
	Type     string  `json:"type"`
	Elements int     `json:"elements"`
	Bits     int     `json:"other_bits"`          // number of elements with other bits
	Greatest float64 `json:"greatest_difference"` // max absolute difference, of floats
	Of       float64 `json:"greatest_value"`
	OK       bool    `json:"ok"`
}

func (c *compareCmd) Run(env *cli.Env) error {
	if c.Replays < 1 || !(c.Tolerance >= 0) {
		return cli.BadUsage("--replays is at least 1, --tolerance at least 0")
	}
	with := deviceFlags{Device: c.With, MaxWork: c.MaxWork}
	// --trust is about kernels, which are the same on both devices; it is passed on to each device that compiles.
	if with.takes("--trust-kernels") {
		with.Trust = c.Trust
		c.Trust = c.Trust && c.takes("--trust-kernels")
	}
	if err := with.check(); err != nil {
		return err
	}
	f, err := c.filling.open(env)
	if err != nil {
		return err
	}
	defer f.Close()
	var outputs [2]map[string][]byte
	var names [2]string
	var g *ir.Graph
	for i, flags := range []deviceFlags{c.deviceFlags, with} {
		var took accounts
		end, err := flags.open(env, func(d backend.Device) (err error) {
			names[i] = d.Name()
			g, outputs[i], err = c.replay(env, d, f.Module, &took)
			if err == nil {
				took.say(env, d)
			}
			return err
		})
		if err != nil {
			return err
		}
		end()
	}
	var all []difference
	failed := 0
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Kind != ir.Output {
			continue
		}
		x := differ(m.DType, outputs[0][m.Name], outputs[1][m.Name], c.Tolerance)
		x.Output = m.Name
		if !x.OK {
			failed++
		}
		all = append(all, x)
	}
	if c.JSON {
		err = cli.JSON(env.Context, env.Stdout, c.Mention(map[string]any{"graph": g.Name, "devices": names, "outputs": all}))
	} else {
		t := cli.Table{Header: []string{"output of " + g.Name + c.Note(), "type", "elements", "other bits", "greatest difference", "greatest value"}}
		for _, x := range all {
			t.Add(x.Output, x.Type, x.Elements, x.Bits, fmt.Sprintf("%.3g", x.Greatest), fmt.Sprintf("%.3g", x.Of))
		}
		err = t.Print(env.Stdout)
	}
	if err == nil && failed > 0 {
		err = cli.Fail(fmt.Errorf("%d output(s) on %s differ from those on %s by more than the tolerance %v", failed, names[0], names[1], c.Tolerance))
	}
	return err
}

// replay runs the graph on a device and returns the contents of its outputs.
func (c *compareCmd) replay(env *cli.Env, d backend.Device, m *ir.Module, took *accounts) (*ir.Graph, map[string][]byte, error) {
	s, g, err := compiled(env, d, m, c.Name, replay.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	if err := c.prepare(g, c.Seed); err != nil {
		return nil, nil, err
	}
	if err := c.affordable(g, c.Replays); err != nil {
		return nil, nil, err
	}
	for range c.Replays {
		t, err := g.Run(env.Context)
		if err != nil {
			return nil, nil, err
		}
		took.add(g.IR(), t)
	}
	out := map[string][]byte{}
	for i := range m.Graph(g.IR().Name).Memories {
		x := &m.Graph(g.IR().Name).Memories[i]
		if x.Kind != ir.Output {
			continue
		}
		size, _ := g.Size(x.Name, ir.Output)
		raw := make([]byte, size)
		if err := g.ReadOutput(x.Name, raw); err != nil {
			return nil, nil, err
		}
		out[x.Name] = raw
	}
	return m.Graph(g.IR().Name), out, nil
}

// differ compares two contents, whose elements have type t, element by element.
func differ(t ir.DType, a, b []byte, tolerance float64) difference {
	x := difference{Type: t.String(), OK: len(a) == len(b)}
	size := max(1, int(t.Size()))
	value := floatOf(t)
	for len(a) >= size && len(b) >= size {
		x.Elements++
		same := string(a[:size]) == string(b[:size])
		if !same {
			x.Bits++
		}
		switch {
		case value != nil:
			v, w := value(a), value(b)
			if !math.IsInf(v, 0) && !math.IsNaN(v) {
				x.Of = max(x.Of, math.Abs(v))
			}
			switch d := math.Abs(v - w); {
			case same || math.IsNaN(v) && math.IsNaN(w):
			case math.IsNaN(d), math.IsInf(d, 0):
				x.OK, x.Greatest = false, math.MaxFloat64
			default:
				x.Greatest = max(x.Greatest, d)
			}
		case !same:
			x.OK = false
		}
		a, b = a[size:], b[size:]
	}
	x.OK = x.OK && x.Greatest <= tolerance*max(x.Of, math.SmallestNonzeroFloat32)
	return x
}

// floatOf returns a function that decodes one element of a float type; nil for other types.
func floatOf(t ir.DType) func(b []byte) float64 {
	switch t {
	case ir.F32:
		return func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
	case ir.BF16:
		return func(b []byte) float64 {
			return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		}
	case ir.F16:
		return func(b []byte) float64 {
			h := binary.LittleEndian.Uint16(b)
			sign, e, m := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
			switch e {
			case 0:
				return sign * math.Ldexp(m, -24)
			case 31:
				if m != 0 {
					return math.NaN()
				}
				return sign * math.Inf(1)
			}
			return sign * math.Ldexp(1024+m, e-25)
		}
	}
	return nil
}
