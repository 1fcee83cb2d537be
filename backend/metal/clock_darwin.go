package metal

import (
	"time"

	"github.com/ebitengine/purego"
)

// uptime is nanoseconds of the clock that command buffers have their times by: that of
// mach_absolute_time, which stands while the machine sleeps.
var uptime = func() func() uint64 {
	const clockUptimeRaw = 8
	var now func(clock uint32) uint64
	purego.RegisterLibFunc(&now, purego.RTLD_DEFAULT, "clock_gettime_nsec_np")
	return func() uint64 { return now(clockUptimeRaw) }
}()

// clock converts times of the GPU to the host's.
type clock struct{ zero time.Time }

func newClock() clock { return clock{time.Now().Add(-time.Duration(uptime()))} }
