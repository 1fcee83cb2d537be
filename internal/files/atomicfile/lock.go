package atomicfile

import (
	"os"
	"time"
)

// locking is what an attempt to lock a file gave.
type locking int

const (
	held    locking = iota // by us, until the file is closed or we end
	taken                  // by a process that lives
	unknown                // this file system has no locks
)

// old reports whether a file that cannot be locked has not been written to for
// so long that its writer must have ended.
func old(st os.FileInfo) bool { return time.Since(st.ModTime()) > 24*time.Hour }
