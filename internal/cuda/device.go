//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// out calls a driver function that writes up to 64 bits to an address p, and returns what it wrote there.
func out(name string, f uintptr, args func(p uintptr) []uintptr) (uint64, error) {
	p := new(uint64)
	var pin runtime.Pinner
	pin.Pin(p)
	defer pin.Unpin()
	err := call(name, f, args(uintptr(unsafe.Pointer(p)))...)
	return *p, err
}

// Attribute is a CUdevice_attribute.
type Attribute int32

// The device attributes that callers query.
const (
	MaxThreadsPerBlock  Attribute = 1
	MaxGridX            Attribute = 5
	MaxGridY            Attribute = 6
	MaxGridZ            Attribute = 7
	SharedPerBlock      Attribute = 8
	Multiprocessors     Attribute = 16
	ComputeMajor        Attribute = 75
	ComputeMinor        Attribute = 76
	SharedPerBlockOptin Attribute = 97
)

// Description describes one GPU of the machine. Memory is in bytes.
type Description struct {
	Ordinal         int
	Name            string
	Major, Minor    int // of its compute capability
	Memory          int64
	Multiprocessors int
}

// List returns the GPUs of the machine.
func List() ([]Description, error) {
	if err := Load(); err != nil {
		return nil, err
	}
	n, err := out("cuDeviceGetCount", functions.deviceCount, func(p uintptr) []uintptr { return []uintptr{p} })
	if err != nil {
		return nil, err
	}
	all := make([]Description, int32(n))
	for i := range all {
		d, err := handle(i)
		if err != nil {
			return nil, err
		}
		if all[i], err = describe(d, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func handle(ordinal int) (int32, error) {
	n, err := out("cuDeviceGet", functions.deviceGet, func(p uintptr) []uintptr { return []uintptr{p, uintptr(ordinal)} })
	return int32(n), err
}

func attribute(device int32, a Attribute) (int, error) {
	n, err := out("cuDeviceGetAttribute", functions.deviceAttribute, func(p uintptr) []uintptr { return []uintptr{p, uintptr(a), uintptr(device)} })
	return int(int32(n)), err
}

func describe(device int32, ordinal int) (x Description, err error) {
	x.Ordinal = ordinal
	name := make([]byte, 256)
	var pin runtime.Pinner
	pin.Pin(&name[0])
	defer pin.Unpin()
	if err := call("cuDeviceGetName", functions.deviceName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(device)); err != nil {
		return x, err
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	x.Name = string(name)
	n, err := out("cuDeviceTotalMem", functions.deviceMemory, func(p uintptr) []uintptr { return []uintptr{p, uintptr(device)} })
	if err != nil {
		return x, err
	}
	x.Memory = int64(n)
	for a, to := range map[Attribute]*int{ComputeMajor: &x.Major, ComputeMinor: &x.Minor, Multiprocessors: &x.Multiprocessors} {
		if *to, err = attribute(device, a); err != nil {
			return x, err
		}
	}
	return x, nil
}

// Device is a GPU with its primary context.
type Device struct {
	Description
	id      int32
	context Context
}

// Open retains the primary context of a GPU. The caller closes it.
func Open(ordinal int) (*Device, error) {
	if err := Load(); err != nil {
		return nil, err
	}
	id, err := handle(ordinal)
	if err != nil {
		return nil, fmt.Errorf("GPU %d: %w", ordinal, err)
	}
	d := &Device{id: id}
	if d.Description, err = describe(id, ordinal); err != nil {
		return nil, err
	}
	n, err := out("cuDevicePrimaryCtxRetain", functions.contextRetain, func(p uintptr) []uintptr { return []uintptr{p, uintptr(id)} })
	d.context = Context(n)
	return d, err
}

// Close releases the context.
func (d *Device) Close() error {
	return call("cuDevicePrimaryCtxRelease", functions.contextRelease, uintptr(d.id))
}

// Attribute returns a device attribute (cuDeviceGetAttribute).
func (d *Device) Attribute(a Attribute) (int, error) { return attribute(d.id, a) }

// Do calls f on a thread on which the device's context is current, as [Alloc], [NewStream] and others need it.
func (d *Device) Do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := call("cuCtxSetCurrent", functions.contextSet, uintptr(d.context)); err != nil {
		return err
	}
	return f()
}
