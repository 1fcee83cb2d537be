//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributes of the GPU, by CUdevice_attribute, but for its compute capability.
var attributes = map[uintptr]int32{
	1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 1<<31 - 1, 6: 65535, 7: 65535, 8: 48 << 10, 10: 32, 16: 132, 97: 227 << 10,
}

const (
	maxThreads   = 1024
	sharedBytes  = 48 << 10
	sharedOptin  = 227 << 10
	computeMajor = 75
	computeMinor = 76
)

var maxGrid = [3]uint32{1<<31 - 1, 65535, 65535}

// errorTexts are the name and the description that the driver has for each CUresult.
var errorTexts = map[uint32][2]string{
	success: {"CUDA_SUCCESS", "no error"}, invalidValue: {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	outOfMemory: {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}, notInitialized: {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	deinitialized: {"CUDA_ERROR_DEINITIALIZED", "driver shutting down"}, 100: {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	invalidDevice: {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}, invalidContext: {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	200: {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}, 209: {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	invalidPTX: {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}, 222: {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	invalidHandle: {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}, notFound: {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	notReady: {"CUDA_ERROR_NOT_READY", "device not ready"}, illegalAddress: {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	701: {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}, 702: {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	contextDestroyed: {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"}, misaligned: {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	launchFailed: {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
}

// errorBytes are errorTexts as NUL-terminated strings.
var errorBytes = func() map[uint32][2][]byte {
	out := map[uint32][2][]byte{}
	for code, x := range errorTexts {
		out[code] = [2][]byte{append([]byte(x[0]), 0), append([]byte(x[1]), 0)}
	}
	return out
}()

func errorText(which int) func(g *GPU, a []uintptr) uint32 {
	return func(g *GPU, a []uintptr) uint32 {
		x, ok := errorBytes[uint32(a[0])]
		if !ok {
			give[uintptr](a[1], 0)
			return 1 // not noted as the caller's mistake: the function is registered as free
		}
		return give(a[1], uintptr(unsafe.Pointer(&x[which][0])))
	}
}

func init() {
	register(free, "cuInit", 1, func(g *GPU, a []uintptr) uint32 {
		if a[0] != 0 {
			return invalidValue
		}
		g.ready = true
		return success
	})
	register(free, "cuGetErrorName", 2, errorText(0))
	register(free, "cuGetErrorString", 2, errorText(1))
	register(ready, "cuDeviceGetCount", 1, func(g *GPU, a []uintptr) uint32 { return give[int32](a[0], 1) })
	register(ready, "cuDeviceGet", 2, func(g *GPU, a []uintptr) uint32 {
		if a[1] != 0 {
			return invalidDevice
		}
		return give[int32](a[0], 0)
	})
	register(ready, "cuDeviceGetName", 3, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || a[1] == 0 || a[2] != 0 {
			return invalidValue
		}
		to := list[byte](a[0], a[1])
		to[copy(to[:len(to)-1], g.options.Name)] = 0
		return success
	})
	register(ready, "cuDeviceTotalMem_v2", 2, func(g *GPU, a []uintptr) uint32 {
		if a[1] != 0 {
			return invalidDevice
		}
		return give(a[0], uint64(g.options.Memory))
	})
	register(ready, "cuDeviceGetAttribute", 3, func(g *GPU, a []uintptr) uint32 {
		v, ok := attributes[a[1]]
		switch {
		case a[2] != 0:
			return invalidDevice
		case a[1] == computeMajor:
			v = int32(g.options.Major)
		case a[1] == computeMinor:
			v = int32(g.options.Minor)
		case !ok:
			return invalidValue
		}
		return give(a[0], v)
	})
	register(ready, "cuDevicePrimaryCtxRetain", 2, func(g *GPU, a []uintptr) uint32 {
		if a[1] != 0 {
			return invalidDevice
		}
		if g.retained++; g.context == 0 {
			g.context = g.handle(nil)
			g.contexts[g.context] = true
		}
		return give(a[0], g.context)
	})
	register(releases, "cuDevicePrimaryCtxRelease_v2", 1, func(g *GPU, a []uintptr) uint32 {
		switch {
		case a[0] != 0:
			return invalidDevice
		case g.retained == 0:
			g.note("the primary context is released, and was not retained")
			return invalidContext
		}
		if g.retained--; g.retained == 0 {
			g.destroyContext()
		}
		return success
	})
	register(ready, "cuCtxSetCurrent", 1, func(g *GPU, a []uintptr) uint32 {
		if a[0] != 0 && a[0] != g.context {
			g.note("cuCtxSetCurrent: there is no context %#x", a[0])
			return invalidContext
		}
		g.current[unix.Gettid()] = a[0]
		return success
	})
	register(inside, "cuMemGetInfo_v2", 2, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || a[1] == 0 {
			return invalidValue
		}
		*at[uint64](a[0]), *at[uint64](a[1]) = uint64(g.options.Memory-g.memory.taken), uint64(g.options.Memory)
		return success
	})
}

// destroyContext destroys the context and all that is in it, and notes leaks. g.mu is held.
func (g *GPU) destroyContext() {
	if n := g.work.pending; n > 0 && g.sticky == 0 {
		g.drain()
	}
	g.leaks()
	g.context = 0
	clear(g.objects)
	for _, m := range append([]*allocation(nil), g.memory.list...) {
		g.memory.remove(g, m)
	}
	for _, m := range append([]*pinned(nil), g.pinned.list...) {
		g.pinned.remove(m)
	}
}

// handle returns a handle that was never used before, for an object; nil: the caller keeps the object itself.
func (g *GPU) handle(o any) uintptr {
	g.next += 0x40
	if o != nil {
		g.objects[g.next] = o
	}
	return g.next
}

// drop forgets an object that was destroyed.
func (g *GPU) drop(h uintptr, o any) {
	delete(g.objects, h)
	g.gone[h] = kindOf(o)
}

func kindOf(o any) string {
	switch o.(type) {
	case *stream:
		return "stream"
	case *event:
		return "event"
	case *code:
		return "module"
	case *function:
		return "function"
	case *graph:
		return "graph"
	case *node:
		return "graph node"
	case *exec:
		return "executable graph"
	}
	return fmt.Sprintf("%T", o)
}

// object returns the object that a handle stands for; nil, which is noted, if that is not a T.
func object[T any](g *GPU, h uintptr) *T {
	if o, ok := g.objects[h].(*T); ok {
		return o
	}
	want := kindOf(new(T))
	switch is, was := g.objects[h], g.gone[h]; {
	case was != "":
		g.note("a %s is expected, and %#x was a %s that has been destroyed", want, h, was)
	case is != nil:
		g.note("a %s is expected, and %#x is a %s", want, h, kindOf(is))
	default:
		g.note("there is no %s %#x", want, h)
	}
	return nil
}
