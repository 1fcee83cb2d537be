//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// harmless are the calls that may be lost, or made twice, without an effect, and why; some of them only at one of
// the calls that are tried.
var harmless = map[string]string{
	"cuInit twice":                            "it may be called again",
	"cuDeviceGetCount twice":                  "it asks",
	"cuDeviceGet unheard":                     "the first GPU is number 0, as is what was there before",
	"cuDeviceGet twice":                       "it asks",
	"cuDeviceGetName unheard":                 "the GPU has no name then",
	"cuDeviceGetName twice":                   "it asks",
	"cuMemGetInfo_v2 twice":                   "it asks",
	"cuMemGetInfo_v2 unheard":                 "the workload is smaller than any limit",
	"cuDeviceTotalMem_v2 twice":               "it asks",
	"last cuDeviceTotalMem_v2 unheard":        "it was asked before",
	"cuDeviceGetAttribute unheard":            "the workload stays below most limits, also if they are 0",
	"cuDeviceGetAttribute twice":              "it asks",
	"cuFuncGetAttribute twice":                "it asks",
	"cuFuncGetAttribute unheard":              "kernels of the workload have no memory of their own",
	"cuFuncSetAttribute twice":                "it says the same",
	"cuFuncSetAttribute unheard":              "the workload asks for less than 48 KiB of shared memory",
	"cuCtxSetCurrent twice":                   "it says the same",
	"cuCtxSetCurrent unheard":                 "the thread has the context already",
	"cuModuleGetFunction twice":               "functions belong to their module",
	"cuStreamSynchronize twice":               "it waits",
	"first cuStreamCreate unheard":            "a queue that only copies has no use for its own",
	"middle cuStreamCreate unheard":           "as above",
	"cuEventCreate unheard":                   "it is one that no submission comes to",
	"cuEventRecord twice":                     "the second takes the place of the first",
	"middle cuEventRecord unheard":            "what is waited for later is behind it",
	"cuEventSynchronize twice":                "it waits",
	"first cuEventSynchronize unheard":        "what is waited for later is behind it",
	"middle cuEventSynchronize unheard":       "as above",
	"cuEventElapsedTime unheard":              "only times are not known",
	"cuEventElapsedTime twice":                "it asks",
	"cuMemcpyHtoDAsync_v2 twice":              "it copies the same",
	"cuMemcpyDtoHAsync_v2 twice":              "it copies the same",
	"cuGraphAddEmptyNode twice":               "a node that nothing waits for does nothing",
	"first cuGraphAddKernelNode_v2 unheard":   "it writes argument memory as the host has before",
	"first cuGraphAddKernelNode_v2 twice":     "as above, in most orders",
	"cuGraphExecKernelNodeSetParams_v2 twice": "it says the same",
	"cuGraphNodeSetEnabled twice":             "it says the same",
	"last cuGraphNodeSetEnabled unheard":      "nobody reads what that frame carries then",
	"middle cuMemcpyHtoDAsync_v2 unheard":     "it is of argument memory, which the GPU writes by itself",
	"launch 4 unheard":                        "each replay fills the same",
	"launch 6 unheard":                        "the last replay alone shows what is copied",
	"launch 10 unheard":                       "the last replay alone leaves this output",
}

