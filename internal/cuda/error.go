//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Error is a failure that a driver function returned: a CUresult other than CUDA_SUCCESS.
type Error struct {
	Function   string
	Code       uint32 // CUresult
	Name, Text string // as the driver says: "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%s)", e.Function, e.Text, e.Name)
	if e.Name == "" {
		s = fmt.Sprintf("%s: error %d", e.Function, e.Code)
	}
	if a := advice[e.Code]; a != "" {
		s += ": " + a
	}
	return s
}

// The CUresult codes that this package or its callers tell apart.
const (
	OutOfMemory      = 2
	InvalidImage     = 200
	NoBinaryForGPU   = 209
	InvalidPTX       = 218
	UnsupportedPTX   = 222
	IllegalAddress   = 700
	LaunchResources  = 701
	LaunchTimeout    = 702
	MisalignedAccess = 716
	LaunchFailed     = 719
	noDevice         = 100
)

var advice = map[uint32]string{
	OutOfMemory:      "use a smaller graph or context, or close other programs that use the GPU",
	noDevice:         "no GPU of NVIDIA's is visible to this process (CUDA_VISIBLE_DEVICES, the container's options)",
	UnsupportedPTX:   "the driver is older than the kernels' PTX: install one for CUDA 12 or later",
	IllegalAddress:   "run `mlxreplay check` on the graph: a kernel leaves its memory",
	MisalignedAccess: "run `mlxreplay check` on the graph: a kernel accesses memory at an address that is no multiple of its elements' size",
	LaunchTimeout:    "the GPU draws a screen too, and a kernel kept it from that: cut the graph, or use another GPU",
}

// Sticky reports whether an error has destroyed the context: every later call of this process fails too.
func Sticky(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case IllegalAddress, LaunchTimeout, 714, 715, MisalignedAccess, 717, 718, LaunchFailed:
		return true
	}
	return false
}

func errorText(f uintptr, code uint32) string {
	if f == 0 {
		return ""
	}
	p := new(uintptr)
	var pin runtime.Pinner
	pin.Pin(p)
	defer pin.Unpin()
	if r, _, _ := purego.SyscallN(f, uintptr(code), uintptr(unsafe.Pointer(p))); uint32(r) != 0 || *p == 0 {
		return ""
	}
	return text(*p)
}

// text copies the NUL-terminated C string at p.
func text(p uintptr) string {
	b := *(**byte)(unsafe.Pointer(&p))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(b), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(b, n))
}
