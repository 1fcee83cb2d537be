package mlxg

import (
	"os"
	"syscall"
)

// identity returns what tells states of a file apart in addition to its size and the time of
// its last write: the time of its last change of any kind, which programs cannot set, and
// which file it is.
func identity(info os.FileInfo) (ctime int64, device, inode uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano(), uint64(st.Dev), st.Ino
	}
	return 0, 0, 0
}