// TestWrongCalls: any wrong call is noticed: something fails, differs or is noted by the stand-in. Each function is
// lost, and called twice, at some of its calls, and some calls have a wrong argument.
func TestWrongCalls(t *testing.T) {
	sample.Long(t)
	type how struct {
		way  int
		name string
		fakecuda.Misheard
	}
	var all []how
	want := reference(t, 18, 2, 1)
	graphs, heard := map[int]*ir.Graph{}, map[string]bool{}
	for _, way := range []int{0, 3} {
		graphs[way] = newWorkload(t, ways[way].pipeline)
		x := serve(t, fakecuda.Options{Seed: 2})
		d := standIn(t, ways[way].options)
		got, err := run(d, graphs[way], 18, 2, 1)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, d.Close())
		quit(t, x)
		calls := x.Calls()
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			n := calls[name]
			if name == fakecuda.KernelRun || name == "cuLaunchKernel" || way > 0 && heard[name] {
				continue
			}
			heard[name] = true
			for i, nth := range []int{n, 1, (n + 1) / 2} {
				if i > 0 && nth == n || i == 2 && nth == 1 {
					continue
				}
				name := []string{"last ", "first ", "middle "}[i] + name
				all = append(all, how{way, name + " unheard", fakecuda.Misheard{On: name[strings.Index(name, "cu"):], Nth: nth, How: fakecuda.Unheard}},
					how{way, name + " twice", fakecuda.Misheard{On: name[strings.Index(name, "cu"):], Nth: nth, How: fakecuda.Twice}})
			}
		}
	}
	// The launches of the second replay, one by one. The first of them write what depends on params.
	const launches = 12
	for n := range launches {
		all = append(all, how{3, fmt.Sprintf("launch %d unheard", n), fakecuda.Misheard{On: "cuLaunchKernel", Nth: launches + n + 1, How: fakecuda.Unheard}},
			how{3, fmt.Sprintf("launch %d twice", n), fakecuda.Misheard{On: "cuLaunchKernel", Nth: launches + n + 1, How: fakecuda.Twice}})
	}
	for _, x := range []struct {
		way int
		on  string
		nth int
		arg int
		by  int
	}{
		{3, "cuLaunchKernel", 2, 1, 1}, {3, "cuLaunchKernel", 2, 1, -1}, {3, "cuLaunchKernel", 2, 4, -1}, {3, "cuLaunchKernel", 2, 4, 32},
		{3, "cuLaunchKernel", 3, 7, -128}, {3, "cuLaunchKernel", 2, 9, 8}, {3, "cuLaunchKernel", 2, 10, 8},
		{3, "cuMemcpyHtoDAsync_v2", 3, 0, 4}, {3, "cuMemcpyHtoDAsync_v2", 3, 1, 4}, {3, "cuMemcpyHtoDAsync_v2", 3, 2, -4},
		{0, "cuMemcpyDtoHAsync_v2", 1, 0, 4}, {0, "cuMemcpyDtoHAsync_v2", 1, 1, 4}, {0, "cuMemcpyDtoHAsync_v2", 1, 2, -4}, {0, "cuMemcpyDtoHAsync_v2", 1, 2, 1 << 22},
		{0, "cuMemAlloc_v2", 4, 1, -256}, {0, "cuMemFree_v2", 1, 0, 256}, {0, "cuMemFreeHost", 1, 0, 64},
		{0, "cuGraphLaunch", 1, 1, 0x40}, {0, "cuGraphLaunch", 1, 0, 0x40},
		{0, "cuEventRecord", 2, 1, 0x40}, {0, "cuGraphNodeSetEnabled", 1, 1, 0x40},
		{0, "cuStreamSynchronize", 2, 0, 0x40}, {0, "cuModuleUnload", 1, 0, 0x40}, {0, "cuCtxSetCurrent", 9, 0, 0x40},
	} {
		all = append(all, how{x.way, fmt.Sprintf("%s: argument %d by %d", x.on, x.arg, x.by),
			fakecuda.Misheard{On: x.on, Nth: x.nth, How: fakecuda.Changed, Arg: x.arg, By: uintptr(x.by)}})
	}
	noticed, wanted := 0, 120/sample.Few
	if sample.Whole() {
		wanted = 120
	}
	for _, h := range sample.Of(t, t.Name(), all, sample.Few) {
		if slices.Contains([]string{"launch 0 twice", "launch 2 twice", "launch 3 twice", "launch 4 twice", "launch 6 twice", "launch 9 twice", "launch 10 twice", "launch 11 twice"}, h.name) {
			continue // it reads nothing that it writes, and so computes the same again
		}
		if _, plain, _ := strings.Cut(h.name, " "); harmless[h.name]+harmless[plain] != "" {
			continue
		}
		x := serve(t, fakecuda.Options{Seed: 2, Misheard: h.Misheard})
		d, err := cuda.Open(t.Context(), ways[h.way].options.WithImages(images))
		var got outcome
		if err == nil {
			got, err = run(d, graphs[h.way], 18, 2, 1)
			err = errors.Join(err, d.Close())
		}
		x.Close()
		failures := x.Failures()
		if err != nil || len(failures) > 0 || !slices.Equal(want, got) {
			noticed++
			continue
		}
		assert.Fail(t, "it is not noticed", "%s: call %d: %s", ways[h.way].name, h.Nth, h.name)
	}
	assert.Greater(t, noticed, wanted/2)
}
