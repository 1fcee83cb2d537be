package metal

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock converts times of the GPU to the host's. What stands in for Metal tells them by the clock
// that the system calls monotonic.
type clock struct{ zero time.Time }

func newClock() clock {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return clock{}
	}
	return clock{time.Now().Add(-time.Duration(t.Nano()))}
}
