package softmetal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// code returns how a request to load a kernel describes its code, and a sealed memfd with the code, which cannot be
// changed any more.
func code(object []byte) (_ []byte, _ *os.File, err error) {
	m, err := newImage(object, uint64(os.Getpagesize()))
	if err != nil {
		return nil, nil, err
	}
	fd, err := unix.MemfdCreate("mlxc-kernel", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "kernel")
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := f.Truncate(int64(m.size)); err != nil {
		return nil, nil, err
	}
	for _, s := range m.segments {
		if _, err := f.WriteAt(s.data, int64(s.at)); err != nil {
			return nil, nil, err
		}
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return m.request(nil), f, nil
}

// socketpair returns two connected sockets that are closed on exec.
func socketpair() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// drop closes a file whose descriptor was sent.
func drop(f *os.File) error { return f.Close() }
