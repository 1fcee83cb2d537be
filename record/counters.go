package record

import (
	"sync/atomic"
	"time"
)

// Counters count what encoders did since they were made or reset.
type Counters struct {
	Syncs            int64         // times that the host waited for the device
	Dispatches       int64         // recorded or executed
	CommandBuffers   int64         // that were begun
	Barriers         int64         // of the caller and automatic
	AutoBarriers     int64         // placed because of a conflict
	ElidedBarriers   int64         // commands that needed no barrier before them
	BarrierTime      time.Duration // spent on finding and placing barriers, if TimeBarriers is set
	FailedBuffers    int64         // command buffers that were refused or failed
	DiscardedBuffers int64         // command buffers abandoned without commit
}

type counter int

const (
	syncs counter = iota
	dispatches
	commandBuffers
	barriers
	autoBarriers
	elidedBarriers
	barrierTime
	failedBuffers
	discardedBuffers
	counterCount
)

type counters [counterCount]atomic.Int64

// process counts for all encoders together.
var process counters

func (c *counters) add(k counter, n int64) {
	c[k].Add(n)
	process[k].Add(n)
}

func (c *counters) snapshot() Counters {
	return Counters{
		Syncs: c[syncs].Load(), Dispatches: c[dispatches].Load(), CommandBuffers: c[commandBuffers].Load(),
		Barriers: c[barriers].Load(), AutoBarriers: c[autoBarriers].Load(), ElidedBarriers: c[elidedBarriers].Load(),
		BarrierTime: time.Duration(c[barrierTime].Load()), FailedBuffers: c[failedBuffers].Load(), DiscardedBuffers: c[discardedBuffers].Load(),
	}
}

func (c *counters) reset() {
	for i := range c {
		c[i].Store(0)
	}
}

// Counters returns the encoder's counters. It may be called on any goroutine.
func (e *Encoder) Counters() Counters { return e.counters.snapshot() }

// ResetCounters sets the encoder's counters to zero.
func (e *Encoder) ResetCounters() { e.counters.reset() }

// ProcessCounters returns the sums over all encoders of the process, closed ones included.
// It may be called on any goroutine.
func ProcessCounters() Counters { return process.snapshot() }

// ResetProcessCounters sets the counters of the process to zero. The counters of encoders
// do not change.
func ResetProcessCounters() { process.reset() }
