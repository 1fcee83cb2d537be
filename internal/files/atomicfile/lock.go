package atomicfile

import (
	"os"
	"time"
)

// locking is the result of an attempt to lock a file.
type locking int

const (
	held    locking = iota // by this process, until it closes the file or ends
	taken                  // by another process that is alive
	unknown                // the file system has no locks
)

// old reports whether a file that cannot be locked has not been written to for so long
// that its writer must have ended.
func old(st os.FileInfo) bool { return time.Since(st.ModTime()) > 24*time.Hour }
