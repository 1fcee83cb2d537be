//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"runtime"
	"unsafe"
)

// Alloc returns n bytes of the device's memory, at a multiple of 256.
func Alloc(n int64) (Address, error) {
	a, err := out("cuMemAlloc", functions.memAlloc, func(p uintptr) []uintptr { return []uintptr{p, uintptr(n)} })
	return Address(a), err
}

// Memory is how many bytes of the device's memory nobody has, no other process either, and all that it has.
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

// AllocHost returns n bytes of the host's memory that the device copies from and to by itself.
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

// CopyToDevice copies src, memory of [AllocHost] that stays as it is until then, in the order of a stream.
func CopyToDevice(s Stream, dst Address, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return call("cuMemcpyHtoDAsync", functions.toDevice, uintptr(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), uintptr(s))
}

// CopyToHost copies to dst, memory of [AllocHost].
func CopyToHost(s Stream, dst []byte, src Address) error {
	if len(dst) == 0 {
		return nil
	}
	return call("cuMemcpyDtoHAsync", functions.toHost, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)), uintptr(s))
}

// CopyWithin copies n bytes of the device's memory.
func CopyWithin(s Stream, dst, src Address, n int64) error {
	if n == 0 {
		return nil
	}
	return call("cuMemcpyDtoDAsync", functions.within, uintptr(dst), uintptr(src), uintptr(n), uintptr(s))
}
