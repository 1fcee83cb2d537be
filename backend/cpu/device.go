package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// Device is the CPU. The zero value is not usable; see [New].
type Device struct {
	mu   sync.Mutex // one replay at a time: all cores work on it
	pool *pool
	// ledger counts buffers that were allocated and not closed, and scratch.
	ledger *ledger
}

// MaxWorkers is the greatest number of workers.
const MaxWorkers = 1024

// New returns the CPU as a device of the given number of workers, at most
// [MaxWorkers]; 0 means one for each core that the process may use.
func New(workers int) *Device { return NewLimited(workers, 0) }

// NewLimited is New for a device that takes at most so many bytes of memory for
// buffers and for the scratch of kernels together; 0 means what the machine has, or the
// control group of the process allows.
func NewLimited(workers int, memory int64) *Device {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	l := newLedger(memory)
	return &Device{pool: newPool(min(workers, MaxWorkers), l), ledger: l}
}

// Close ends the device's workers.
func (d *Device) Close() error {
	d.pool.close()
	return nil
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "cpu" }

// Info implements [backend.Device].
func (d *Device) Info() backend.Info {
	return backend.Info{
		Description: fmt.Sprintf("%s/%s, pure Go%s", runtime.GOOS, runtime.GOARCH, acceleration()),
		Threads:     d.pool.workers, Memory: d.ledger.limit, PageSize: 1, Alignment: bufferAlign,
		MaxThreadgroup: 1024, ThreadgroupBytes: 32 << 10, ArgumentSlots: maxSlots,
	}
}

// acceleration names the assembly in use.
func acceleration() string {
	if a := simd.Active(); a != simd.Generic {
		return " and " + string(a) + " assembly"
	}
	return ""
}

// bufferAlign keeps every tensor on its own cache lines.
const bufferAlign = 64

// aligned is size bytes of raw that begin at a multiple of bufferAlign.
func aligned(raw []byte, size int64) []byte {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (bufferAlign - 1)
	return raw[skip : skip+int(size) : skip+int(size)]
}
