//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
)

// stagingBytes is the max length, in bytes, of the shared buffer that data is copied through on its way to
// and from private buffers.
const stagingBytes = 4 << 20

// upload copies data to a private buffer, from byte off on.
func (d *Device) upload(ctx context.Context, b *buffer, off int64, data []byte) error {
	return d.staged(ctx, len(data), func(shared *buffer, from, to int) error {
		copy(shared.data, data[from:to])
		return d.move(ctx, b, off+int64(from), shared, 0, int64(to-from))
	})
}

// download copies len(data) bytes of a private buffer, from byte off on, to data.
func (d *Device) download(ctx context.Context, data []byte, b *buffer, off int64) error {
	return d.staged(ctx, len(data), func(shared *buffer, from, to int) error {
		if err := d.move(ctx, shared, 0, b, off+int64(from), int64(to-from)); err != nil {
			return err
		}
		copy(data[from:to], shared.data)
		return nil
	})
}

// staged calls do for each piece of n bytes, with a shared buffer that has room for the piece.
func (d *Device) staged(ctx context.Context, n int, do func(shared *buffer, from, to int) error) error {
	piece := stagingBytes
	if d.maxBuffer > 0 {
		piece = int(min(stagingBytes, d.maxBuffer&^15))
	}
	for from := 0; from < n; from += piece {
		err := func() error {
			d.side.mu.Lock()
			defer d.side.mu.Unlock()
			if d.side.shared == nil {
				var err error
				if d.side.shared, err = d.alloc(int64(piece), false); err != nil {
					return fmt.Errorf("%w (it is what bytes go through that the host does not see)", err)
				}
			}
			return do(d.side.shared, from, min(n, from+piece))
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// copyBuffer copies n bytes between two buffers of the device on the GPU, and waits.
func (d *Device) copyBuffer(ctx context.Context, dst backend.Place, src backend.Place, n int64) error {
	to, from := dst.Buffer.(*buffer), src.Buffer.(*buffer)
	const most = 1 << 30 // below the 2^32 elements that the kernel can count, and short enough to let the screen be drawn
	for done := int64(0); done < n; done += most {
		d.side.mu.Lock()
		err := d.move(ctx, to, dst.Offset+done, from, src.Offset+done, min(most, n-done))
		d.side.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// move copies n bytes between buffers on the GPU, and waits. The caller holds d.side.mu. A kernel copies, as
// in replays; a blit encoder would do as well.
func (d *Device) move(ctx context.Context, dst *buffer, to int64, src *buffer, from, n int64) error {
	if n == 0 {
		return nil
	}
	width := int64(1)
	for _, w := range []int64{16, 4} {
		if to%w == 0 && from%w == 0 && n%w == 0 {
			width = w
			break
		}
	}
	p, err := d.pipelines.find(ctx, nil, &plan.Pipeline{Source: plan.Copy, Width: int(width)}, false)
	if err != nil {
		return fmt.Errorf("metal: bytes that the host does not see cannot be copied: %w", err)
	}
	err = d.side.run(ctx, d, func(b *objc.Batch, encoder objc.Ref) {
		b.SendTo(objc.SetPipeline, encoder, uintptr(p.id))
		b.SendTo(objc.SetBuffer, encoder, uintptr(src.id), uintptr(from), 0)
		b.SendTo(objc.SetBuffer, encoder, uintptr(dst.id), uintptr(to), 1)
		b.SendTo(objc.SetBytes, encoder, b.Bytes(binary.LittleEndian.AppendUint32(nil, uint32(n/width))), 4, 2)
		b.SendTo(objc.DispatchThreads, encoder, b.Size(uint64(n/width), 1, 1), b.Size(uint64(min(256, p.threads)), 1, 1))
	})
	if err != nil {
		return fmt.Errorf("metal: %d bytes that the host does not see are not copied: %w", n, err)
	}
	return nil
}
