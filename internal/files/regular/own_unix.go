//go:build unix

package regular

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// withoutWaiting opens a pipe that nobody writes, and no terminal as this process's.
const withoutWaiting = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// ReadOwn is Read of a file that this user has written: one of this user's, by no link, which nobody else may
// write.
func ReadOwn(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := ownedAlone(info, path); err != nil {
		return nil, err
	}
	if st := info.Sys().(*syscall.Stat_t); info.Mode().IsRegular() && st.Nlink > 1 {
		return nil, fmt.Errorf("%s has other names: who has those may write it", path)
	}
	return read(f, info, path, most)
}

// OwnFolder has nobody but this user write a folder, or returns an error if it is another's. Its path may be a
// link. What others have put there before, [ReadOwn] does not read.
func OwnFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", path)
	}
	if ownedAlone(info, path) == nil {
		return nil
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ownedAlone(info, path), err)
	}
	if info, err = os.Stat(path); err != nil {
		return err
	}
	return ownedAlone(info, path)
}

// ownedAlone returns an error if a file or folder is another user's, or others may write it.
func ownedAlone(info os.FileInfo, path string) error {
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user %d, not to this one", path, st.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write %s", path)
	}
	return nil
}
