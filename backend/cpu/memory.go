package cpu

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// ledger counts the memory that a device has taken, for buffers and for the scratch of kernels, and
// enforces its limit.
type ledger struct {
	limit int64 // in bytes
	used  atomic.Int64
}

// MachineMemory returns the default memory limit of a device in bytes: the machine's memory, or less if the
// process's control group sets a lower limit; 0 if it is not known.
func MachineMemory() int64 { return max(0, machineMemory()) }

// machineMemory is read once: to find the limit of a control group takes as long as to open a device.
var machineMemory = sync.OnceValue(physicalMemory)

// newLedger returns a ledger of limit bytes. If that is 0 or less, the limit is the
// machine's memory.
func newLedger(limit int64) *ledger {
	if limit <= 0 {
		limit = machineMemory()
	}
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return &ledger{limit: limit}
}

// block is memory, and what is needed to give it back.
type block struct {
	data   []byte // at least as many bytes as were asked for, aligned to bufferAlign
	mapped []byte // the mapping that holds data, if the memory came from the system
	ledger *ledger
	size   int64
}

// fromSystem is the size in bytes from which on memory comes from the system instead of the Go runtime, which
// ends the process when memory runs out.
const fromSystem = 1 << 16

// take allocates size zero bytes, or returns an error if that exceeds the limit or the system refuses.
func (l *ledger) take(size int64) (*block, error) {
	if size < 0 {
		return nil, fmt.Errorf("cpu: %d bytes of memory make no sense", size)
	}
	if used := l.used.Add(size); used > l.limit || used < 0 {
		l.used.Add(-size)
		return nil, fmt.Errorf("cpu: cannot allocate %d bytes beside %d in use: the device may take %d (--memory sets how much)", size, used-size, l.limit)
	}
	b := &block{ledger: l, size: size}
	if size < fromSystem {
		b.data = aligned(make([]byte, size+bufferAlign), size)
		return b, nil
	}
	data, err := mapMemory(size)
	if err != nil {
		l.used.Add(-size)
		return nil, fmt.Errorf("cpu: the system does not give %d bytes beside %d in use: %w", size, l.used.Load(), err)
	}
	b.data, b.mapped = data[:size:size], data
	return b, nil
}

// free gives the memory back. It must not be used any more.
func (b *block) free() error {
	if b == nil || b.ledger == nil {
		return nil
	}
	b.ledger.used.Add(-b.size)
	b.ledger, b.data = nil, nil
	if b.mapped == nil {
		return nil
	}
	data := b.mapped
	b.mapped = nil
	return unmapMemory(data)
}
