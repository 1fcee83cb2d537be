package testdevice_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
)

// fill returns a scope with a state of 4 bytes at b, and a command that fills it with v.
func fill(t *testing.T, b backend.Buffer, v byte) (*backend.Scope, ir.Node) {
	g := ir.NewBuilder("fill")
	s := g.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 4})
	g.Fill(ir.ViewOf(s, 0, 4), v, "")
	graph, err := g.Graph()
	require.NoError(t, err)
	return &backend.Scope{Graph: graph, Places: []backend.Place{backend.At(b)}}, graph.Nodes[0]
}

// commit commits a command buffer that fills b with v.
func commit(t *testing.T, q backend.Queue, b backend.Buffer, v byte, label string, order ir.CommitOrder) backend.Pending {
	scope, n := fill(t, b, v)
	c, err := q.CommandBuffer(context.Background(), backend.Recording{Scope: scope})
	require.NoError(t, err)
	require.NoError(t, c.Encode(n))
	p, err := c.Commit(context.Background(), label, order)
	require.NoError(t, err)
	return p
}

func open(t *testing.T, o testdevice.Options) (*testdevice.Device, backend.Queue, backend.Buffer) {
	c := cpu.New(1)
	d := testdevice.New(c, o)
	q, err := d.NewQueue()
	require.NoError(t, err)
	b, err := d.Alloc(backend.BufferSpec{Size: 4})
	require.NoError(t, err)
	t.Cleanup(func() {
		d.ReleaseAll()
		require.NoError(t, q.Close())
		_ = b.Close()
		require.Empty(t, d.Leaks())
		require.NoError(t, c.Close())
	})
	return d, q, b
}

// TestOrders: three command buffers fill the same bytes with 1, 2, 3. Unordered ones run in
// reverse; one with an order runs after all that come before it.
func TestOrders(t *testing.T) {
	for _, k := range []struct {
		orders [3]ir.CommitOrder
		want   byte
	}{
		{[3]ir.CommitOrder{}, 1},
		{[3]ir.CommitOrder{0, ir.OrderEvent, ir.OrderEvent}, 3},
		{[3]ir.CommitOrder{0, 0, ir.OrderFence}, 3},
		{[3]ir.CommitOrder{0, ir.OrderFence, 0}, 2}, // the third is ordered after the first only
	} {
		d, q, b := open(t, testdevice.Options{Hold: true, Reverse: true})
		var all []backend.Pending
		for i, order := range k.orders {
			p := commit(t, q, b, byte(i+1), "", order)
			require.Equal(t, backend.Committed, p.Status())
			all = append(all, p)
		}
		d.ReleaseAll()
		for _, p := range all {
			require.NoError(t, p.Wait(context.Background()))
			require.Equal(t, backend.Completed, p.Status())
		}
		require.Equal(t, k.want, b.Bytes()[0], "%v", k.orders)
	}
}

// TestUncompleted: if MaxUncompleted command buffers are open, one more is an error; if some of
// them were committed, CommandBuffer waits.
func TestUncompleted(t *testing.T) {
	d, q, b := open(t, testdevice.Options{Hold: true, MaxUncompleted: 4})
	scope, _ := fill(t, b, 1)
	ctx := context.Background()
	var all []backend.CommandBuffer
	for range 4 {
		c, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
		require.NoError(t, err)
		all = append(all, c)
	}
	_, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
	require.ErrorContains(t, err, "4 command buffers are open")
	require.Equal(t, []string{"1 buffers are not closed", "4 command buffers are uncommitted", "1 queues are not closed"}, d.Leaks())
	p, err := all[0].Commit(ctx, "", ir.OrderEvent)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = q.CommandBuffer(short, backend.Recording{Scope: scope})
	require.ErrorIs(t, err, context.DeadlineExceeded, "one that was committed has not ended")
	waits := make(chan error)
	go func() {
		c, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
		if err == nil {
			c.Discard()
		}
		waits <- err
	}()
	d.ReleaseAll()
	require.NoError(t, p.Wait(ctx))
	require.NoError(t, <-waits)
	for _, c := range all[1:] {
		c.Discard()
		c.Discard()
	}
	require.Zero(t, d.Uncommitted())
	_, err = all[1].Commit(ctx, "", ir.OrderEvent)
	require.ErrorContains(t, err, "was committed or discarded")
}

// TestMemoryInUse: if a buffer is closed while a command buffer uses it, that fails, unless
// command buffers retain their buffers.
func TestMemoryInUse(t *testing.T) {
	for _, retain := range []bool{false, true} {
		d, q, b := open(t, testdevice.Options{Hold: true, Retain: retain})
		p := commit(t, q, b, 1, "late", ir.OrderEvent)
		require.NoError(t, b.Close())
		d.ReleaseAll()
		err := p.Wait(context.Background())
		if retain {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, `command buffer "late": page fault: 1 buffers were freed while this command buffer used them`)
			require.Equal(t, backend.Failed, p.Status())
			require.True(t, p.Result().Torn)
		}
		require.ErrorContains(t, b.Close(), "closed twice")
		scope, n := fill(t, b, 1)
		c, err := q.CommandBuffer(context.Background(), backend.Recording{Scope: scope})
		require.NoError(t, err)
		require.ErrorContains(t, c.Encode(n), "was closed")
		_, err = c.Commit(context.Background(), "", ir.OrderEvent)
		require.ErrorContains(t, err, "was closed", "what cannot be encoded is not committed")
	}
}

