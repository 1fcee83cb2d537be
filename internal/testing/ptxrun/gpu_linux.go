//go:build gpu && (amd64 || arm64)

package ptxrun

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/mlxc/mlxc/internal/cuda"
)

// deviceMemory is how much memory of a GPU programs have, in bytes.
const deviceMemory = 1 << 30

// With MLXC_PTXRUN=gpu programs run on the first GPU.
func init() {
	if os.Getenv("MLXC_PTXRUN") != "gpu" {
		return
	}
	d, err := openDevice()
	if err != nil {
		fmt.Fprintln(os.Stderr, "MLXC_PTXRUN=gpu:", err)
		os.Exit(1)
	}
	Elsewhere = d
}

func openDevice() (*Device, error) {
	if err := cuda.Load(); err != nil {
		return nil, err
	}
	gpu, err := cuda.Open(0)
	if err != nil {
		return nil, err
	}
	var memory cuda.Address
	var stream cuda.Stream
	if err := gpu.Do(func() (err error) {
		if memory, err = cuda.Alloc(deviceMemory); err != nil {
			return err
		}
		stream, err = cuda.NewStream()
		return err
	}); err != nil {
		return nil, err
	}
	return &Device{Base: uint64(memory), Run: func(text []byte, parts []Part, l Launch) error {
		return gpu.Do(func() error { return launchOn(stream, text, parts, l) })
	}}, nil
}

// launchOn runs a program, and waits for it.
func launchOn(s cuda.Stream, text []byte, parts []Part, l Launch) error {
	module, err := cuda.LoadModule(text)
	if err != nil {
		return err
	}
	defer module.Unload()
	_, name, _ := strings.Cut(string(text), ".entry ")
	name, _, _ = strings.Cut(name, "(")
	f, err := module.Function(strings.TrimSpace(name))
	if err != nil {
		return err
	}
	if err := f.SetAttribute(cuda.FunctionDynamicShared, l.Shared); err != nil {
		return err
	}
	// The driver takes copies from pinned memory, and parameters from outside of Go's heap.
	longest := 0
	for _, p := range parts {
		longest = max(longest, len(p.Bytes))
	}
	host, err := cuda.AllocHost(longest + 1)
	if err != nil {
		return err
	}
	defer cuda.FreeHost(host)
	for _, p := range parts {
		if len(p.Bytes) == 0 {
			continue
		}
		copy(host, p.Bytes)
		if err := cuda.CopyToDevice(s, cuda.Address(p.At), host[:len(p.Bytes)]); err != nil {
			return err
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
	}
	block, err := syscall.Mmap(-1, 0, max(4096, 16*len(l.Params)), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer syscall.Munmap(block)
	for i, v := range l.Params {
		binary.LittleEndian.PutUint64(block[8*i:], v)
		binary.LittleEndian.PutUint64(block[8*(len(l.Params)+i):], uint64(uintptr(unsafe.Pointer(&block[8*i]))))
	}
	launch := cuda.Launch{Function: f, Grid: l.Grid, Block: l.Block, Shared: uint32(l.Shared), Params: uintptr(unsafe.Pointer(&block[8*len(l.Params)]))}
	if err := launch.Start(s); err != nil {
		return err
	}
	if err := s.Synchronize(); err != nil {
		return err
	}
	for _, p := range parts {
		if len(p.Bytes) == 0 {
			continue
		}
		if err := cuda.CopyToHost(s, host[:len(p.Bytes)], cuda.Address(p.At)); err != nil {
			return err
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
		copy(p.Bytes, host)
	}
	return nil
}
