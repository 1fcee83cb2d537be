//go:build (darwin || linux) && (amd64 || arm64)

package metal

import "github.com/mlxc/mlxc/internal/objc"

// fence orders the encoders of a queue over buffers whose hazards Metal does not track ([Options.Fences]). Nil: Metal
// tracks them. No plan uses it unless it is asked to, since nobody has seen a Mac keep that order.
type fence struct {
	id objc.ID
	// updated: an encoder that updates the fence was committed. Only the submission whose turn it is reads and
	// writes this.
	updated bool
}

// newFence returns the fence of a new queue, whose id is 0 if the system gives none.
func (d *Device) newFence() *fence {
	if !d.options.Fences {
		return nil
	}
	return &fence{id: objc.NewFence.SendID(d.id)}
}

// wait has an encoder that begins wait for the one before. later: one of the same replay comes before it.
func (f *fence) wait(b *objc.Batch, encoder objc.Ref, later bool) {
	if f != nil && (later || f.updated) {
		b.SendTo(objc.WaitForFence, encoder, uintptr(f.id))
	}
}

// update has the next encoder wait for this one, which ends.
func (f *fence) update(b *objc.Batch, encoder objc.Ref) {
	if f != nil {
		b.SendTo(objc.UpdateFence, encoder, uintptr(f.id))
	}
}

// committed notes that an encoder with the fence was committed.
func (f *fence) committed() {
	if f != nil {
		f.updated = true
	}
}

func (f *fence) close() {
	if f != nil {
		objc.Release(f.id)
	}
}

// tracking is the part of a buffer's MTLResourceOptions that says whether Metal tracks its hazards.
func (o *Options) tracking() uint64 {
	if o.Fences {
		return objc.ResourceHazardTrackingModeUntracked
	}
	return 0
}
