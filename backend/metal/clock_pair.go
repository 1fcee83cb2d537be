//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/mlxc/mlxc/internal/objc"
)

// ClockPair is one moment by two clocks. Two pairs, before and after something, say when the GPU did it
// ([ClockPair.At]): its clock has a beginning and a rate of its own.
type ClockPair struct {
	Host time.Time
	GPU  uint64 // in ticks of the GPU, as its counters have them
	// Within is how far apart the two may be at most.
	Within time.Duration
}

// ClockPair reads the clocks of host and GPU together. What Metal says of the host's is left aside: its
// unit is not documented.
func (d *Device) ClockPair() (best ClockPair) {
	ticks := new([2]uint64)
	var pin runtime.Pinner
	pin.Pin(ticks)
	defer pin.Unpin()
	objc.Pool(func() {
		for range 4 { // one that was interrupted in between is no good
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

// At is the host's time of a tick of the GPU, between two moments or near them.
func (p ClockPair) At(later ClockPair, ticks uint64) time.Time {
	span := float64(later.GPU) - float64(p.GPU)
	if span <= 0 {
		return p.Host
	}
	share := (float64(ticks) - float64(p.GPU)) / span
	return p.Host.Add(time.Duration(share * float64(later.Host.Sub(p.Host))))
}

// TicksPerSecond is the rate of the GPU's clock between two moments; 0 if it stood.
func (p ClockPair) TicksPerSecond(later ClockPair) float64 {
	passed := later.Host.Sub(p.Host).Seconds()
	if passed <= 0 || later.GPU <= p.GPU {
		return 0
	}
	return float64(later.GPU-p.GPU) / passed
}
