package replay_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// limited opens the graph norm on a device whose limits were changed.
func limited(t *testing.T, limit func(*backend.Info)) (*replay.Instance, error) {
	c := cpu.New(1)
	d := testdevice.New(c, testdevice.Options{Info: limit})
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{norm(t)}}, replay.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.Empty(t, d.Leaks())
		require.NoError(t, c.Close())
	})
	_, err = s.Graph(context.Background(), "norm")
	return s, err
}

// A graph that exceeds a limit of the device is refused before anything is compiled.
func TestLimits(t *testing.T) {
	for want, limit := range map[string]func(*backend.Info){
		"graph norm: #0 rmsfloat32: threadgroups of 32 threads, the device has at most 31":   func(i *backend.Info) { i.MaxThreadgroup = 31 },
		"graph norm: #0 rmsfloat32: binds slot 5, the device has slots 0 to 4":               func(i *backend.Info) { i.ArgumentSlots = 5 },
		"graph norm: memory %arguments has 96 bytes, a buffer of the device at most 95":      func(i *backend.Info) { i.MaxBuffer = 95 },
		"beyond byte 40 of its buffer, the greatest offset of the device":                    func(i *backend.Info) { i.MaxOffset = 40 },
		"graph norm: its memories need 132 bytes (%arguments alone 96), the device test may": func(i *backend.Info) { i.Memory = 100 },
		"graph norm: the device test wants the passes \"nonsense\": there is no pass":        func(i *backend.Info) { i.Lower = "nonsense" },
	} {
		_, err := limited(t, limit)
		require.ErrorContains(t, err, want)
	}
	_, err := limited(t, func(i *backend.Info) {
		i.MaxThreadgroup, i.ArgumentSlots, i.MaxBuffer, i.MaxOffset, i.Memory = 32, 6, 96, 64, 132
	})
	require.NoError(t, err)
}

// Passes that the device asks for run on a copy of the graph.
func TestLowering(t *testing.T) {
	b := ir.NewBuilder("g")
	x, y := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 16}), b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 16})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 16})
	b.Copy(ir.ViewOf(s, 0, 16), ir.ViewOf(x, 0, 16), "")
	b.Barrier()
	b.Barrier() // an unnecessary barrier
	b.Copy(ir.ViewOf(y, 0, 16), ir.ViewOf(s, 0, 16), "")
	recorded, err := b.Graph()
	require.NoError(t, err)
	c := cpu.New(1)
	defer c.Close()
	d := testdevice.New(c, testdevice.Options{Info: func(i *backend.Info) { i.Lower = "barriers" }})
	in, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{recorded}}, replay.Options{})
	require.NoError(t, err)
	defer in.Close()
	g, err := in.Graph(context.Background(), "")
	require.NoError(t, err)
	require.NotSame(t, recorded, g.IR())
	require.Equal(t, 2, recorded.Stats().Barriers)
	require.NotEqual(t, recorded.Nodes, g.IR().Nodes)
	require.NoError(t, g.SetInput("x", []byte("sixteen bytes, x")))
	_, err = g.Run(context.Background())
	require.NoError(t, err)
	out, err := g.Output("y")
	require.NoError(t, err)
	require.Equal(t, "sixteen bytes, x", string(out))
}

// Several sets of states are independent sequences on the same weights.
func TestSetsOfStates(t *testing.T) {
	s := open(t, replay.Options{}, sum(t, "a"), sum(t, "b"))
	ctx := context.Background()
	a, b := graph(t, s, "a"), graph(t, s, "b")
	other, err := s.NewStates(ctx)
	require.NoError(t, err)
	put(t, a, "x", 1, 1, 1, 1)
	put(t, b, "x", 10, 10, 10, 10)
	for _, use := range []*replay.States{s.States(), other, other} {
		require.NoError(t, a.Use(use))
		_, err = a.Run(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, b.Use(other))
	_, err = b.Run(ctx)
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1, 1, 1}, get(s.States().Get("acc")))
	require.Equal(t, []float32{12, 12, 12, 12}, get(other.Get("acc")))
	require.NoError(t, other.Set("acc", ir.ValueBytes(float32(5))))
	require.NoError(t, s.States().Reset(ctx))
	require.Equal(t, []float32{5, 12, 12, 12}, get(other.Get("acc")))
	require.Equal(t, []float32{0, 0, 0, 0}, get(s.States().Get("acc")))
	_, err = other.Get("nobody")
	require.EqualError(t, err, "there is no state %nobody (it has acc)")
	require.NoError(t, other.Close())
	_, err = b.Run(ctx)
	require.ErrorContains(t, err, "closed")
	foreign := open(t, replay.Options{}, sum(t, "a"))
	require.ErrorContains(t, a.Use(foreign.States()), "of another instance")
}

