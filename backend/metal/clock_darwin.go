package metal

import (
	"time"

	"github.com/ebitengine/purego"
)

// uptime returns the clock of mach_absolute_time in nanoseconds, by which command buffers tell their times.
// It does not advance while the machine sleeps.
var uptime = func() func() uint64 {
	const clockUptimeRaw = 8
	var now func(clock uint32) uint64
	purego.RegisterLibFunc(&now, purego.RTLD_DEFAULT, "clock_gettime_nsec_np")
	return func() uint64 { return now(clockUptimeRaw) }
}()

// clock converts times of command buffers to the host's. zero is the time at which uptime was 0.
type clock struct{ zero time.Time }

func newClock() clock { return clock{time.Now().Add(-time.Duration(uptime()))} }
