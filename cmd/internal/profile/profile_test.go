package profile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/cmd/internal/profile"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// layers is a graph of n layers: a norm, two products of it that may run together, and their sum.
func layers(t *testing.T, n int) *ir.Graph {
	const width = 256
	r := record.New("layers")
	x := r.Input("x", ir.F32, width)
	y := r.Output("y", ir.F32, width)
	h := x
	for i := range n {
		w := r.RandomWeight(fmt.Sprintf("w%d", i), uint64(i), ir.F32, width, width)
		v := r.RandomWeight(fmt.Sprintf("v%d", i), uint64(n+i), ir.F32, width, width)
		norm := r.RMSNorm(h, 1e-5)
		a, b := r.Matmul(norm, record.Dense(w)), r.Matmul(norm, record.Dense(v))
		if i == n-1 {
			r.Add(a, b, record.Into(y))
		} else {
			h = r.Add(a, b)
		}
	}
	g, err := r.Graph()
	require.NoError(t, err)
	return g
}

// run opens a graph on a device.
func run(t *testing.T, d backend.Device, g *ir.Graph, o replay.Options) *replay.Graph {
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	p, err := s.Graph(t.Context(), g.Name)
	require.NoError(t, err)
	for _, q := range p.IR().Params {
		require.NoError(t, p.SetParam(q.Name, q.Max))
	}
	return p
}

// measured is the report of so many replays of a graph on the CPU.
func measured(t *testing.T, g *ir.Graph, replays int) *profile.Report {
	p := run(t, cpu.New(2), g, replay.Options{Profile: true})
	of := profile.New(t.Context(), p.IR())
	for range replays {
		x, err := p.Run(t.Context())
		require.NoError(t, err)
		of.Add(x)
	}
	f := cost.NewFit(cost.Model{})
	of.Fit(f)
	m := f.Model()
	m.Cores, m.Name = 2, "fitted"
	return &profile.Report{Title: "test.mlxg", Device: "cpu", About: "two threads", Model: m, Fitted: true, Graphs: []*profile.Graph{of}}
}

// at returns a time of a made-up replay, in microseconds from its beginning.
func at(us float64) time.Time { return time.Unix(1000, int64(us*1e3)) }

// made is a report of made-up times: two replays of three commands, of which the last two overlap.
func made(t *testing.T) *profile.Report {
	r := record.New("made")
	x, y := r.Input("x", ir.F32, 1024), r.Output("y", ir.F32, 1024)
	h := r.Add(x, x)
	r.Add(r.Mul(h, h), r.Mul(h, x), record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	of := profile.New(t.Context(), g)
	var commands []ir.Command
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			commands = append(commands, c)
		}
	}
	require.GreaterOrEqual(t, len(commands), 4)
	for i := range 2 {
		o := 1000 * float64(i)
		x := replay.Timing{Replays: 1}
		x.Submitted, x.Encode, x.Span = at(o), 5*time.Microsecond, backend.Span{Begin: at(o + 10), End: at(o + 110)}
		x.Buffers = []backend.BufferTime{{Label: "first", Span: backend.Span{Begin: at(o + 10), End: at(o + 60)}, Dispatches: 2, Barriers: 1}, {Span: backend.Span{Begin: at(o + 55), End: at(o + 110)}}}
		for k, s := range [][2]float64{{10, 30}, {40, 60}, {50, 80}, {90, 110}} {
			x.Commands = append(x.Commands, backend.TimeOf(commands[k], at(o+s[0]), at(o+s[1])))
		}
		of.Add(x)
	}
	m, err := cost.Chip("")
	require.NoError(t, err)
	return &profile.Report{Title: "made.mlxg", Device: "a GPU", Model: m, Graphs: []*profile.Graph{of}}
}

