package metal

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock converts times of command buffers to the host's. The stand-in for Metal in tests tells them by
// CLOCK_MONOTONIC; zero is the time at which that was 0.
type clock struct{ zero time.Time }

func newClock() clock {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return clock{}
	}
	return clock{time.Now().Add(-time.Duration(t.Nano()))}
}
