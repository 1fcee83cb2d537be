package mlxreplay

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

type compareCmd struct {
	filling
	Other     string  `arg:"" optional:"" name:"other" help:"Graph file to compare with (default: the same graph)."`
	With      string  `placeholder:"NAME" help:"Device to compare with (default: cpu; with a second graph what --device says)."`
	Seed      uint64  `default:"1" help:"Seed of random inputs."`
	Replays   int     `default:"1" placeholder:"N" help:"Replay so often; states go on from replay to replay."`
	Tolerance float64 `default:"1e-3" help:"How much floats may differ by, beside the max of their memory."`
	Bisect    bool    `default:"true" negatable:"" help:"Where something differs by more, find the first command that does, by replays of the graph's first commands (two graphs must have the same commands and memories)."`
	Pairs     int     `default:"10" placeholder:"N" help:"Replay both in turn so often, for the speed; fewer where that takes ten seconds; 0: not at all."`
	JSON      bool    `name:"json" help:"Print JSON."`
	deviceFlags
}

// Help implements kong's HelpProvider.
func (*compareCmd) Help() string {
	return "Outputs and states that the same inputs lead to are compared, element by element: floats within the tolerance, all else to the bit. Exit code 1 says that they differ by more."
}

// difference says how two contents of a memory differ.
type difference struct {
	Output   string  `json:"output"` // name of the memory
	Kind     string  `json:"kind"`
	Type     string  `json:"type"`
	Elements int     `json:"elements"`
	Bits     int     `json:"other_bits"`              // number of elements with other bits
	Max      float64 `json:"max_difference"`          // absolute, of floats
	Of       float64 `json:"max_value"`               // of the first of the two
	Relative float64 `json:"max_relative_difference"` // beside the larger of the two elements
	ULPs     float64 `json:"max_ulps"`                // how many numbers of the type lie from one to the other
	At       []int64 `json:"at,omitempty"`            // index of the element that differs most
	First    int64   `json:"first"`                   // number of the first element with other bits; -1: there is none
	Values   *[2]any `json:"values,omitempty"`        // of the element that differs most
	OK       bool    `json:"ok"`

	most float64
	at   int64 // number of that element
}

func newDifference(t ir.DType) difference {
	return difference{Type: t.String(), First: -1, OK: true, most: -1, at: -1}
}

// side is one of the two that are compared.
type side struct {
	device backend.Device
	module *ir.Module
	graph  *replay.Graph
	closes *replay.Instance
	name   string // for people
	took   accounts
	// contents are those of outputs and states after --replays replays.
	contents map[string][]byte
}

func (x *side) close() {
	if x.closes != nil {
		x.closes.Close()
		x.closes = nil
	}
}