// Of times that are known the figures are those that a person works out: busy time is the union of the commands' times, idle
// time the rest, and gaps stand before the epoch whose command ends them.
func TestFigures(t *testing.T) {
	r := made(t)
	r.Graphs[0].Unprofiled = []time.Duration{30 * time.Microsecond, 10 * time.Microsecond, 20 * time.Microsecond}
	s := r.Summaries()[0]
	assert.InDelta(t, 20, s.Plain, 1e-9, "the median")
	assert.Equal(t, profile.ByCommands, s.By)
	assert.Equal(t, 2, s.Replays)
	assert.InDelta(t, 100, s.Median, 1e-9)
	assert.InDelta(t, 100, s.Mean, 1e-9)
	assert.InDelta(t, 20+40+20, s.Busy, 1e-9)
	assert.InDelta(t, 20, s.Idle, 1e-9)
	assert.InDelta(t, 20+20+30+20, s.Sum, 1e-9, "commands that overlap count twice")
	assert.InDelta(t, 5, s.Encode, 1e-9)
	gaps := []float64{}
	for _, e := range s.Epochs {
		if e.Gap > 0 {
			gaps = append(gaps, e.Gap)
		}
	}
	assert.Equal(t, []float64{10, 10}, gaps)
	require.Len(t, s.Epochs, 3)
	for i, want := range [][2]float64{{0, 20}, {30, 70}, {80, 100}} {
		e := s.Epochs[i]
		assert.InDeltaSlice(t, want[:], []float64{e.Begin, e.End}, 1e-9)
		assert.Less(t, e.From, e.To)
		if i > 0 {
			assert.Greater(t, e.From, s.Epochs[i-1].To, "a barrier takes time")
		}
	}
	var share, dispatches float64
	for _, k := range s.Kernels {
		share, dispatches = share+k.Share, dispatches+k.Dispatches
		// 10^9 bytes a second are 10^3 bytes a microsecond.
		assert.InDelta(t, k.Bytes/k.Microseconds/1e3, k.Bandwidth, 1e-9)
	}
	assert.InDelta(t, 1, share, 1e-9)
	assert.Equal(t, 4.0, dispatches)
	// Two products of 1024 floats each read two and write one.
	for _, k := range s.Kernels {
		if k.Name == "vv_Multiplyfloat32" {
			assert.Equal(t, 2.0*3*4096, k.Bytes)
			assert.InDelta(t, 50, k.Microseconds, 1e-9)
			assert.Equal(t, "bandwidth", k.Bound)
			assert.InDelta(t, k.Bytes/(400e9*0.78)/50e-6, k.Roofline, 1e-6, "the m3-max moves 400 GB/s, of which 78 % are attainable")
		}
	}
}

