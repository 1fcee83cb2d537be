//go:build unix

package softmetal

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// gone reports whether a process has ended; one that nobody has waited for yet (a zombie) has.
func gone(p *os.Process) bool {
	if p.Signal(syscall.Signal(0)) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
