package cpu

import (
	"fmt"
	"math"
	"sync/atomic"
)

// ledger counts what a device has taken of the memory that it may take: buffers,
// and the scratch of kernels.
type ledger struct {
	limit int64 // in bytes
	used  atomic.Int64
}

// MachineMemory is what a device may take if nothing else is said: what the machine has and
// its control group allows. 0 if that is not known.
func MachineMemory() int64 { return max(0, physicalMemory()) }

// newLedger returns a ledger of limit bytes. If that is 0 or less, the limit is the
// machine's memory.
func newLedger(limit int64) *ledger {
	if limit <= 0 {
		limit = physicalMemory()
	}
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return &ledger{limit: limit}
}

// block is memory, and what is needed to give it back.
type block struct {
	data   []byte // of at least the bytes asked for, aligned to bufferAlign
	mapped []byte // the mapping that data lies in, if the system gave one
	ledger *ledger
	size   int64
}

// fromSystem is the size from which on memory is asked of the system and not of the Go
// runtime, which would end the process if there is none.
const fromSystem = 1 << 16

// take takes size bytes of zeros, or says why not.
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