// A profile has of each kernel the time that was measured, by commands as by ablation, and of barriers what replays take beside
// their commands.
func TestFit(t *testing.T) {
	r := made(t)
	g := r.Graphs[0]
	f := cost.NewFit(cost.Model{})
	g.Fit(f)
	m := f.Model()
	of := func(m cost.Model, kernel string, bytes float64) float64 {
		k, ok := m.Kernels[kernel]
		require.True(t, ok, kernel)
		return (k.Fixed + k.PerByte*cost.Seconds(bytes)).Microseconds()
	}
	// Of relative errors the squares are least: the mean of 20 and 30 µs with the weights 1/20² and 1/30².
	assert.InDelta(t, (20/400.0+30/900.0)/(1/400.0+1/900.0), of(m, "vv_Multiplyfloat32", 3*4096), 1e-6)
	assert.InDelta(t, 20, of(m, "vv_Addfloat32", 3*4096), 1e-6)
	barriers := float64(g.IR.Stats().Barriers)
	require.Positive(t, barriers)
	assert.InDelta(t, (100-90)/barriers, m.Barrier.Microseconds(), 1e-6)
	assert.InDelta(t, 5.0/4, m.Encode.Microseconds(), 1e-6)

	// By ablation: a kernel's time is that of all its dispatches.
	whole := profile.New(t.Context(), g.IR)
	for range 3 {
		x := replay.Timing{Replays: 1}
		x.Span = backend.Span{Begin: at(0), End: at(100)}
		whole.Add(x)
	}
	whole.Ablated = []profile.Ablated{{Kernel: "vv_Multiplyfloat32", Takes: 60 * time.Microsecond}, {Kernel: "vv_Addfloat32", Takes: 30 * time.Microsecond, Spread: 3 * time.Microsecond}}
	f = cost.NewFit(cost.Model{})
	whole.Fit(f)
	m = f.Model()
	assert.InDelta(t, 30, of(m, "vv_Multiplyfloat32", 3*4096), 1e-6, "of each of two")
	assert.InDelta(t, 15, of(m, "vv_Addfloat32", 3*4096), 1e-6)
	assert.InDelta(t, (100-90)/barriers, m.Barrier.Microseconds(), 1e-6)
	s := (&profile.Report{Model: m, Fitted: true, Graphs: []*profile.Graph{whole}}).Summaries()[0]
	assert.Equal(t, profile.ByAblation, s.By)
	assert.InDelta(t, 90, s.Sum, 1e-9)
	assert.Equal(t, "vv_Multiplyfloat32", s.Kernels[0].Name)
	assert.InDelta(t, 60, s.Kernels[0].Microseconds, 1e-9)
	assert.InDelta(t, 3, s.Kernels[1].Spread, 1e-9)
	assert.InDelta(t, 60, s.Kernels[0].Modelled, 1e-6)
	assert.Zero(t, s.Busy, "nobody knows when commands ran")
}

// Ablation asks beforehand whether so many replays may be, prepares each graph, and times as many pairs as it is told to.
func TestAblationAsks(t *testing.T) {
	g := layers(t, 2)
	prepared := 0
	o := profile.Options{Rounds: 3, Prepare: func(*replay.Graph) error { prepared++; return nil }}
	all, whole, err := profile.Ablate(t.Context(), cpu.New(1), g, o)
	require.NoError(t, err)
	require.Len(t, all, 3, "a norm, products, and sums")
	assert.Equal(t, 1+3, prepared)
	assert.Len(t, whole, 3*3)
	o.Allowed = func(_ *replay.Graph, replays int) error {
		assert.Equal(t, 2*3*(3+1), replays, "whole and without each of three kernels, and once to fill caches")
		return io.EOF
	}
	_, _, err = profile.Ablate(t.Context(), cpu.New(1), g, o)
	require.ErrorIs(t, err, io.EOF)
}

// The modelled time of a replay is that of package cost, on graphs of all orderings.
func TestModelledIsTheModels(t *testing.T) {
	m, err := cost.Chip("")
	require.NoError(t, err)
	for _, name := range []string{"moe_layer", "commits", "two_streams"} {
		for _, serial := range []bool{false, true} {
			g := recorded.Graph(t, name)
			if serial {
				g.SetOrdering(ir.Serial)
			}
			of := profile.New(t.Context(), g)
			params := make([]uint32, len(g.Params))
			for i, p := range g.Params {
				params[i] = uint32((p.Min + p.Max) / 2)
			}
			x := replay.Timing{Replays: 1, Params: params}
			x.Begin, x.End = at(0), at(1)
			of.Add(x)
			s := (&profile.Report{Model: m, Graphs: []*profile.Graph{of}}).Summaries()[0]
			assert.Equal(t, profile.ByNothing, s.By)
			assert.InEpsilon(t, m.Graph(profile.Full(of)).GPU().Microseconds(), s.Modelled, 1e-9, "%s %v", name, serial)
		}
	}
}

// event is one of a trace, as the Trace Event Format has it.
type event struct {
	Name string
	Cat  string
	Ph   string
	Pid  int
	Tid  int
	Ts   float64
	Dur  *float64
	ID   string
	Bp   string
	Args map[string]any
}