func (c *compareCmd) Run(env *cli.Env) error {
	switch {
	case c.Replays < 1 || !(c.Tolerance >= 0):
		return cli.BadUsage("--replays is at least 1, --tolerance at least 0")
	case c.Pairs < 0:
		return cli.BadUsage("--pairs: %d is negative", c.Pairs)
	case c.Other == "-":
		return cli.BadUsage("the second graph is a file: only the first can be standard input")
	}
	with := deviceFlags{Device: c.With, MaxWork: c.MaxWork}
	one := false // both are on one device
	if c.With == "" && c.Other != "" {
		with, one = c.deviceFlags, true
	} else if c.With == "" {
		with.Device = onCPU
	}
	// --trust is about kernels, which are the same on both devices; it is passed on to each device that compiles.
	if !one && with.takes("--trust-kernels") {
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
	other := f
	if c.Other != "" {
		if other, err = inputs.Open(env.Context, c.Other, inputs.Options{}); err != nil {
			return err
		}
		defer other.Close()
		c.Apply(other.Module.Graphs...)
	}
	sides := [2]*side{{module: f.Module}, {module: other.Module}}
	// What a device cannot replay shows here, where --device auto can still take another one.
	end, err := c.deviceFlags.open(env, func(d backend.Device) error { return c.replay(env, sides[0], d) })
	if err != nil {
		return err
	}
	defer end()
	defer sides[0].close() // before its device
	if one {
		err = c.replay(env, sides[1], sides[0].device)
	} else {
		end, err = with.open(env, func(d backend.Device) error { return c.replay(env, sides[1], d) })
		if err == nil {
			defer end()
		}
	}
	if err != nil {
		return err
	}
	defer sides[1].close()
	for i, x := range sides {
		x.name = x.device.Name()
		if c.Other != "" {
			x.name = []string{c.Graph, c.Other}[i]
			if !one {
				x.name += " on " + x.device.Name()
			}
		}
	}
	return c.compare(env, sides)
}

// compare compares the two sides and prints how they differ.
func (c *compareCmd) compare(env *cli.Env, sides [2]*side) error {
	for _, x := range sides {
		x.took.say(env, x.device)
	}
	g := sides[0].module.Graph(sides[0].graph.IR().Name)
	all := []difference{}
	failed := 0
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Kind != ir.Output && (m.Kind != ir.State || m.Alias != ir.NoMem) {
			continue
		}
		if env.Context.Err() != nil {
			return context.Cause(env.Context)
		}
		a, b := sides[0].contents[m.Name], sides[1].contents[m.Name]
		if b == nil {
			return fmt.Errorf("%s has no %s %%%s: only graphs with the same outputs and states can be compared", sides[1].name, m.Kind, ir.QuoteName(m.Name))
		}
		x := differ(typeOf(g, ir.MemID(i)), a, b, c.Tolerance)
		x.Output, x.Kind = m.Name, m.Kind.String()
		if x.at >= 0 {
			x.At = place(m.Shape, x.at)
		}
		if !x.OK {
			failed++
		}
		all = append(all, x)
	}
	if other := sides[1].module.Graph(sides[1].graph.IR().Name); other != g {
		for i := range other.Memories {
			m := &other.Memories[i]
			if _, ok := sides[0].contents[m.Name]; !ok && sides[1].contents[m.Name] != nil {
				return fmt.Errorf("%s has no %s %%%s: only graphs with the same outputs and states can be compared", sides[0].name, m.Kind, ir.QuoteName(m.Name))
			}
		}
	}
	var found *found
	var why string
	var err error
	switch {
	case failed == 0 || !c.Bisect:
	case !alike(g, sides[1].module.Graph(sides[1].graph.IR().Name)):
		why = "the first command that differs is looked for where both graphs have the same commands and memories: mlxc diff says how these two differ, mlxc verify whether one computes what the other does"
	default:
		if found, why, err = c.bisect(env, sides); err != nil {
			return err
		}
	}
	var speed *pairs
	if c.Pairs > 0 {
		if speed, err = c.inPairs(env, sides); err != nil {
			return err
		}
	}
	if c.JSON {
		out := map[string]any{"graph": g.Name, "devices": [2]string{sides[0].device.Name(), sides[1].device.Name()}, "outputs": all}
		if found != nil {
			out["first"] = found
		}
		if why != "" {
			out["first_unknown"] = why
		}
		if speed != nil {
			out["speed"] = speed
		}
		err = cli.JSON(env.Context, env.Stdout, c.Mention(out))
	} else {
		err = c.print(env, sides, g, all, found, why, speed)
	}
	if err == nil && failed > 0 {
		err = cli.Fail(fmt.Errorf("%d output(s) or state(s) of %s differ from those of %s by more than the tolerance %v", failed, sides[0].name, sides[1].name, c.Tolerance))
	}
	return err
}

func (c *compareCmd) print(env *cli.Env, sides [2]*side, g *ir.Graph, all []difference, found *found, why string, speed *pairs) error {
	t := cli.Table{Header: []string{"of " + g.Name + c.Note(), "type", "elements", "other bits", "max difference", "max value", "relative", "ulps", "where", sides[0].name, sides[1].name}}
	var states []difference // that differ: there may be very many, of which the worst are printed
	equal := 0
	for _, x := range all {
		switch {
		case x.Kind != ir.State.String():
			t.Add(append([]any{x.Kind + " " + x.Output}, x.cells()...)...)
		case x.Bits == 0 && x.OK:
			equal++
		default:
			states = append(states, x)
		}
	}
	slices.SortStableFunc(states, func(a, b difference) int { return cmp.Compare(b.share(), a.share()) })
	more := max(0, len(states)-mostStates)
	for _, x := range states[:len(states)-more] {
		t.Add(append([]any{x.Kind + " " + x.Output}, x.cells()...)...)
	}
	if len(t.Rows) > 0 {
		if err := t.Print(env.Stdout); err != nil {
			return err
		}
	}
	if more > 0 {
		fmt.Fprintf(env.Stdout, "and %d more state(s) of %s that differ less, beside their max values (--json has all)\n", more, g.Name)
	}
	if equal > 0 {
		fmt.Fprintf(env.Stdout, "%d state(s) of %s are equal to the bit\n", equal, g.Name)
	}
	if found != nil {
		if err := found.print(env, sides); err != nil {
			return err
		}
	}
	if why != "" {
		fmt.Fprintln(env.Stdout, why)
	}
	if speed != nil {
		fmt.Fprintln(env.Stdout, speed.text(sides))
	}
	return nil
}

// mostStates is how many states that differ a table has.
const mostStates = 5

// share is how much an output or state differs, beside its max value.
func (x *difference) share() float64 { return x.Max / max(x.Of, math.SmallestNonzeroFloat32) }

