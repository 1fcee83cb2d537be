package testdevice_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/testdevice"
	"github.com/mlxc/mlxc/ir"
)

// fill is a program that sets the bytes of a state of 4 bytes.
func fill(t *testing.T, b backend.Buffer, v byte) *backend.Program {
	g := ir.NewBuilder("fill")
	s := g.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 4})
	g.Fill(ir.ViewOf(s, 0, 4), v, "")
	graph, err := g.Graph()
	require.NoError(t, err)
	return &backend.Program{Graph: graph, Buffers: []backend.Buffer{b}}
}

func open(t *testing.T, o testdevice.Options) (*testdevice.Device, backend.Queue, backend.Buffer) {
	c := cpu.New(1)
	d := testdevice.New(c, o)
	q := backend.NewQueue(d)
	b, err := d.Alloc(4)
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

// Three command buffers fill the same bytes with 1, 2, 3. What nothing orders
// runs backwards; an order puts all before it before all after it.
func TestOrders(t *testing.T) {
	for _, k := range []struct {
		orders [3]ir.CommitOrder
		want   byte
	}{
		{[3]ir.CommitOrder{}, 1},
		{[3]ir.CommitOrder{0, ir.OrderEvent, ir.OrderEvent}, 3},
		{[3]ir.CommitOrder{0, 0, ir.OrderFence}, 3},
		{[3]ir.CommitOrder{0, ir.OrderFence, 0}, 2}, // the third is behind the first only
	} {
		d, q, b := open(t, testdevice.Options{Hold: true, Reverse: true})
		var all []backend.CommandBuffer
		for i, order := range k.orders {
			c, err := q.CommandBuffer()
			require.NoError(t, err)
			require.NoError(t, c.Commit(context.Background(), backend.Submission{Program: fill(t, b, byte(i+1)), Order: order}))
			require.Equal(t, backend.Committed, c.Status())
			all = append(all, c)
		}
		d.ReleaseAll()
		for _, c := range all {
			_, err := c.Wait()
			require.NoError(t, err)
			require.Equal(t, backend.Completed, c.Status())
		}
		require.Equal(t, k.want, b.Bytes()[0], "%v", k.orders)
	}
}

// A queue holds so many uncommitted command buffers; committed and discarded ones
// make room.
func TestUncommitted(t *testing.T) {
	d, q, b := open(t, testdevice.Options{})
	var all []backend.CommandBuffer
	for range backend.MaxUncommitted {
		c, err := q.CommandBuffer()
		require.NoError(t, err)
		all = append(all, c)
	}
	_, err := q.CommandBuffer()
	require.ErrorContains(t, err, "64 command buffers are uncommitted")
	require.Equal(t, []string{"1 buffers are not closed", "64 command buffers are uncommitted"}, d.Leaks())
	require.NoError(t, all[0].Commit(context.Background(), backend.Submission{Program: fill(t, b, 1)}))
	_, err = all[1].Wait()
	require.ErrorContains(t, err, "uncommitted: it never ends")
	for _, c := range all[1:] {
		c.Discard()
		require.Equal(t, backend.Discarded, c.Status())
	}
	require.Error(t, all[1].Commit(context.Background(), backend.Submission{Program: fill(t, b, 1)}))
	_, err = all[0].Wait()
	require.NoError(t, err)
}

// Memory that is closed while a command buffer uses it makes that one fail, or
// stays if command buffers retain it.
func TestMemoryInUse(t *testing.T) {
	for _, retain := range []bool{false, true} {
		d, q, b := open(t, testdevice.Options{Hold: true, Retain: retain})
		c, err := q.CommandBuffer()
		require.NoError(t, err)
		require.NoError(t, c.Commit(context.Background(), backend.Submission{Label: "late", Program: fill(t, b, 1)}))
		require.NoError(t, b.Close())
		d.ReleaseAll()
		_, err = c.Wait()
		if retain {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, `command buffer "late": page fault: 1 buffers were freed while this command buffer used them`)
			require.Equal(t, backend.Failed, c.Status())
		}
		require.ErrorContains(t, b.Close(), "closed twice")
		_, err = d.Compile(fill(t, b, 1))
		require.ErrorContains(t, err, "was closed")
	}
}

// A fault is that of the command buffer it is asked for.
func TestFaults(t *testing.T) {
	fault := errors.New("timeout")
	_, q, b := open(t, testdevice.Options{Fault: func(n int, label string) error {
		if n == 1 && label == "second" {
			return fault
		}
		return nil
	}})
	for i, label := range []string{"first", "second", "third"} {
		c, err := q.CommandBuffer()
		require.NoError(t, err)
		require.NoError(t, c.Commit(context.Background(), backend.Submission{Label: label, Program: fill(t, b, 1), Order: ir.OrderEvent}))
		_, err = c.Wait()
		require.Equal(t, i == 1, errors.Is(err, fault))
	}
}