type thread struct{ pid, tid int }

// read reads a trace and holds it against the Trace Event Format (Google, 2016): phases are such as it has, complete events of a
// thread nest, none lasts less than no time, every flow begins and ends once within a slice of its thread, counters have numbers,
// and every thread and process has a name.
func read(t *testing.T, r *profile.Report) (events []event) {
	var b bytes.Buffer
	require.NoError(t, r.Trace(context.Background(), &b))
	var file struct {
		TraceEvents     []event
		DisplayTimeUnit string
		OtherData       map[string]any
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&file))
	require.Equal(t, "ns", file.DisplayTimeUnit)
	tracks := map[thread][]event{}
	names := map[thread]string{}
	flows := map[string][]event{}
	for _, e := range file.TraceEvents {
		assert.False(t, math.IsNaN(e.Ts) || e.Ts < 0, "%+v", e)
		switch e.Ph {
		case "X":
			require.NotNil(t, e.Dur, "%+v", e)
			assert.GreaterOrEqual(t, *e.Dur, 0.0, "%+v", e)
			k := thread{e.Pid, e.Tid}
			tracks[k] = append(tracks[k], e)
		case "C":
			require.Len(t, e.Args, 1)
			for _, v := range e.Args {
				x, ok := v.(float64)
				require.True(t, ok, "%+v", e)
				assert.GreaterOrEqual(t, x, 0.0)
			}
		case "s", "f":
			require.NotEmpty(t, e.ID)
			flows[e.Cat+e.ID] = append(flows[e.Cat+e.ID], e)
		case "M":
			if e.Name == "thread_name" || e.Name == "process_name" {
				names[thread{e.Pid, e.Tid}] = e.Args["name"].(string)
			}
		default:
			t.Errorf("the phase %q", e.Ph)
		}
	}
	for k, list := range tracks {
		assert.NotEmpty(t, names[k], "thread %v", k)
		assert.NotEmpty(t, names[thread{k.pid, 0}], "process %d", k.pid)
		for i, a := range list {
			for _, b := range list[i+1:] {
				ae, be := a.Ts+*a.Dur, b.Ts+*b.Dur
				apart := ae <= b.Ts+1e-6 || be <= a.Ts+1e-6
				nested := a.Ts <= b.Ts+1e-6 && be <= ae+1e-6 || b.Ts <= a.Ts+1e-6 && ae <= be+1e-6
				require.True(t, apart || nested, "%+v and %+v overlap on one thread", a, b)
			}
		}
	}
	for id, f := range flows {
		require.Len(t, f, 2, "flow %s", id)
		require.Equal(t, "s", f[0].Ph)
		require.Equal(t, "f", f[1].Ph)
		assert.Equal(t, "e", f[1].Bp, "it ends at the slice that encloses it")
		assert.LessOrEqual(t, f[0].Ts, f[1].Ts)
		for _, e := range f {
			within := false
			for _, s := range tracks[thread{e.Pid, e.Tid}] {
				within = within || s.Ts <= e.Ts && e.Ts <= s.Ts+*s.Dur
			}
			assert.True(t, within, "%+v is bound to no slice", e)
		}
	}
	return file.TraceEvents
}

