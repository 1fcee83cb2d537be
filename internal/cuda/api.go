//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
)

// Types of the driver API: handles are addresses of the driver's own.
type (
	Context  uintptr
	Stream   uintptr
	Event    uintptr
	Module   uintptr
	Function uintptr
	// Address is one of the device's memory.
	Address uint64
)

// functions are those of the library that are called, by their names there. A name with _v2 is what the
// header gives under the name without.
var functions struct {
	init, version, deviceCount, deviceGet, deviceName, deviceAttribute, deviceMemory          uintptr
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
	"cuInit": &functions.init, "cuDriverGetVersion": &functions.version,
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

// Use has the functions be those that find returns the addresses of, 0 for none, in place of the library's:
// tests have no GPU. nil: the library's again.
func Use(find func(name string) uintptr) {
	loading.Lock()
	defer loading.Unlock()
	loading.done, loading.find = false, find
}

// Load finds the library and initialises the driver, once; an attempt that failed is made again. paths
// are tried in place of the usual names.
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
			if other, unusual := open(p); unusual == nil { // else the usual name's error is the one of use
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
