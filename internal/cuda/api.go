//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
)

// Handles of the driver API (opaque pointers), and addresses of device memory.
type (
	Context  uintptr
	Stream   uintptr
	Event    uintptr
	Module   uintptr
	Function uintptr
	// Address is an address of device memory (CUdeviceptr).
	Address uint64
)

// functions are the addresses of the functions of libcuda that this package calls. A symbol with the suffix _v2 (in
// names) is the one that cuda.h calls by the name without it.
var functions struct {
	init, deviceCount, deviceGet, deviceName, deviceAttribute, deviceMemory                   uintptr
	contextRetain, contextRelease, contextSet                                                 uintptr
	memAlloc, memFree, memInfo, hostAlloc, hostFree, toDevice, toHost, within, fill8          uintptr
	streamCreate, streamDestroy, streamSynchronize                                            uintptr
	eventCreate, eventDestroy, eventRecord, eventSynchronize, eventElapsed                    uintptr
	moduleLoad, moduleUnload, moduleFunction, functionAttribute, functionSetAttribute, launch uintptr
	graphCreate, graphDestroy, graphAddKernel, graphAddEmpty, graphAddEdges                   uintptr
	graphInstantiate, graphExecDestroy, graphExecSet, graphNodeEnable, graphLaunch            uintptr
	errorName, errorString                                                                    uintptr
}

var names = map[string]*uintptr{
	"cuInit":           &functions.init,
	"cuDeviceGetCount": &functions.deviceCount, "cuDeviceGet": &functions.deviceGet, "cuDeviceGetName": &functions.deviceName,
	"cuDeviceGetAttribute": &functions.deviceAttribute, "cuDeviceTotalMem_v2": &functions.deviceMemory,
	"cuDevicePrimaryCtxRetain": &functions.contextRetain, "cuDevicePrimaryCtxRelease_v2": &functions.contextRelease, "cuCtxSetCurrent": &functions.contextSet,
	"cuMemAlloc_v2": &functions.memAlloc, "cuMemFree_v2": &functions.memFree, "cuMemGetInfo_v2": &functions.memInfo,
	"cuMemAllocHost_v2": &functions.hostAlloc, "cuMemFreeHost": &functions.hostFree,
	"cuMemcpyHtoDAsync_v2": &functions.toDevice, "cuMemcpyDtoHAsync_v2": &functions.toHost, "cuMemcpyDtoDAsync_v2": &functions.within, "cuMemsetD8Async": &functions.fill8,
	"cuStreamCreate": &functions.streamCreate, "cuStreamDestroy_v2": &functions.streamDestroy, "cuStreamSynchronize": &functions.streamSynchronize,
	"cuEventCreate": &functions.eventCreate, "cuEventDestroy_v2": &functions.eventDestroy, "cuEventRecord": &functions.eventRecord,
	"cuEventSynchronize": &functions.eventSynchronize, "cuEventElapsedTime": &functions.eventElapsed,
	"cuModuleLoadDataEx": &functions.moduleLoad, "cuModuleUnload": &functions.moduleUnload, "cuModuleGetFunction": &functions.moduleFunction,
	"cuFuncGetAttribute": &functions.functionAttribute, "cuFuncSetAttribute": &functions.functionSetAttribute, "cuLaunchKernel": &functions.launch,
	"cuGraphCreate": &functions.graphCreate, "cuGraphDestroy": &functions.graphDestroy, "cuGraphAddKernelNode_v2": &functions.graphAddKernel,
	"cuGraphAddEmptyNode": &functions.graphAddEmpty, "cuGraphAddDependencies_v2": &functions.graphAddEdges,
	"cuGraphInstantiateWithFlags": &functions.graphInstantiate, "cuGraphExecDestroy": &functions.graphExecDestroy,
	"cuGraphExecKernelNodeSetParams_v2": &functions.graphExecSet, "cuGraphNodeSetEnabled": &functions.graphNodeEnable, "cuGraphLaunch": &functions.graphLaunch,
	"cuGetErrorName": &functions.errorName, "cuGetErrorString": &functions.errorString,
}

var loading struct {
	sync.Mutex
	done bool
	find func(name string) uintptr
}

// Use has [Load] take the driver's functions from find in place of libcuda: tests have no GPU. find returns the
// address of a function, 0 if there is none of that name. nil: Load takes libcuda's again.
func Use(find func(name string) uintptr) {
	loading.Lock()
	defer loading.Unlock()
	loading.done, loading.find = false, find
}

// Load loads libcuda and initialises the driver. Once it has succeeded it does nothing; after a failure the next
// call tries again. If paths are given, they are tried in place of the usual names.
func Load(paths ...string) error {
	loading.Lock()
	defer loading.Unlock()
	if loading.done {
		return nil
	}
	if len(paths) == 0 {
		paths = libraryNames
	}
	find := loading.find
	if find == nil {
		lib, err := open(paths[0])
		for _, p := range paths[1:] {
			if err == nil {
				break
			}
			if other, unusual := open(p); unusual == nil { // else err stays the usual name's, which helps most
				lib, err = other, nil
			}
		}
		if err != nil {
			return fmt.Errorf("the driver of NVIDIA's GPUs cannot be loaded: %w (install it, or use another device)", err)
		}
		find = func(name string) uintptr { at, _ := symbol(lib, name); return at }
	}
	for name, to := range names {
		if *to = find(name); *to == 0 {
			return fmt.Errorf("the driver of NVIDIA's GPUs has no %s: it is too old, install one for CUDA 12.3 or later", name)
		}
	}
	if err := call("cuInit", functions.init, 0); err != nil {
		return err
	}
	loading.done = true
	return nil
}

// call calls a function whose result is a CUresult.
func call(name string, f uintptr, args ...uintptr) error {
	r, _, _ := purego.SyscallN(f, args...)
	if code := uint32(r); code != 0 {
		return &Error{Function: name, Code: code, Name: errorText(functions.errorName, code), Text: errorText(functions.errorString, code)}
	}
	return nil
}
