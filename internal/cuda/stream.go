//go:build linux && (amd64 || arm64)

package cuda

import (
	"math"
	"runtime"
	"time"
	"unsafe"
)

// NewStream creates a non-blocking stream: one that does not synchronize with the null stream.
func NewStream() (Stream, error) {
	const nonBlocking = 1
	s, err := out("cuStreamCreate", functions.streamCreate, func(p uintptr) []uintptr { return []uintptr{p, nonBlocking} })
	return Stream(s), err
}

// Destroy destroys a stream. The driver frees it when its pending work has ended.
func (s Stream) Destroy() error { return call("cuStreamDestroy", functions.streamDestroy, uintptr(s)) }

// Synchronize waits for all work of a stream.
func (s Stream) Synchronize() error {
	return call("cuStreamSynchronize", functions.streamSynchronize, uintptr(s))
}

// NewEvent creates an event. If times is set it records time stamps, which [Event.Since] needs. Who waits for it keeps a processor busy, if there are
// enough for all contexts of the process: an interrupt instead is heard some 200 µs late on a virtual machine, a tenth of a step of few tokens.
func NewEvent(times bool) (Event, error) {
	const disableTiming = 2
	flags := uintptr(0)
	if !times {
		flags = disableTiming
	}
	e, err := out("cuEventCreate", functions.eventCreate, func(p uintptr) []uintptr { return []uintptr{p, flags} })
	return Event(e), err
}

// Destroy destroys an event.
func (e Event) Destroy() error { return call("cuEventDestroy", functions.eventDestroy, uintptr(e)) }

// Record makes the event complete when all work that was submitted to the stream before has ended.
func (e Event) Record(s Stream) error {
	return call("cuEventRecord", functions.eventRecord, uintptr(e), uintptr(s))
}

// Synchronize blocks until the event has completed.
func (e Event) Synchronize() error {
	return call("cuEventSynchronize", functions.eventSynchronize, uintptr(e))
}

// Since returns the time from an earlier event to e, with a resolution of about half a microsecond.
func (e Event) Since(earlier Event) (time.Duration, error) {
	bits, err := out("cuEventElapsedTime", functions.eventElapsed, func(p uintptr) []uintptr { return []uintptr{p, uintptr(earlier), uintptr(e)} })
	return time.Duration(float64(math.Float32frombits(uint32(bits))) * 1e6), err
}

// LoadModule has the driver compile PTX for the current device, or take the result from its cache. An error contains
// the compiler's log.
func LoadModule(ptx []byte) (Module, error) {
	image := append(append(make([]byte, 0, len(ptx)+1), ptx...), 0)
	log := make([]byte, 4096)
	const errorLogBuffer, errorLogSize = 5, 6
	options := []uint32{errorLogBuffer, errorLogSize}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&image[0])
	pin.Pin(&log[0])
	pin.Pin(&options[0])
	pin.Pin(&values[0])
	m, err := out("cuModuleLoadDataEx", functions.moduleLoad, func(p uintptr) []uintptr {
		return []uintptr{p, uintptr(unsafe.Pointer(&image[0])), 2, uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0]))}
	})
	if e, ok := err.(*Error); ok && log[0] != 0 {
		n := 0
		for n < len(log) && log[n] != 0 {
			n++
		}
		e.Text += ": " + string(log[:n])
	}
	return Module(m), err
}

// Unload unloads a module.
func (m Module) Unload() error { return call("cuModuleUnload", functions.moduleUnload, uintptr(m)) }

// Function returns the kernel (.entry) of that name.
func (m Module) Function(name string) (Function, error) {
	text := append([]byte(name), 0)
	var pin runtime.Pinner
	pin.Pin(&text[0])
	defer pin.Unpin()
	f, err := out("cuModuleGetFunction", functions.moduleFunction, func(p uintptr) []uintptr { return []uintptr{p, uintptr(m), uintptr(unsafe.Pointer(&text[0]))} })
	return Function(f), err
}

// FunctionAttribute is a CUfunction_attribute.
type FunctionAttribute int32

// The attributes that are used.
const (
	FunctionMaxThreads    FunctionAttribute = 0
	FunctionSharedBytes   FunctionAttribute = 1
	FunctionDynamicShared FunctionAttribute = 8 // maximum that a launch may ask for, in bytes
	FunctionCarveout      FunctionAttribute = 9 // how much of a multiprocessor's first-level cache is to be shared memory, in percent
)

// Attribute returns an attribute of the function (cuFuncGetAttribute).
func (f Function) Attribute(a FunctionAttribute) (int, error) {
	n, err := out("cuFuncGetAttribute", functions.functionAttribute, func(p uintptr) []uintptr { return []uintptr{p, uintptr(a), uintptr(f)} })
	return int(int32(n)), err
}

// SetAttribute sets an attribute of the function.
func (f Function) SetAttribute(a FunctionAttribute, v int) error {
	return call("cuFuncSetAttribute", functions.functionSetAttribute, uintptr(f), uintptr(a), uintptr(v))
}

// Launch describes the launch of a kernel. Params points to an array of pointers to the parameters' values, all
// outside the Go heap; the driver copies the values before the call returns.
type Launch struct {
	Function Function
	Grid     [3]uint32 // blocks
	Block    uint32    // threads, in one dimension
	Shared   uint32    // bytes of dynamic shared memory
	Params   uintptr
}

// Start launches it on a stream.
func (l *Launch) Start(s Stream) error {
	return call("cuLaunchKernel", functions.launch, uintptr(l.Function), uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Grid[2]),
		uintptr(l.Block), 1, 1, uintptr(l.Shared), uintptr(s), l.Params, 0)
}