// typeOf returns the type of a memory's elements: its own or, where it says none, that of all arguments by which dispatches bind
// it; else that of bytes.
func typeOf(g *ir.Graph, m ir.MemID) ir.DType {
	t := g.Memories[m].DType
	if t.Valid() {
		return t
	}
	root, _ := g.Root(m)
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		for i := range d.Bindings {
			b := &d.Bindings[i]
			if b.Kind != ir.BindView {
				continue
			}
			if at, _ := g.Root(b.View.Mem); at != root {
				continue
			}
			a, _ := g.Kernels[d.Kernel].Arg(b.Slot)
			if t.Valid() && a.Type != t {
				return ir.U8
			}
			t = a.Type
		}
	}
	if size := t.Size(); !t.Valid() || size < 1 || g.Memories[m].Size%size != 0 {
		return ir.U8
	}
	return t
}

// cells are what a table says of a difference.
func (x *difference) cells() []any {
	where, values := "", [2]string{}
	if x.at >= 0 {
		where = fmt.Sprint(x.At)
	}
	for i := range values {
		if x.Values == nil {
			break
		}
		if v, ok := x.Values[i].(float64); ok {
			values[i] = fmt.Sprintf("%.9g", v)
		} else {
			values[i] = fmt.Sprint(x.Values[i])
		}
	}
	figure := func(v float64) string {
		if v == math.MaxFloat64 {
			return "no number"
		}
		return fmt.Sprintf("%.3g", v)
	}
	return []any{x.Type, x.Elements, x.Bits, figure(x.Max), fmt.Sprintf("%.3g", x.Of), figure(x.Relative), figure(x.ULPs), where, values[0], values[1]}
}

// replay runs the graph of a side on a device and reads its outputs and states. If it fails, nothing is left open.
func (c *compareCmd) replay(env *cli.Env, x *side, d backend.Device) (err error) {
	defer func() {
		if err != nil {
			x.close()
		}
	}()
	x.device, x.took = d, accounts{}
	if x.closes, x.graph, err = compiled(env, d, x.module, c.Name, replay.Options{}); err != nil {
		return err
	}
	if err := c.prepare(x.graph, c.Seed); err != nil {
		return err
	}
	if err := c.affordable(x.graph, c.Replays); err != nil {
		return err
	}
	for range c.Replays {
		t, err := x.graph.Run(env.Context)
		if err != nil {
			return err
		}
		x.took.add(x.graph.IR(), t)
	}
	x.contents, err = read(x.graph, x.module.Graph(x.graph.IR().Name))
	return err
}

// read returns the contents of outputs and states by name, as the module's graph g has them.
func read(x *replay.Graph, g *ir.Graph) (map[string][]byte, error) {
	out := map[string][]byte{}
	for i := range g.Memories {
		m := &g.Memories[i]
		get := x.Output
		switch {
		case m.Kind == ir.State && m.Alias == ir.NoMem:
			get = x.State
		case m.Kind != ir.Output:
			continue
		}
		data, err := get(m.Name)
		if err != nil {
			return nil, err
		}
		out[m.Name] = data
	}
	return out, nil
}

// pairs is the speed of two sides, which were replayed in turn.
type pairs struct {
	Pairs int        `json:"pairs"`
	Took  [2]measure `json:"milliseconds"`
	// Ratio is how many times as long the second side took as the first, pair by pair.
	Ratio     measure    `json:"ratio"`
	Quartiles [2]float64 `json:"ratio_quartiles"`
	Faster    [2]int     `json:"faster"` // in how many pairs each side was
}

// patience is how long replays in pairs may go on.
const patience = 10 * time.Second

// inPairs replays both sides in turn. Which of the two is first changes from pair to pair, so that what goes on beside them
// meets both alike.
func (c *compareCmd) inPairs(env *cli.Env, sides [2]*side) (*pairs, error) {
	for _, x := range sides {
		if err := c.affordable(x.graph, c.Replays+c.Pairs); err != nil {
			return nil, err
		}
	}
	bar := cli.StartProgress(env.Stderr, "measuring")
	defer bar.End()
	out := &pairs{}
	var took [2][]float64
	var ratios []float64
	start := time.Now()
	for i := range c.Pairs {
		bar.Set(float64(i) / float64(c.Pairs))
		if i > 0 && time.Since(start) > patience {
			break
		}
		var now [2]float64
		for k := range 2 {
			at := (i + k) % 2
			t, err := sides[at].graph.Run(env.Context)
			if err != nil {
				return nil, err
			}
			now[at] = 1e3 * t.Duration().Seconds()
		}
		out.Pairs++
		for k := range 2 {
			took[k] = append(took[k], now[k])
		}
		ratios = append(ratios, now[1]/max(now[0], 1e-9))
		switch {
		case now[0] < now[1]:
			out.Faster[0]++
		case now[1] < now[0]:
			out.Faster[1]++
		}
	}
	for k := range 2 {
		slices.Sort(took[k])
		out.Took[k] = measure{round9(took[k][len(took[k])/2]), round9(took[k][0]), round9(took[k][len(took[k])-1])}
	}
	slices.Sort(ratios)
	n := len(ratios)
	out.Ratio = measure{round9(ratios[n/2]), round9(ratios[0]), round9(ratios[n-1])}
	out.Quartiles = [2]float64{round9(ratios[n/4]), round9(ratios[3*n/4])}
	return out, nil
}

