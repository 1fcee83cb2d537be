//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"runtime"
	"unsafe"
)

// Alloc allocates n bytes of device memory, aligned to 256 bytes.
func Alloc(n int64) (Address, error) {
	a, err := out("cuMemAlloc", functions.memAlloc, func(p uintptr) []uintptr { return []uintptr{p, uintptr(n)} })
	return Address(a), err
}

// Memory returns how many bytes of the device's memory are free, with regard to all processes, and how many it has.
func Memory() (free, total int64, err error) {
	n := new([2]uint64)
	var pin runtime.Pinner
	pin.Pin(n)
	defer pin.Unpin()
	err = call("cuMemGetInfo", functions.memInfo, uintptr(unsafe.Pointer(&n[0])), uintptr(unsafe.Pointer(&n[1])))
	return int64(n[0]), int64(n[1]), err
}

// Free gives memory of [Alloc] back.
func Free(a Address) error { return call("cuMemFree", functions.memFree, uintptr(a)) }

// AllocHost allocates n bytes of pinned host memory, which the device accesses directly in asynchronous copies.
func AllocHost(n int) ([]byte, error) {
	a, err := out("cuMemAllocHost", functions.hostAlloc, func(p uintptr) []uintptr { return []uintptr{p, uintptr(n)} })
	if err != nil {
		return nil, err
	}
	if a == 0 {
		return nil, errors.New("cuMemAllocHost: the driver gives no memory, and no error")
	}
	p := uintptr(a)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n), nil
}

// FreeHost gives memory of [AllocHost] back.
func FreeHost(b []byte) error {
	return call("cuMemFreeHost", functions.hostFree, uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// CopyToDevice submits a copy to a stream. src is memory of [AllocHost] that must not change until the copy has run.
func CopyToDevice(s Stream, dst Address, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return call("cuMemcpyHtoDAsync", functions.toDevice, uintptr(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), uintptr(s))
}

// CopyToHost submits a copy to dst, which is memory of [AllocHost], to a stream.
func CopyToHost(s Stream, dst []byte, src Address) error {
	if len(dst) == 0 {
		return nil
	}
	return call("cuMemcpyDtoHAsync", functions.toHost, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)), uintptr(s))
}

// CopyWithin submits a copy of n bytes between two places of the device's memory to a stream.
func CopyWithin(s Stream, dst, src Address, n int64) error {
	if n == 0 {
		return nil
	}
	return call("cuMemcpyDtoDAsync", functions.within, uintptr(dst), uintptr(src), uintptr(n), uintptr(s))
}
