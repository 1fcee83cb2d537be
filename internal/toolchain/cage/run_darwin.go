package cage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// sandboxExec applies a profile of Apple's sandbox to a program. The profile was written after those of the system
// (/System/Library/Sandbox/Profiles), and is untested.
const sandboxExec = "/usr/bin/sandbox-exec"

func available() (Kind, error) {
	if err := tried(Sandbox); err != nil {
		return None, err
	}
	return Sandbox, nil
}

func tried(k Kind) error {
	if k != Sandbox {
		return fmt.Errorf("macOS has no %v", k)
	}
	if _, err := os.Stat(sandboxExec); err != nil {
		return fmt.Errorf("macOS keeps programs in by sandbox-exec: %w", err)
	}
	return nil
}

func start(ctx context.Context, kind Kind, j Job, out, messages *limited) error {
	path, args := j.Path, j.Args
	if kind == Sandbox {
		path, args = sandboxExec, append([]string{"-p", profile(j), j.Path}, j.Args...)
	}
	// A shell sets the resource limits, since Go cannot between fork and exec.
	script := fmt.Sprintf(`ulimit -c 0; ulimit -t %d; ulimit -f %d; exec "$@"`, max(1, int(j.Limits.CPU.Seconds())), j.Limits.File/512)
	cmd := command(ctx, j, out, messages)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", script, "sh", path}, args...)
	cmd.Err = nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.Run()
}

// profile returns the sandbox profile of a job. It denies everything that no line allows.
func profile(j Job) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(deny default)\n(import \"system.sb\")\n(allow process-fork)\n(allow sysctl-read)\n(allow file-read-metadata)\n")
	allow := func(what string, paths ...string) {
		for _, p := range paths {
			if real, err := filepath.EvalSymlinks(p); err == nil {
				p = real
			}
			kind := "literal"
			if i, err := os.Stat(p); err == nil && i.IsDir() {
				kind = "subpath"
			}
			fmt.Fprintf(&b, "(allow %s (%s %s))\n", what, kind, strconv.Quote(p))
		}
	}
	allow("file-read*", "/usr/lib", "/System/Library", "/Library/Developer", "/dev/null", "/dev/urandom")
	allow("file-read*", present(j.Reads)...)
	allow("file-read* process-exec", append(present(j.Executes), j.Path, sandboxExec)...)
	allow("file-read* file-write*", j.Folder)
	return b.String()
}

// overLimit returns an error that names the limit that was exceeded, or nil if none was.
func overLimit(err error, _ string, l Limits) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil
	}
	switch status, _ := exit.Sys().(syscall.WaitStatus); {
	case status.Signaled() && status.Signal() == syscall.SIGXCPU:
		return fmt.Errorf("%w: it took more than %v of a processor", ErrLimit, l.CPU)
	case status.Signaled() && status.Signal() == syscall.SIGXFSZ:
		return fmt.Errorf("%w: it wrote a file of more than %d bytes", ErrLimit, l.File)
	}
	return nil
}