// The trace is one of the format, and its sums are the table's.
func TestTrace(t *testing.T) {
	for name, r := range map[string]*profile.Report{"made": made(t), "layers": measured(t, layers(t, 6), 3), "hostile": hostile(t)} {
		t.Run(name, func(t *testing.T) {
			events := read(t, r)
			s := r.Summaries()[0]
			by, model, replays, moved, flows := map[string]float64{}, 0.0, 0.0, 0.0, 0
			var last float64
			for _, e := range events {
				switch {
				case e.Ph == "X" && e.Cat == "command" && e.Pid == 1:
					by[e.Args["kernel"].(string)] += *e.Dur
				case e.Ph == "X" && e.Cat == "command" && e.Pid == 3:
					model += *e.Dur
				case e.Ph == "X" && e.Cat == "replay" && e.Pid == 1:
					replays++
				case e.Ph == "C" && e.Name == "bytes moved":
					if v := e.Args["bytes"].(float64); v == 0 {
						moved += last
						last = 0
					} else {
						last = v
					}
				case e.Ph == "s":
					flows++
				}
			}
			moved += last
			n := float64(s.Replays)
			require.Equal(t, n, replays)
			var modelled float64
			for _, k := range s.Kernels {
				assert.InDelta(t, k.Microseconds, by[shown(k.Name)]/n, 1e-6, k.Name)
				modelled += k.Modelled
			}
			assert.Len(t, by, len(s.Kernels))
			assert.InDelta(t, modelled, model/n, 1e-3*float64(s.Commands)+1e-9)
			assert.InEpsilon(t, s.Bytes, moved/n, 1e-5, "counters have six digits")
			assert.Greater(t, flows, s.Replays, "submissions, and what commands wait for")
		})
	}
}

// By ablation the kernels that take long are seen to, on a device that takes no times of commands.
func TestAblation(t *testing.T) {
	r := ablated(t)
	s := r.Summaries()[0]
	assert.Equal(t, profile.ByAblation, s.By)
	require.NotEmpty(t, s.Kernels)
	assert.Contains(t, s.Kernels[0].Name, "gemv", "the products take longest: %+v", s.Kernels)
	assert.Positive(t, s.Kernels[0].Microseconds)
	var b bytes.Buffer
	require.NoError(t, r.Trace(context.Background(), &b))
	assert.NotContains(t, b.String(), `"cat":"command","ph":"X","pid":1`, "no command has a time")
	read(t, r)
}

// A device that has no room for the times of all commands says of how many it has none; the others are summed up.
func TestUnsampled(t *testing.T) {
	d := testdevice.New(cpu.New(1), testdevice.Options{Samples: 16})
	p := run(t, d, layers(t, 6), replay.Options{Profile: true})
	of := profile.New(t.Context(), p.IR())
	x, err := p.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, x.Commands, 8)
	of.Add(x)
	m, err := cost.Chip("")
	require.NoError(t, err)
	r := &profile.Report{Title: "some", Device: "test", Model: m, Graphs: []*profile.Graph{of}}
	s := r.Summaries()[0]
	assert.Equal(t, profile.ByCommands, s.By)
	assert.Equal(t, float64(s.Commands-8), s.Unsampled)
	dispatches := 0.0
	for _, k := range s.Kernels {
		dispatches += k.Dispatches
	}
	assert.Equal(t, 8.0, dispatches)
	read(t, r)
}

// fills is a graph of n fills that nothing orders, each of a memory of a size.
func fills(n int, size int64) *ir.Graph {
	g := &ir.Graph{Name: "fills"}
	for i := range n {
		g.Memories = append(g.Memories, ir.Memory{Name: fmt.Sprint("m", i), Kind: ir.Output, Size: size, Alias: ir.NoMem})
		g.Nodes = append(g.Nodes, &ir.Fill{ID: ir.ID(i), Dst: ir.View{Mem: ir.MemID(i), Len: ir.Const(size)}})
	}
	return g
}

// in is a report of replays of a graph in which each command takes a microsecond, one after the other.
func in(t *testing.T, g *ir.Graph, replays int, m cost.Model) *profile.Report {
	of := profile.New(t.Context(), g)
	x := replay.Timing{Replays: 1}
	x.Submitted = at(0)
	for i, n := range g.Nodes {
		x.Commands = append(x.Commands, backend.TimeOf(n.(ir.Command), at(float64(i)), at(float64(i+1))))
	}
	x.Begin, x.End = at(0), at(float64(len(g.Nodes)))
	for range replays {
		of.Add(x)
	}
	return &profile.Report{Title: "fills", Device: "test", Model: m, Graphs: []*profile.Graph{of}}
}

