package cage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// libraries are the folders of shared libraries and of the loader, which is executed.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}

// readable are what the loader and the C library read besides.
var readable = []string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/dev/urandom", "/dev/zero"}

// available finds the best kind that is available, once.
var available = sync.OnceValues(func() (Kind, error) {
	var missing []error
	for _, k := range []Kind{Landlock, Namespaces} {
		err := tried(k)
		if err == nil {
			return k, nil
		}
		missing = append(missing, err)
	}
	return None, errors.Join(missing...)
})

// tried returns nil if a kind is available, or the reason why not.
func tried(k Kind) error {
	if k == Namespaces {
		return namespacesWork()
	}
	return onThread(func() error { return confine(k, Job{Path: os.DevNull, Folder: os.DevNull}) })
}

// onThread calls do on a thread that ends afterwards, and with it the restrictions that do has set on it.
func onThread(do func() error) error {
	done := make(chan error, 1)
	own := func() {
		runtime.LockOSThread() // and never unlocks, so the thread ends with this goroutine
		done <- do()
	}
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			own()
			return
		}
		// The first thread of a process cannot end: it is held here while another thread is taken.
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			own()
		}()
		<-taken
		runtime.UnlockOSThread()
	}()
	return <-done
}

// confine sets a cage on this thread and on all processes that it starts.
func confine(k Kind, j Job) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("the kernel has no PR_SET_NO_NEW_PRIVS: %w", err)
	}
	switch k {
	case Landlock:
		if err := restrictFiles(j); err != nil {
			return err
		}
		return restrictCalls(true)
	case Namespaces:
		// Their network namespace is empty, so sockets lead nowhere even if there is no filter.
		_ = restrictCalls(false)
	}
	return nil
}

// start runs a job on a thread of its own, on which the cage is set. The thread lives until the program has ended,
// since the program is killed when the thread that started it ends.
func start(ctx context.Context, kind Kind, j Job, out, messages *limited) error {
	// Go checks once whether the kernel has pidfds, and must not do so under the filter, which denies them.
	_, _ = os.FindProcess(os.Getpid())
	return onThread(func() error { return run(ctx, kind, j, out, messages) })
}

func run(ctx context.Context, kind Kind, j Job, out, messages *limited) error {
	cmd := command(ctx, j, out, messages)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if kind == Namespaces {
		enclose(cmd, j)
	}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	if err := confine(kind, j); err != nil {
		return fmt.Errorf("%s is not started: %w", j.Path, err)
	}
	// A process that asks to be traced stops before the first instruction of its program: then its limits are set,
	// and it is detached.
	cmd.SysProcAttr.Ptrace = true
	stops := true
	err := cmd.Start()
	// Where tracing is not allowed, or an emulator has none, the limits come a little later.
	if (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS)) && cmd.Process == nil {
		again := command(ctx, j, out, messages)
		again.Path, again.Args, again.Env, again.Err = cmd.Path, cmd.Args, cmd.Env, nil
		again.SysProcAttr = cmd.SysProcAttr
		again.SysProcAttr.Ptrace, stops = false, false
		cmd = again
		cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	pid := cmd.Process.Pid
	if stops {
		waitStopped(pid)
	}
	err = limit(pid, j.Limits)
	if stops {
		_ = unix.PtraceDetach(pid) // it fails if the process was killed meanwhile
	}
	// Until it is waited for, its number is not given to another process, so only what it has started is killed.
	for {
		if e := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); e != unix.EINTR {
			break
		}
	}
	signalGroup(pid)
	return errors.Join(err, cmd.Wait())
}

// waitStopped waits until a process has stopped or ended, but leaves it to be waited for.
func waitStopped(pid int) {
	for {
		if e := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil); e != unix.EINTR {
			return
		}
	}
}

// signalGroup kills a process group, from a thread that has no filter.
func signalGroup(pid int) {
	done := make(chan struct{})
	go func() {
		_ = unix.Kill(-pid, unix.SIGKILL) // mostly there is none left
		close(done)
	}()
	<-done
}

// limit sets the resource limits of a process. If that fails, it kills the process.
func limit(pid int, l Limits) error {
	cpu := uint64(max(1, l.CPU.Seconds()))
	for _, r := range []struct {
		what        int
		least, most uint64
	}{
		{unix.RLIMIT_AS, uint64(l.Memory), uint64(l.Memory)}, {unix.RLIMIT_CPU, cpu, cpu + 1},
		{unix.RLIMIT_FSIZE, uint64(l.File), uint64(l.File)}, {unix.RLIMIT_CORE, 0, 0},
	} {
		err := unix.Prlimit(pid, r.what, &unix.Rlimit{Cur: r.least, Max: r.most}, nil)
		if err == nil || errors.Is(err, unix.ESRCH) {
			continue
		}
		// The limit may be lower already.
		var old unix.Rlimit
		if e := unix.Prlimit(pid, r.what, nil, &old); e == nil && old.Cur <= r.least {
			continue
		}
		signalGroup(pid)
		return fmt.Errorf("limits cannot be set: %w", err)
	}
	return nil
}

// overLimit returns an error that names the limit that was exceeded, or nil if none was.
func overLimit(err error, messages string, l Limits) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	is := func(s syscall.Signal) bool {
		return status.Signaled() && status.Signal() == s || status.ExitStatus() == 128+int(s)
	}
	switch {
	case is(syscall.SIGXCPU), is(syscall.SIGKILL) && exit.SystemTime()+exit.UserTime() >= l.CPU:
		return fmt.Errorf("%w: it took more than %v of a processor", ErrLimit, l.CPU)
	case is(syscall.SIGXFSZ), strings.Contains(messages, "File too large"):
		return fmt.Errorf("%w: it wrote a file of more than %d bytes", ErrLimit, l.File)
	case strings.Contains(messages, "out of memory"), strings.Contains(messages, "bad_alloc"), strings.Contains(messages, "Cannot allocate memory"), strings.Contains(messages, "OutOfMemory"):
		return fmt.Errorf("%w: it wanted more than %d MiB of memory", ErrLimit, l.Memory>>20)
	}
	return nil
}
