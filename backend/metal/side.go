//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"errors"
	"sync"

	"github.com/mlxc/mlxc/internal/objc"
)

// side is a command queue on which a device does work of its own, one command buffer at a time, and waits
// for it: copies to and from private buffers, and first dispatches of pipelines (prime.go).
type side struct {
	mu     sync.Mutex
	queue  objc.ID
	batch  objc.Batch
	shared *buffer // the staging buffer that bytes are copied through; nil: not made yet
	zeros  *buffer // zeros that first dispatches bind; nil: not made yet
}

// run runs a command buffer with one encoder, which encode fills, and waits for it. The caller holds s.mu.
func (s *side) run(ctx context.Context, d *Device, encode func(b *objc.Batch, encoder objc.Ref)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var err error
	objc.Pool(func() {
		if s.queue == 0 {
			if s.queue = objc.NewQueue.SendID(d.id, 1); s.queue == 0 {
				err = errors.New("the system gives no command queue")
				return
			}
			d.resident.queue(s.queue)
		}
		b := &s.batch
		b.Reset()
		cb := b.Send(objc.CommandBuffer, s.queue)
		encoder := b.SendTo(objc.ComputeEncoderOfType, cb, uintptr(objc.DispatchTypeSerial))
		encode(b, encoder)
		b.SendTo(objc.EndEncoding, encoder)
		b.SendTo(objc.Commit, cb)
		b.SendTo(objc.WaitUntilCompleted, cb)
		if err = b.Run(); err != nil {
			return
		}
		id := objc.ID(cb.Value())
		if id == 0 {
			err = errors.New("the system gives no command buffer")
		} else if uint64(objc.BufferStatus.Send(id)) != objc.CommandBufferStatusCompleted {
			err = decode(objc.Failure(objc.BufferError.SendID(id)))
		}
	})
	return err
}

// close releases queue and buffers. Nobody may use the device any more.
func (s *side) close() error {
	for _, b := range []*buffer{s.shared, s.zeros} {
		if b != nil {
			_ = b.Close() // never fails
		}
	}
	objc.Release(s.queue)
	s.queue, s.shared, s.zeros = 0, nil, nil
	return s.batch.Close()
}
