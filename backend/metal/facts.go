//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"fmt"
	"os"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/objc"
)

// Facts implements [backend.Described]: what a bug report should say of the GPU and its system.
func (d *Device) Facts() (out []backend.Fact) {
	add := func(name, format string, args ...any) {
		out = append(out, backend.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	objc.Pool(func() {
		info := objc.ProcessInfo.SendID(objc.ClassNamed("NSProcessInfo"))
		add("macOS", "%s", objc.GoString(objc.SystemVersion.SendID(info)))
		add("GPU", "%s", d.Description.Name)
		add("architecture", "%s", d.Architecture)
		add("families", "%s", d.Families)
		add("unified memory", "%v", d.Unified)
		add("working set", "%d bytes", d.Description.Memory)
		add("greatest buffer", "%d bytes", d.MaxBuffer)
		add("threadgroup memory", "%d bytes", d.ThreadgroupBytes)
		add("counters at encoders", "%v", objc.SupportsCounterSampling.SendBool(d.id, uintptr(objc.CounterSamplingPointAtStageBoundary)))
		add("counters at dispatches", "%v", objc.SupportsCounterSampling.SendBool(d.id, uintptr(objc.CounterSamplingPointAtDispatchBoundary)))
		for _, x := range []struct {
			name string
			is   bool
		}{{"low power", d.LowPower}, {"removable", d.Removable}, {"headless", d.Headless}} {
			if x.is {
				add(x.name, "%v", x.is)
			}
		}
		add("residency sets", "%v", objc.Responds(d.id, objc.NewResidencySet))
	})
	add("plan", "%v", d.options.Plan)
	for _, name := range []string{"MTL_DEBUG_LAYER", "MTL_SHADER_VALIDATION", "MTL_CAPTURE_ENABLED", "METAL_DEVICE_WRAPPER_TYPE"} {
		if v, ok := os.LookupEnv(name); ok {
			add(name, "%q", v)
		}
	}
	return out
}