// Reset makes a device that has failed usable again.
func TestResetAfterAFailure(t *testing.T) {
	c := cpu.New(1)
	defer c.Close()
	for _, private := range []bool{false, true} {
		d := testdevice.New(c, testdevice.Options{Private: private, Fault: func(n int, _ string) error {
			if n == 1 {
				return context.DeadlineExceeded
			}
			return nil
		}})
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{sum(t, "sum")}}, replay.Options{})
		require.NoError(t, err)
		g := graph(t, s, "")
		put(t, g, "x", 1, 2, 3, 4)
		ctx := context.Background()
		_, err = g.Run(ctx)
		require.NoError(t, err)
		_, err = g.Run(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = g.Output("y")
		require.ErrorContains(t, err, "output %y is undefined")
		_, err = g.Run(ctx)
		require.ErrorContains(t, err, "states are undefined")
		require.NoError(t, s.ResetStates())
		_, err = g.Run(ctx)
		require.NoError(t, err)
		require.Equal(t, []float32{2, 4, 6, 8}, get(g.Output("y")))
		require.NoError(t, s.Close())
		require.Empty(t, d.Leaks())
	}
}

// Frames share scratch if the order of replays allows it, and only then.
func TestScratchOfFrames(t *testing.T) {
	for _, ordering := range []ir.Ordering{ir.ByBarriers, ir.Serial, ir.ByEdges} {
		b := ir.NewBuilder("g")
		x, y := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 1024}), b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 1024})
		s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 1 << 20})
		b.Copy(ir.ViewOf(s, 0, 1024), ir.ViewOf(x, 0, 1024), "")
		b.Barrier()
		b.Copy(ir.ViewOf(y, 0, 1024), ir.ViewOf(s, 0, 1024), "")
		b.Barrier()
		g, err := b.Graph()
		require.NoError(t, err)
		if ordering == ir.ByEdges {
			g.Nodes = []ir.Node{g.Nodes[0], g.Nodes[2]}
			g.Edges = []ir.Edge{{From: 1, To: 0, Previous: true}, {From: 0, To: 1}}
		}
		g.Ordering = ordering
		require.NoError(t, g.Check())
		c := cpu.NewLimited(1, 2<<20) // room for one scratch, or for two without anything else
		defer c.Close()
		in, err := replay.Open(c, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
		require.NoError(t, err)
		p := graph(t, in, "")
		f, err := p.NewFrame(context.Background())
		if ordering == ir.ByEdges {
			require.ErrorContains(t, err, "cannot allocate 1048576 bytes")
		} else {
			require.NoError(t, err)
			for i, f := range []*replay.Frame{p.Frame, f} {
				data := make([]byte, 1024)
				data[5] = byte(i + 1)
				require.NoError(t, f.SetInput("x", data))
				_, err = f.Run(context.Background())
				require.NoError(t, err)
				out, err := f.Output("y")
				require.NoError(t, err)
				require.Equal(t, data, out)
			}
		}
		require.NoError(t, in.Close())
	}
}

// The number of command buffers in flight stays within the device's limit: a run waits for room, and if its context
// ends before, nothing is submitted.
func TestMaxUncompleted(t *testing.T) {
	c := cpu.New(1)
	d := testdevice.New(c, testdevice.Options{Hold: true, MaxUncompleted: 5})
	b := ir.NewBuilder("two")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4})
	b.Fill(ir.ViewOf(y, 0, 2), 1, "")
	b.Commit(ir.OrderEvent, "")
	b.Fill(ir.ViewOf(y, 2, 2), 1, "")
	g, err := b.Graph()
	require.NoError(t, err)
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(t, err)
	ctx := context.Background()
	p, err := s.Graph(ctx, "")
	require.NoError(t, err)
	burst, err := p.NewBurstFrame(ctx, 9)
	require.NoError(t, err)
	var all []*replay.Run
	for range 2 {
		f, err := p.NewFrame(ctx)
		require.NoError(t, err)
		r, err := f.Submit(ctx)
		require.NoError(t, err)
		all = append(all, r)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.Submit(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "graph two: 4 command buffers are in flight, this run has 2 more, and a queue of the device test may have 5: context canceled")
	d.Release(1)
	third, err := p.Submit(ctx) // waits until the first has ended
	require.NoError(t, err)
	require.Equal(t, backend.Completed, all[0].Status())
	d.ReleaseAll()
	many, err := burst.SubmitBurst(ctx, 9, nil) // waits until nothing is in flight, and is encoded as its command buffers complete
	require.NoError(t, err)
	for _, r := range append(all, third, many) {
		_, err := r.Wait(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	require.Empty(t, d.Leaks())
	require.NoError(t, c.Close())
}
