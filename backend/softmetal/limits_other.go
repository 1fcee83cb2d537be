//go:build unix && !linux

package softmetal

import (
	"os"
	"time"
)

// limits has no effect here: this system does not let another process set them.
type limits struct{ pid int }

func (*limits) begin(bool) error                       { return nil }
func (*limits) set(*sharedMemory, time.Duration) error { return nil }

// becauseOf has nothing to explain: no limits are set here.
func becauseOf(*os.ProcessState, time.Duration) string { return "" }

// threads returns false: what the threads of a process do is not known here.
func threads(int) (int64, bool) { return 0, false }