// Where ceilings are those of the run itself, a kernel that takes almost none of its time sets none: it is measured too badly.
func TestCeilings(t *testing.T) {
	g := profile.New(t.Context(), made(t).Graphs[0].IR)
	x := replay.Timing{Replays: 1}
	x.Begin, x.End = at(0), at(1000)
	ends := 0.0
	for i, n := range slices.DeleteFunc(slices.Clone(g.IR.Nodes), func(n ir.Node) bool { _, ok := n.(ir.Command); return !ok }) {
		begin := ends
		ends += []float64{0.1, 400, 400, 0.1}[i] // sums at both ends, and two products
		x.Commands = append(x.Commands, backend.TimeOf(n.(ir.Command), at(begin), at(ends)))
	}
	g.Add(x)
	s := (&profile.Report{Fitted: true, Graphs: []*profile.Graph{g}}).Summaries()[0]
	require.Equal(t, "vv_Multiplyfloat32", s.Kernels[0].Name)
	assert.InDelta(t, 1, s.Kernels[0].Roofline, 1e-9)
	assert.Greater(t, s.Kernels[1].Roofline, 100.0)
}

// A trace has arrows from what wrote last what a command reads, and to nothing that merely waits; epochs stand on one track though
// a device lets them overlap; and a modelled replay begins where the one before it ends.
func TestTraceDraws(t *testing.T) {
	arrows := func(events []event) (out [][2]float64) {
		from := 0.0
		for _, e := range events {
			if e.Name == "reads what it wrote" && e.Ph == "s" {
				from = e.Ts
			} else if e.Name == "reads what it wrote" {
				out = append(out, [2]float64{from, e.Ts})
			}
		}
		return out
	}
	last := 1000.0
	assert.Equal(t, [][2]float64{{last + 10, last + 40}, {last + 10, last + 50}, {last + 50, last + 90}}, arrows(read(t, made(t))))

	// Scratch memory that is written, read, written again and read again.
	g := &ir.Graph{Name: "again", Ordering: ir.Serial}
	for i, kind := range []ir.MemKind{ir.Scratch, ir.Output, ir.Output} {
		g.Memories = append(g.Memories, ir.Memory{Name: fmt.Sprint("m", i), Kind: kind, Size: 64, Alias: ir.NoMem})
	}
	view := func(m ir.MemID) ir.View { return ir.View{Mem: m, Len: ir.Const(64)} }
	g.Nodes = []ir.Node{&ir.Fill{ID: 0, Dst: view(0)}, &ir.Copy{ID: 1, Src: view(0), Dst: view(1)}, &ir.Fill{ID: 2, Dst: view(0)}, &ir.Copy{ID: 3, Src: view(0), Dst: view(2)}}
	require.NoError(t, g.Check())
	m, err := cost.Chip("")
	require.NoError(t, err)
	events := read(t, in(t, g, 2, m))
	assert.Equal(t, [][2]float64{{0, 1}, {2, 3}}, arrows(events))
	tracks := map[string]map[int]bool{}
	for _, e := range events {
		if e.Ph == "X" && e.Pid == 3 {
			if tracks[e.Cat] == nil {
				tracks[e.Cat] = map[int]bool{}
			}
			tracks[e.Cat][e.Tid] = true
		}
	}
	assert.Len(t, tracks["replay"], 1)

	x := replay.Timing{Replays: 1}
	x.Begin, x.End = at(0), at(60)
	for i, n := range g.Nodes {
		x.Commands = append(x.Commands, backend.TimeOf(n.(ir.Command), at(float64(10*i)), at(float64(10*i+30))))
	}
	of := profile.New(t.Context(), g)
	of.Add(x)
	var epochs [][2]float64
	for _, e := range read(t, &profile.Report{Model: m, Graphs: []*profile.Graph{of}}) {
		if e.Cat == "epoch" && e.Pid == 1 {
			epochs = append(epochs, [2]float64{e.Ts, e.Ts + *e.Dur})
		}
	}
	assert.Equal(t, [][2]float64{{0, 30}, {30, 40}, {40, 50}, {50, 60}}, epochs)
}