// TestFaults: the command buffer for which Fault returns an error fails with it; later ones are
// not executed and say why.
func TestFaults(t *testing.T) {
	fault := errors.New("timeout")
	_, q, b := open(t, testdevice.Options{Fault: func(n int, label string) error {
		if n == 1 && label == "second" {
			return fault
		}
		return nil
	}})
	for i, label := range []string{"first", "second", "third"} {
		p := commit(t, q, b, byte(i+1), label, ir.OrderEvent)
		err := p.Wait(context.Background())
		require.Equal(t, i > 0, errors.Is(err, fault))
		require.Equal(t, i == 2, errors.Is(err, backend.ErrNotExecuted))
		require.Equal(t, i == 1, p.Result().Torn)
	}
	require.ErrorIs(t, q.Err(), fault)
	require.Equal(t, byte(1), b.Bytes()[0])
}

// TestPrivateAndLimits: memory can be hidden from the host, and limits can be changed.
func TestPrivateAndLimits(t *testing.T) {
	_, q, b := open(t, testdevice.Options{Private: true, Late: time.Millisecond, Info: func(i *backend.Info) { i.MaxBuffer, i.PageSize = 100, 16 }})
	require.Nil(t, b.Bytes())
	ctx := context.Background()
	require.NoError(t, backend.Wait(ctx)(q.Upload(ctx, backend.At(b), []byte{1, 2, 3, 4})))
	got := make([]byte, 2)
	require.NoError(t, backend.Wait(ctx)(q.Download(ctx, got, backend.At(b).Add(1))))
	require.Equal(t, []byte{2, 3}, got)
	_, err := q.Upload(ctx, backend.At(b).Add(1), []byte{1, 2, 3, 4})
	require.EqualError(t, err, "test device: upload: the destination needs 4 bytes from byte 1 on, its buffer has 4")
	d := testdevice.New(cpu.New(1), testdevice.Options{Info: func(i *backend.Info) { i.MaxBuffer, i.PageSize = 100, 16 }})
	_, err = d.Alloc(backend.BufferSpec{Size: 101})
	require.ErrorContains(t, err, "the greatest has 100")
	_, err = d.Map(make([]byte, 40), true)
	require.ErrorContains(t, err, "no whole pages of 16 bytes")
}

// fills compiles a graph that fills its output, with n frames.
func fills(t *testing.T, d *testdevice.Device, by ir.Ordering, n int) (backend.Executable, []backend.Frame) {
	b := ir.NewBuilder("fills")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4})
	b.Fill(ir.ViewOf(y, 0, 4), 7, "")
	g, err := b.Graph()
	require.NoError(t, err)
	g.SetOrdering(by)
	x, err := d.Compile(context.Background(), &backend.Program{Graph: g})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	var frames []backend.Frame
	for range n {
		f, err := x.NewFrame(backend.FrameSpec{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		frames = append(frames, f)
	}
	return x, frames
}

// TestReadBesideReplay: here replay n does not end before the outputs of replay n-1 were read, by
// an operation that was given to the queue after all replays.
func TestReadBesideReplay(t *testing.T) {
	var read [3]chan struct{}
	for i := range read {
		read[i] = make(chan struct{})
	}
	d, q, _ := open(t, testdevice.Options{Private: true, Fault: func(n int, _ string) error {
		if n > 0 {
			<-read[n-1]
		}
		return nil
	}})
	x, frames := fills(t, d, ir.ByBarriers, 3)
	ctx := context.Background()
	var all []backend.Pending
	for _, f := range frames {
		p, err := q.Submit(ctx, backend.Submission{Executable: x, Frame: f})
		require.NoError(t, err)
		all = append(all, p)
	}
	for i, f := range frames {
		require.NoError(t, all[i].Wait(ctx))
		var data [4]byte
		require.NoError(t, backend.Wait(ctx)(q.Download(ctx, data[:], f.Place(0))))
		require.Equal(t, [4]byte{7, 7, 7, 7}, data)
		close(read[i])
	}
}

// TestReplaysOverlap: three replays that no edge orders are in flight together: here the first
// does not end before the last has begun.
func TestReplaysOverlap(t *testing.T) {
	begun := make(chan struct{})
	d, q, _ := open(t, testdevice.Options{Fault: func(n int, _ string) error {
		if n == 2 {
			close(begun)
		}
		<-begun
		return nil
	}})
	x, frames := fills(t, d, ir.ByEdges, 3)
	ctx := context.Background()
	for _, f := range frames {
		_, err := q.Submit(ctx, backend.Submission{Executable: x, Frame: f})
		require.NoError(t, err)
	}
	e, err := q.Event()
	require.NoError(t, err)
	require.NoError(t, e.Wait(ctx))
	for _, f := range frames {
		require.Equal(t, []byte{7, 7, 7, 7}, f.Place(0).Bytes(4))
	}
}

// TestFaultBeside: an operation that ran beside an earlier one that has failed fails too.
func TestFaultBeside(t *testing.T) {
	begun, fault := make(chan struct{}), errors.New("timeout")
	ended := make(chan struct{})
	d, q, _ := open(t, testdevice.Options{Fault: func(n int, _ string) error {
		if n == 0 {
			<-begun
			return fault
		}
		close(begun)
		<-ended
		return nil
	}})
	x, frames := fills(t, d, ir.ByEdges, 2)
	ctx := context.Background()
	first, err := q.Submit(ctx, backend.Submission{Executable: x, Frame: frames[0]})
	require.NoError(t, err)
	second, err := q.Submit(ctx, backend.Submission{Executable: x, Frame: frames[1]})
	require.NoError(t, err)
	require.ErrorIs(t, first.Wait(ctx), fault)
	close(ended)
	require.ErrorIs(t, second.Wait(ctx), fault)
	require.True(t, second.Result().Torn)
}
