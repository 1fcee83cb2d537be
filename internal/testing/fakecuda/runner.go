//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/onedispatch"
	"github.com/mlxc/mlxc/ir"
)

// runner runs dispatches on software Metal.
type runner struct {
	mu sync.Mutex
	on *onedispatch.Runner
	// none is bound to arguments that have no memory, so that only kernels that touch them fail.
	none backend.Buffer
}

func newRunner(d *softmetal.Device) (r *runner, err error) {
	r = &runner{}
	if r.on, err = onedispatch.New(d); err == nil {
		r.none, err = d.Alloc(backend.BufferSpec{Size: page})
	}
	return r, err
}

func (r *runner) close() {
	r.on.Close()
	_ = r.none.Close()
}

// compile has a kernel compiled now, and not when it first runs.
func (r *runner) compile(c *code) error {
	return r.on.Compile(context.Background(), c.kernel, c.Input.Kernel)
}

// bound is a buffer, from a byte offset on, that a dispatch has at a slot.
type bound struct {
	slot uint8
	room backend.Buffer
	off  int64
}

// dispatch runs a kernel; grid and group are in threads, shared has the bytes of threadgroup memory by slot, values
// are constants. It returns software Metal's error, and the CUresult that a GPU would give for it.
func (r *runner) dispatch(c *code, grid, group [3]uint32, memory []bound, shared []ir.ThreadgroupMemory, values []ir.Binding) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &ir.Dispatch{GridKind: ir.Threads, Threadgroup: group, ThreadgroupMemory: shared, Bindings: slices.Clone(values)}
	for i := range grid {
		n.Grid[i] = ir.Ext(int64(grid[i]))
	}
	rooms := make([]onedispatch.Bound, len(memory))
	for i, b := range memory {
		rooms[i] = onedispatch.Bound{Slot: b.slot, Room: b.room, Offset: b.off, Size: b.room.Size() - b.off}
	}
	err := r.on.Run(context.Background(), c.kernel, n, rooms)
	switch {
	case err == nil:
		return success, nil
	case strings.Contains(err.Error(), "no multiple of"):
		return misaligned, err
	case strings.Contains(err.Error(), "memory that is not its own"):
		return illegalAddress, err
	}
	return launchFailed, err
}