// Of a graph that has more commands than times are kept, the first replay is kept all the same.
func TestMoreCommandsThanAreKept(t *testing.T) {
	m, err := cost.Chip("")
	require.NoError(t, err)
	s := in(t, fills(profile.MostCommands+1, 4), 3, m).Summaries()[0]
	assert.Equal(t, 1, s.Replays)
	assert.Equal(t, 2, s.Dropped)
	assert.InDelta(t, profile.MostCommands+1, s.Busy, 1e-6)
}

// Of very many commands that may run together, a trace draws some beside each other and counts all. What is drawn takes no longer
// than what is measured: tracks that are all looked through for each command would take minutes.
func TestTraceOfManyTogether(t *testing.T) {
	m, err := cost.Chip("")
	require.NoError(t, err)
	const n = 100_000
	var b bytes.Buffer
	start := time.Now()
	require.NoError(t, in(t, fills(n, 4), 1, m).Trace(context.Background(), &b))
	assert.Less(t, time.Since(start), 20*time.Second)
	assert.Equal(t, 64, bytes.Count(b.Bytes(), []byte(`"cat":"command","ph":"X","pid":3`)))
	assert.Equal(t, n, bytes.Count(b.Bytes(), []byte(`"cat":"command","ph":"X","pid":1`)))
	assert.Contains(t, b.String(), fmt.Sprintf(`"commands":%d`, n))
}

// Figures that a model makes infinite are numbers in JSON, traces and pages.
func TestInfiniteFigures(t *testing.T) {
	m, err := cost.Chip("")
	require.NoError(t, err)
	m.Bandwidth, m.Rate, m.Launch, m.ConcurrentLaunch = 1e-300, 1e-300, cost.Seconds(math.Inf(1)), cost.Seconds(math.Inf(1))
	r := in(t, fills(2, 1<<40), 2, m)
	s := r.Summaries()[0]
	require.True(t, math.IsInf(s.Modelled, 1) || math.IsNaN(s.Modelled))
	s.Round()
	_, err = json.Marshal(s)
	require.NoError(t, err)
	read(t, r)
	require.NoError(t, r.Page(context.Background(), io.Discard))
}

// ablated is a report by ablation.
func ablated(t *testing.T) *profile.Report {
	d := testdevice.New(cpu.New(1), testdevice.Options{Sampling: backend.SampleNothing})
	g := layers(t, 6)
	of := profile.New(t.Context(), g)
	all, whole, err := profile.Ablate(t.Context(), d, g, profile.Options{Rounds: 15, Prepare: func(*replay.Graph) error { return nil }})
	require.NoError(t, err)
	for _, x := range whole {
		of.Add(x)
	}
	of.Ablated = all
	m, err := cost.Chip("")
	require.NoError(t, err)
	return &profile.Report{Title: "ablated", Device: "test", Model: m, Graphs: []*profile.Graph{of}, Notes: []string{"by ablation"}}
}

// empty is a report of a graph without commands.
func empty(t *testing.T) *profile.Report {
	r := measured(t, &ir.Graph{Name: "empty"}, 3)
	return r
}

// hostile is a report of names that no page may believe.
func hostile(t *testing.T) *profile.Report {
	g := layers(t, 2)
	bad := "</script><script>alert(1)</script>\u202e" + string(bytes.Repeat([]byte("é"), 100))
	for i, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			d.Label = bad
			if i%2 == 0 {
				d.Op = "<img src=x onerror=alert(1)>"
			}
		}
	}
	r := measured(t, g, 2)
	r.Title, r.About = bad, bad
	return r
}
