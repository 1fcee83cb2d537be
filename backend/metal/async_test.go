//go:build linux

package metal_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
)

// TestAsync: a state is uploaded, doubled by replays, copied between queues of a device, to the CPU and to
// another device, and downloaded, without the host waiting in between: queues wait for each other
// ([backend.Queue.Await]). To wait for the last operation, or for an event behind it, is to wait for
// all. The results are right with shared and private buffers.
func TestAsync(t *testing.T) {
	for name, o := range map[string]metal.Options{"shared": {}, "private": {Private: true}} {
		t.Run(name, func(t *testing.T) {
			r := gpu(t, fakemetal.Options{Late: 2 * time.Millisecond, Seed: 4}, o)
			second := &rig{Device: open(t, o), t: t}
			host := cpu.New(1)
			a, b, c := r.queue(), r.queue(), second.queue()
			h, err := host.NewQueue()
			require.NoError(t, err)
			one, two, three := r.doubling(3), r.doubling(3), second.doubling(3)
			onHost, err := host.Alloc(backend.BufferSpec{Size: 16})
			require.NoError(t, err)

			ctx := t.Context()
			var pending []backend.Pending
			give := func(p backend.Pending, err error) backend.Pending {
				t.Helper()
				require.NoError(t, err)
				pending = append(pending, p)
				return p
			}
			// after lets queue q wait for all that queue other was given so far.
			after := func(q, other backend.Queue) { give(q.Await(give(other.Event()))) }
			for round := range 3 {
				first := float32(round + 1)
				out := make([]byte, 16)
				give(a.Upload(ctx, backend.At(one.state), floats(first, first, first, first)))
				give(one.submit(ctx, a), nil) // × 8
				after(b, a)
				give(b.Copy(ctx, backend.At(two.state), backend.At(one.state), 16))
				give(two.submit(ctx, b), nil) // × 8
				after(h, b)
				give(h.Copy(ctx, backend.At(onHost), backend.At(two.state), 16))
				after(c, h)
				give(c.Copy(ctx, backend.At(three.state), backend.At(onHost), 16))
				give(three.submit(ctx, c), nil) // × 8
				last := give(c.Download(ctx, out, backend.At(three.state)))
				after(a, c) // the next round writes what this one reads

				if round == 0 {
					require.NoError(t, last.Wait(ctx))
				} else {
					require.NoError(t, give(a.Event()).Wait(ctx))
				}
				for _, p := range pending[:len(pending)-2] {
					require.Equal(t, backend.Completed, p.Status())
				}
				require.Equal(t, []float32{512 * first, 512 * first, 512 * first, 512 * first}, numbers(out))
			}
			for _, q := range []backend.Queue{a, b, c, h} {
				require.NoError(t, q.Close())
			}
			one.close()
			two.close()
			three.close()
			require.NoError(t, onHost.Close())
			require.NoError(t, host.Close())
			require.NoError(t, second.Close())
		})
	}
}

// TestAwaitFailure: an operation that awaits one of another queue that failed fails as well, and says why.
func TestAwaitFailure(t *testing.T) {
	r := gpu(t, fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 1, Code: 3}}}, metal.Options{})
	d, a, b := r.doubling(1), r.queue(), r.queue()
	failing := d.submit(t.Context(), a)
	_, err := b.Await(failing)
	require.NoError(t, err)
	x := d.submit(t.Context(), b).Result()
	require.ErrorIs(t, x.Err, backend.ErrNotExecuted)
	require.ErrorContains(t, x.Err, "what was awaited did not end well")
	require.ErrorContains(t, x.Err, metal.PageFault.String())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	d.close()
}

// TestPages: Map makes a buffer of whole pages of the host without a copy, so that host and GPU see each
// other's writes. Other memory is an error for Map, and weights in such memory are copied.
func TestPages(t *testing.T) {
	const page = 16 << 10
	r := gpu(t, fakemetal.Options{}, metal.Options{})
	mapping, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(mapping)) }()
	skip := int(-uintptr(unsafe.Pointer(&mapping[0])) % page)
	memory := mapping[skip : skip+2*page]
	copy(memory, floats(1, 1, 1, 1))
	uncopied := r.sent("newBufferWithBytesNoCopy:length:options:deallocator:")

	for _, bad := range [][]byte{memory[1:], memory[:page+16], memory[16 : page+16], nil} {
		_, err := r.Map(bad, false)
		require.ErrorContains(t, err, "must be whole pages of 16384")
	}
	require.Zero(t, uncopied())
	b, err := r.Map(memory, false)
	require.NoError(t, err)
	require.Equal(t, unsafe.SliceData(memory), unsafe.SliceData(b.Bytes()))
	d, q := r.doubling(1), r.queue()
	require.NoError(t, backend.Wait(t.Context())(q.Copy(t.Context(), backend.At(d.state), backend.At(b), 16)))
	require.NoError(t, d.submit(t.Context(), q).Wait(t.Context()))
	require.NoError(t, backend.Wait(t.Context())(q.Copy(t.Context(), backend.At(b), backend.At(d.state), 16)))
	require.Equal(t, []float32{2, 2, 2, 2}, numbers(memory[:16]), "the host reads what it has mapped")
	require.NoError(t, b.Close())

	// Weights are mapped where that is possible, and else copied.
	for _, w := range []struct {
		data   []byte
		mapped int
	}{{memory, 1}, {memory[:page/2], 0}, {memory[16 : page+16], 0}} {
		before := uncopied()
		m := &ir.Memory{Name: "w", Kind: ir.Weight, Size: int64(len(w.data)), Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(w.data)}}
		b, err := backend.AllocMemory(t.Context(), r.Device, q, m)
		require.NoError(t, err)
		require.Equal(t, w.mapped, uncopied()-before)
		require.Equal(t, w.data, b.Bytes())
		require.NoError(t, b.Close())
	}
	require.NoError(t, q.Close())
	d.close()
}
