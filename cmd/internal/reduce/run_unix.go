//go:build unix

package reduce

import (
	"os/exec"
	"syscall"
)

// alone gives a command a group of processes of its own, all of which end with it where it is ended. Ctrl-C reaches this
// program alone then, which ends the command.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
