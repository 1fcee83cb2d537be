package cage

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock's access rights, by their purpose.
const (
	rightsToRead    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsToExecute = rightsToRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsToWrite   = rightsToRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// rightsOfFiles are the rights that a rule for a file, which is not a folder, may have.
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// The first version of Landlock had 13 rights, which are the lowest bits. Later versions have more.
const firstRights = 1<<13 - 1

// ruleset is the kernel's struct landlock_ruleset_attr: what Landlock denies unless a rule allows it.
type ruleset struct {
	files, network, scopes uint64
}

// rulesetOf returns the ruleset of everything that a version supports, and its size. fixed says that the kernel lets
// signals pass between threads of one process, which the first kernels with scopes did not: Go's threads send them.
func rulesetOf(version int, fixed bool) (r ruleset, bytes uintptr) {
	r.files, bytes = firstRights, 8
	if version >= 2 {
		r.files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		r.files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		r.network, bytes = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 16
	}
	if version >= 5 {
		r.files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		r.scopes, bytes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, 24
		if fixed {
			r.scopes |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	return r, bytes
}

// landlockVersion asks the kernel for its version of Landlock, and whether the bug with signals is fixed.
func landlockVersion() (version int, fixed bool, err error) {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0, false, e
	}
	const signals = 1 << 1 // the second erratum
	errata, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return int(v), e == 0 && errata&signals != 0, nil
}

// restrictFiles puts this thread, and all processes that it starts, into a Landlock domain.
func restrictFiles(j Job) error {
	version, fixed, err := landlockVersion()
	if err != nil {
		return fmt.Errorf("Landlock: %w", err)
	}
	set, bytes := rulesetOf(version, fixed)
	id, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), bytes, 0)
	if e != 0 {
		return fmt.Errorf("Landlock: %w", e)
	}
	fd := int(id)
	defer unix.Close(fd)
	for _, rule := range []struct {
		rights uint64
		paths  []string
	}{
		{rightsToExecute, libraries}, {rightsToRead, readable}, {rightsToRead, j.Reads},
		{rightsToExecute, append([]string{j.Path}, j.Executes...)}, {rightsToWrite, []string{j.Folder}},
		{unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE, []string{os.DevNull}},
	} {
		for _, p := range rule.paths {
			if err := allow(fd, rule.rights&set.files, p); err != nil {
				return fmt.Errorf("Landlock: %s: %w", p, err)
			}
		}
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); e != 0 {
		return fmt.Errorf("Landlock: %w", e)
	}
	return nil
}

// allow adds a rule for a path, if it exists. A link is followed, since a job means what it points to.
func allow(set int, rights uint64, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	} else if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	// The kernel's struct is packed: it has no padding between its two fields or behind them.
	var rule [12]byte
	*(*uint64)(unsafe.Pointer(&rule[0])) = rights
	*(*int32)(unsafe.Pointer(&rule[8])) = int32(fd)
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	runtime.KeepAlive(&rule)
	if e != 0 {
		return e
	}
	return nil
}
