//go:build linux

package fakemetal

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/backend/softmetal"
)

// remote is memory that another process maps too. Software Metal has memory of its own: buffers are copied there before a dispatch
// and back behind it.
type remote struct {
	memory []byte
	used   int
	lies   map[uint64][2]int // buffers: where they lie in memory, and their size
}

// allocate makes a buffer. The first word of memory is the address at which the other process has mapped it.
func (r *remote) allocate(k *kernels, size int64, w *writer) error {
	if r.used+int(size) > len(r.memory) {
		return unix.ENOMEM
	}
	if err := k.allocate(size, &writer{}); err != nil {
		return err
	}
	r.lies[k.next] = [2]int{r.used, int(size)}
	w.u64(k.next)
	w.u64(binary.LittleEndian.Uint64(r.memory) + uint64(r.used))
	r.used += (int(size) + 255) &^ 255
	return nil
}

func (r *remote) copies(k *kernels, back bool) {
	for handle, at := range r.lies {
		if b := k.buffers[handle]; b != nil {
			here, there := b.Bytes()[:at[1]], r.memory[at[0]:at[0]+at[1]]
			if back {
				here, there = there, here
			}
			copy(here, there)
		}
	}
}

// ServeProcess starts a program of another process with a device of the stand-in, whose library the program loads itself: its file 3 is
// the socket for fakemetal_connect, its file 4 the memory of buffers, memoryBytes long, which it maps and whose first word
// becomes the address. ServeProcess returns when the program has ended, with what it wrote.
func ServeProcess(t testing.TB, program *exec.Cmd, memoryBytes int) (string, error) {
	t.Helper()
	fd, err := unix.MemfdCreate("fakemetal", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	shared := os.NewFile(uintptr(fd), "memory")
	defer shared.Close()
	require.NoError(t, shared.Truncate(int64(memoryBytes)))
	memory, err := unix.Mmap(fd, 0, memoryBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(memory)) }()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	theirs := os.NewFile(uintptr(ends[1]), "socket")
	defer theirs.Close()
	d, err := SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := &Metal{device: d, served: make(chan struct{}), remote: &remote{memory: memory, used: 256, lies: map[uint64][2]int{}}}
	m.kernels, err = newKernels(ctx, d)
	require.NoError(t, err)
	defer m.kernels.close()
	program.ExtraFiles = []*os.File{theirs, shared}
	go m.serve(ctx, os.NewFile(uintptr(ends[0]), "fakemetal"))
	out, err := program.CombinedOutput()
	require.NoError(t, theirs.Close())
	<-m.served
	return string(out), err
}
