package mlxg

import (
	"os"
	"syscall"
)

// identity returns what else tells one state of a file from another: the time of
// the last change of anything about it, which nobody can set, and which file it is.
func identity(info os.FileInfo) (ctime int64, device, inode uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano(), uint64(st.Dev), st.Ino
	}
	return 0, 0, 0
}
