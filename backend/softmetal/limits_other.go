//go:build unix && !linux

package softmetal

import (
	"os"
	"syscall"
	"time"
)

// namespaces are how the executor is started.
func namespaces(bool) *syscall.SysProcAttr { return nil }

// limits are what an executor may take: no other process can set them here.
type limits struct{ pid int }

func (*limits) begin(bool) error                       { return nil }
func (*limits) set(*sharedMemory, time.Duration) error { return nil }

// becauseOf explains a signal that a limit or the cage has sent.
func becauseOf(*os.ProcessState, time.Duration) string { return "" }

// threads says how much the threads of a process have run, and whether all of them sleep: nobody knows here.
func threads(int) (int64, bool) { return 0, false }
