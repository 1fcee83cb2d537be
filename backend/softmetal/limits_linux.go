package softmetal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limits are the resource limits of an executor. This process sets them, for they change while the executor runs.
type limits struct {
	pid   int
	plain bool
	base  int64 // bytes of memory that it has before it loads a kernel
	data  uint64
	cpu   uint64
}

// slack is how many bytes the executor may have besides buffers and threads, for its tables and its heap's rounding.
const slack = 64 << 20

// begin records how much memory an executor has that has just started. With plain, no limits are set.
func (l *limits) begin(plain bool) error {
	if l.plain = plain; plain {
		return nil
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.pid))
	if err != nil {
		return fmt.Errorf("its limits: %w", err)
	}
	_, rest, ok := bytes.Cut(status, []byte("VmData:"))
	if !ok {
		return errors.New("its limits: the system does not say what memory it has")
	}
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(rest[:bytes.IndexByte(rest, 'k')])), 10, 64)
	l.base = kib << 10
	return err
}

// set limits the executor's memory to what the device has left, and its processor time to work more than it has used.
func (l *limits) set(m *sharedMemory, work time.Duration) error {
	if l.plain {
		return nil
	}
	if m.limit > 0 {
		m.mu.Lock()
		left := max(0, m.limit-m.taken)
		m.mu.Unlock()
		if data := uint64(l.base + left + slack); data != l.data {
			if err := unix.Prlimit(l.pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: data, Max: unix.RLIM_INFINITY}, nil); err != nil {
				return l.unless(err)
			}
			l.data = data
		}
	}
	if work > 0 {
		var used unix.Timespec
		if err := unix.ClockGettime(int32(^l.pid<<3|2), &used); err != nil { // the clock of another process, see clock_getcpuclockid(3)
			return l.unless(err)
		}
		if cpu := uint64(used.Sec) + 1 + uint64((work+time.Second-1)/time.Second); cpu != l.cpu {
			if err := unix.Prlimit(l.pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: cpu, Max: unix.RLIM_INFINITY}, nil); err != nil {
				return l.unless(err)
			}
			l.cpu = cpu
		}
	}
	return nil
}

// unless returns err, or nil if err says that the executor has ended, which the next request will find.
func (l *limits) unless(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return fmt.Errorf("softmetal: the limits of the executor: %w", err)
}

// becauseOf explains a signal that a resource limit or the filter of system calls has sent.
func becauseOf(state *os.ProcessState, work time.Duration) string {
	s, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok || !s.Signaled():
	case s.Signal() == unix.SIGSYS:
		return " (a kernel has called the system, which it must not)"
	case s.Signal() == unix.SIGXCPU:
		return fmt.Sprintf(" (its kernels have taken more than %v of processor time: --max-work allows more)", work)
	}
	return ""
}

// threads returns the processor time of a process's threads in ticks, and whether all of them sleep or have ended.
func threads(pid int) (ran int64, asleep bool) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, false
	}
	for _, t := range tasks {
		stat, err := os.ReadFile(t)
		if err != nil {
			return 0, false // it has just ended
		}
		// The name of the thread, in parentheses, may contain anything.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 13 || f[0][0] != 'S' && f[0][0] != 'Z' && f[0][0] != 'X' {
			return 0, false
		}
		for _, ticks := range f[11:13] { // in user mode, in the system (proc(5))
			n, err := strconv.ParseInt(string(ticks), 10, 64)
			if err != nil {
				return 0, false
			}
			ran += n
		}
	}
	return ran, true
}
