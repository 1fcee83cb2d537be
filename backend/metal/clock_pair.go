//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/mlxc/mlxc/internal/objc"
)

// ClockPair is a reading of the host's clock and the GPU's at the same time. The GPU's clock has its own
// zero and rate; two pairs, one before and one after, convert its ticks to the host's time ([ClockPair.At]).
type ClockPair struct {
	Host time.Time
	GPU  uint64 // in ticks of the GPU, the unit of its timestamp counters
	// Within is the max time between the two readings.
	Within time.Duration
}

// ClockPair reads both clocks by sampleTimestamps:gpuTimestamp:. The host's time is Go's, not the one that
// Metal returns, whose unit is not documented.
func (d *Device) ClockPair() (best ClockPair) {
	ticks := new([2]uint64)
	var pin runtime.Pinner
	pin.Pin(ticks)
	defer pin.Unpin()
	objc.Pool(func() {
		for range 4 { // a thread may be interrupted between the readings: the closest pair is kept
			before := time.Now()
			objc.SampleTimestamps.Send(d.id, uintptr(unsafe.Pointer(&ticks[0])), uintptr(unsafe.Pointer(&ticks[1])))
			within := time.Since(before) / 2
			if best.Within == 0 || within < best.Within {
				best = ClockPair{before.Add(within), ticks[1], max(within, 1)}
			}
			if within < 10*time.Microsecond {
				break
			}
		}
	})
	return best
}

// At converts a tick of the GPU's clock to the host's time, linearly between the pairs p and later.
func (p ClockPair) At(later ClockPair, ticks uint64) time.Time {
	span := float64(later.GPU) - float64(p.GPU)
	if span <= 0 {
		return p.Host
	}
	share := (float64(ticks) - float64(p.GPU)) / span
	return p.Host.Add(time.Duration(share * float64(later.Host.Sub(p.Host))))
}

// TicksPerSecond is the rate of the GPU's clock between the pairs p and later; 0 if it did not advance.
func (p ClockPair) TicksPerSecond(later ClockPair) float64 {
	passed := later.Host.Sub(p.Host).Seconds()
	if passed <= 0 || later.GPU <= p.GPU {
		return 0
	}
	return float64(later.GPU-p.GPU) / passed
}