func (p *pairs) text(sides [2]*side) string {
	var b strings.Builder
	n := fmt.Sprintf("%d pairs", p.Pairs)
	if p.Pairs == 1 {
		n = "1 pair"
	}
	fmt.Fprintf(&b, "speed, in %s of replays: %s %s, %s %s, the medians; the second takes %.3g times as long as the first", n, sides[0].name, cli.Micros(1e3*p.Took[0].Median), sides[1].name, cli.Micros(1e3*p.Took[1].Median), p.Ratio.Median)
	if p.Pairs > 1 {
		fmt.Fprintf(&b, ", [%.3g–%.3g] between the quartiles, %.3g to %.3g in all, and is faster in %d", p.Quartiles[0], p.Quartiles[1], p.Ratio.Min, p.Ratio.Max, p.Faster[1])
	}
	return b.String()
}

// place turns the number of an element into its indices; a number where the shape is not known.
func place(shape []int64, n int64) []int64 {
	out := make([]int64, len(shape))
	rest := n
	for i := len(shape) - 1; i >= 0; i-- {
		out[i], rest = rest%shape[i], rest/shape[i]
	}
	if len(shape) == 0 || rest > 0 {
		return []int64{n}
	}
	return out
}

// differ compares two contents, whose elements have type t, element by element.
func differ(t ir.DType, a, b []byte, tolerance float64) difference {
	x := newDifference(t)
	x.OK = len(a) == len(b)
	x.add(t, a, b, 0)
	x.judge(tolerance)
	return x
}

// judge decides whether the difference is within the tolerance.
func (x *difference) judge(tolerance float64) {
	x.OK = x.OK && x.Max <= tolerance*max(x.Of, math.SmallestNonzeroFloat32)
}

// add compares more elements, of which the first has a number.
func (x *difference) add(t ir.DType, a, b []byte, number int64) {
	size := max(1, int(t.Size()))
	value := floatOf(t)
	for len(a) >= size && len(b) >= size {
		x.Elements++
		same := string(a[:size]) == string(b[:size])
		if !same {
			if x.Bits == 0 {
				x.First = number
			}
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
				x.OK, x.Max, x.Relative, x.ULPs = false, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64
				if x.most < math.Inf(1) {
					x.found(math.Inf(1), number, v, w)
				}
			default:
				x.Max = max(x.Max, d)
				if of := max(math.Abs(v), math.Abs(w)); of > 0 {
					x.Relative = max(x.Relative, d/of)
				}
				x.ULPs = max(x.ULPs, apart(bitsOf(a[:size]), bitsOf(b[:size]), 8*size))
				if d > x.most {
					x.found(d, number, v, w)
				}
			}
		case !same:
			x.OK = false
			if x.most < 0 {
				x.found(0, number, integerOf(t, a[:size]), integerOf(t, b[:size]))
			}
		}
		a, b, number = a[size:], b[size:], number+1
	}
}

// found remembers an element that differs more than those before it.
func (x *difference) found(by float64, number int64, v, w any) {
	for _, p := range []*any{&v, &w} { // JSON has no NaN and no infinities
		if f, ok := (*p).(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			*p = fmt.Sprint(f)
		}
	}
	x.most, x.at, x.Values = by, number, &[2]any{v, w}
}

// integerOf returns an element that is no float, with its sign if its type has one.
func integerOf(t ir.DType, b []byte) any {
	bits := bitsOf(b)
	if unused := 64 - 8*len(b); t.Signed() {
		return int64(bits<<unused) >> unused
	}
	return bits
}

// bitsOf returns the first eight bytes at most as a number.
func bitsOf(b []byte) uint64 {
	var all [8]byte
	copy(all[:], b)
	return binary.LittleEndian.Uint64(all[:])
}

// apart is how many floats of a width lie from one to the other: both zeros are one number.
func apart(a, b uint64, width int) float64 {
	order := func(v uint64) int64 {
		sign := uint64(1) << (width - 1)
		if v&sign != 0 {
			return -int64(v &^ sign)
		}
		return int64(v)
	}
	return math.Abs(float64(order(a)) - float64(order(b)))
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
