//go:build unix && !linux

package softmetal

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// code returns how a request to load a kernel names its code, by the path of a shared object, and that temporary
// file.
func code(object []byte) (_ []byte, _ *os.File, err error) {
	f, err := os.CreateTemp("", "mlxc-kernel-")
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.Write(object); err != nil {
		return nil, nil, errors.Join(err, drop(f))
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(f.Name()))), f.Name()...), f, nil
}

// drop closes and removes a file whose path was sent.
func drop(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// socketpair returns two connected sockets that are closed on exec.
func socketpair() (pair [2]int, err error) {
	if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	return pair, err
}
