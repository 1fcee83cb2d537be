//go:build !unix

package reduce

import "os/exec"

// alone ends a command by itself here: what it has started goes on.
func alone(cmd *exec.Cmd) { cmd.Cancel = func() error { return cmd.Process.Kill() } }
