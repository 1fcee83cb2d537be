//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"fmt"

	"github.com/mlxc/mlxc/internal/objc"
)

// apple9 is the first family of GPUs that is said to need no priming of pipelines.
const apple9 = 9

// unprimed reports whether pipelines for indirect command buffers are dispatched once before their use.
// On GPUs before Apple9 a pipeline that is used only in indirect command buffers is said to need that.
// Whether it does is not known, but a dispatch does no harm: its grid is empty, and the GPU reads that
// from memory, since Metal forbids to encode an empty grid.
func (d *Device) unprimed() bool { return 0 < d.Family && d.Family < apple9 }

// primeBytes is the length, in bytes, of the buffer of zeros that the empty dispatch has at all argument
// slots: more than any structure that a kernel takes by reference.
const primeBytes = 64 << 10

// prime dispatches a pipeline once, with an empty grid. memory are the indices at which its kernel takes
// threadgroup memory.
func (d *Device) prime(ctx context.Context, p pipeline, memory []uint8) error {
	s := &d.side
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zeros == nil {
		b, err := d.alloc(primeBytes, false)
		if err != nil {
			return err
		}
		clear(b.data)
		s.zeros = b
	}
	err := s.run(ctx, d, func(b *objc.Batch, encoder objc.Ref) {
		b.SendTo(objc.SetPipeline, encoder, uintptr(p.id))
		for slot := range uintptr(argumentSlots) {
			b.SendTo(objc.SetBuffer, encoder, uintptr(s.zeros.id), 0, slot)
		}
		for _, slot := range memory {
			b.SendTo(objc.SetThreadgroupMemory, encoder, 16, uintptr(slot))
		}
		b.SendTo(objc.DispatchIndirect, encoder, uintptr(s.zeros.id), 0, b.Size(1, 1, 1))
	})
	if err != nil {
		return fmt.Errorf("the empty dispatch before its use in indirect command buffers: %w", err)
	}
	return nil
}
