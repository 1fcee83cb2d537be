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

// libraries are where systems have shared libraries, and the loader, which is executed.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}

// readable is what the loader and the C library read beside them.
var readable = []string{"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/dev/urandom", "/dev/zero"}

// available finds out once, on a thread that ends behind it.
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

// tried returns why a kind is not to be had.
func tried(k Kind) error {
	if k == Namespaces {
		return namespacesWork()
	}
	return onThread(func() error { return confine(k, Job{Path: os.DevNull, Folder: os.DevNull}) })
}

// onThread does something on a thread that ends behind it, with what it has put on itself.
func onThread(do func() error) error {
	done := make(chan error, 1)
	own := func() {
		runtime.LockOSThread() // and is never unlocked, so the thread is nobody else's any more
		done <- do()
	}
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			own()
			return
		}
		// The first thread of a process cannot end: while it is held here, another is taken.
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

// confine puts a cage on this thread and on all that it starts.
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
		// Those have no network but their own, so without a filter sockets lead nowhere either.
		_ = restrictCalls(false)
	}
	return nil
}

// start runs a job on a thread of its own, which dies with the program: a parent's death is that of the
// thread that has started it, and the cage is put on a thread.
func start(ctx context.Context, kind Kind, j Job, out, messages *limited) error {
	// Go asks once whether the kernel has handles of processes, in which the filter would answer for it.
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
	// A process that asks to be traced stops before the first instruction of its program: there it gets its
	// limits, and is let go.
	cmd.SysProcAttr.Ptrace = true
	stops := true
	err := cmd.Start()
	if errors.Is(err, unix.EPERM) && cmd.Process == nil { // the system lets nobody trace: so they come a little later
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
	// While it is not yet waited for, its number is nobody else's, and whatever it has started ends with it.
	for {
		if e := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); e != unix.EINTR {
			break
		}
	}
	signalGroup(pid)
	return errors.Join(err, cmd.Wait())
}

// waitStopped waits until a process has stopped, or ended, without taking notice of its end.
func waitStopped(pid int) {
	for {
		if e := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil); e != unix.EINTR {
			return
		}
	}
}

// signalGroup ends a group of processes, from a thread that has no filter.
func signalGroup(pid int) {
	done := make(chan struct{})
	go func() {
		_ = unix.Kill(-pid, unix.SIGKILL) // none is left, mostly
		close(done)
	}()
	<-done
}

// limit gives a process its limits. If it fails, the process is ended.
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
		// The user may have a lower one already.
		var old unix.Rlimit
		if e := unix.Prlimit(pid, r.what, nil, &old); e == nil && old.Cur <= r.least {
			continue
		}
		signalGroup(pid)
		return fmt.Errorf("limits cannot be set: %w", err)
	}
	return nil
}

// overLimit says of an error which limit it comes from; nil: from none.
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
