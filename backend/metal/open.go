//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/environ"
	"github.com/mlxc/mlxc/internal/objc"
)

// List returns the GPUs of the machine.
func List() (out []Description, err error) {
	if err := load(false); err != nil {
		return nil, err
	}
	objc.Pool(func() {
		preferred := objc.SystemDefaultDevice()
		defer objc.Release(preferred)
		all := objc.AllDevices()
		defer objc.Release(all)
		for _, d := range objc.Objects(all) {
			if err = floor(d); err != nil {
				return
			}
			x := describe(d)
			x.Default = preferred != 0 && objc.RegistryID.Send(d) == objc.RegistryID.Send(preferred)
			out = append(out, x)
		}
	})
	return out, err
}

// floor returns an error on a system before macOS 14. It asks whether the device has the property
// architecture, which came with macOS 14: sending an unknown selector would end the process.
func floor(device objc.ID) error {
	if objc.Responds(device, objc.DeviceArchitecture) {
		return nil
	}
	return fmt.Errorf("this Mac runs macOS %s, and Metal is used from macOS 14 on: its language 3.1, which the kernels are written in, and the GPU's architecture, which compiled kernels are kept by, came with that: update the system",
		strings.TrimPrefix(objc.GoString(objc.SystemVersion.SendID(objc.ProcessInfo.SendID(objc.ClassNamed("NSProcessInfo")))), "Version "))
}

// machine returns an error on Macs whose processor has a calling convention that objc does not support.
func machine(system, processor string) error {
	if system == "darwin" && processor != "arm64" {
		return errors.New("Macs with Intel's processors are not supported: their calling convention passes sizes of grids in memory, and nobody has tested that (build for arm64, on a Mac with Apple's chip)")
	}
	return nil
}

// load loads Metal. If the environment or the options ask for captures, it sets the variable that Metal
// wants for them first; where Metal was loaded before that, an attempt to capture returns an error.
func load(captures bool) error {
	if err := machine(runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	if _, asked := environ.Text(captureVariable); asked || captures {
		if err := prepareCaptures(); err != nil {
			return err
		}
	}
	if objc.Loaded() {
		return nil
	}
	return objc.Load()
}

func describe(d objc.ID) Description {
	x := Description{
		Name: objc.GoString(objc.DeviceName.SendID(d)), RegistryID: uint64(objc.RegistryID.Send(d)),
		Memory: int64(objc.RecommendedWorkingSet.Send(d)), Unified: objc.HasUnifiedMemory.SendBool(d),
		MaxBuffer: int64(objc.MaxBufferLength.Send(d)), ThreadgroupBytes: int(objc.MaxThreadgroupMemory.Send(d)),
	}
	x.Architecture = objc.GoString(objc.ArchitectureName.SendID(objc.DeviceArchitecture.SendID(d)))
	x.LowPower, x.Removable, x.Headless = objc.IsLowPower.SendBool(d), objc.IsRemovable.SendBool(d), objc.IsHeadless.SendBool(d)
	var families []string
	for f := objc.GPUFamilyApple1; f <= objc.GPUFamilyApple10; f++ {
		if objc.SupportsFamily.SendBool(d, uintptr(f)) {
			x.Family = int(f-objc.GPUFamilyApple1) + 1
		}
	}
	if x.Family > 0 { // an Apple family includes all earlier ones
		families = append(families, fmt.Sprintf("Apple%d", x.Family))
	}
	for _, f := range []struct {
		value uint64
		name  string
	}{{objc.GPUFamilyMac2, "Mac2"}, {objc.GPUFamilyMetal3, "Metal3"}, {objc.GPUFamilyMetal4, "Metal4"}} {
		if objc.SupportsFamily.SendBool(d, uintptr(f.value)) {
			families = append(families, f.name)
		}
	}
	x.Families = strings.Join(families, ", ")
	return x
}

// Device is a GPU. See [Open].
type Device struct {
	Description
	options   Options
	id        objc.ID
	maxBuffer int64
	groupMax  int // max bytes of threadgroup memory
	pipelines *pipelines
	clock     clock
	sampling  backend.Sampling
	warnings
	side       side
	workingSet int64 // recommendedMaxWorkingSetSize in bytes, whatever Options.Memory says; 0: unknown
	log        *log
	counts     *counts
	resident   *residency
	flight     *flight
	wanted     *wanted // the capture that Options.Capture asks for; nil: none

	mu        sync.Mutex
	allocated int64 // bytes of all open buffers that are not mapped
	closed    bool
}

// Open opens a GPU. Environment variables override the options.
func Open(o Options) (d *Device, err error) {
	if err := errors.Join(o.environment(), o.check()); err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	var capture *wanted
	if o.Capture != "" {
		if capture, err = parseCapture(o.Capture); err != nil {
			return nil, fmt.Errorf("metal: %w", err)
		}
	}
	if err := load(capture != nil || o.Captures); err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	objc.Pool(func() {
		var id objc.ID
		if id, err = find(&o); err != nil {
			return
		}
		if err = floor(id); err != nil {
			objc.Release(id)
			return
		}
		d = &Device{
			Description: describe(id), options: o, id: id, clock: newClock(), sampling: samplingOf(id),
			log: newLog(&o), counts: newCounts(), flight: newFlight(), wanted: capture,
		}
		d.warnings.tell = o.Warn
		if o.Warn == nil {
			d.warnings.tell = d.log.warn
		}
		if err = d.options.proven(d.Description.Name); err != nil {
			objc.Release(id)
			return
		}
		d.maxBuffer, d.groupMax, d.workingSet = d.MaxBuffer, d.ThreadgroupBytes, d.Description.Memory
		if o.Memory > 0 && (d.Memory == 0 || o.Memory < d.Memory) {
			d.Memory = o.Memory
		}
		if d.pipelines, err = newPipelines(d); err != nil {
			objc.Release(id)
			return
		}
		d.resident = newResidency(d)
	})
	if err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	if o.Encoders > 2 {
		d.warn("%d command buffers side by side: more than 2 rarely pay", o.Encoders)
	}
	if d.Family < 7 {
		d.warn("%s is of none of Apple's GPU families from 7 (M1) on, for which this is made: run `mlxreplay doctor` before it is relied on", d.Description.Name)
	}
	d.log.device(d)
	return d, nil
}

// find returns the MTLDevice that the options name, retained for the caller.
func find(o *Options) (objc.ID, error) {
	name := o.Device
	if o.Adopt != 0 {
		return objc.Retain(objc.ID(o.Adopt)), nil
	}
	if name == "" {
		if d := objc.SystemDefaultDevice(); d != 0 {
			return d, nil
		}
	}
	all := objc.AllDevices()
	defer objc.Release(all)
	var names []string
	for _, d := range objc.Objects(all) {
		n := objc.GoString(objc.DeviceName.SendID(d))
		if strings.Contains(strings.ToLower(n), strings.ToLower(name)) {
			return objc.Retain(d), nil
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		return 0, errors.New("Metal finds no GPU: a process without a session of a user (a virtual machine, a login by ssh) may see none")
	}
	return 0, fmt.Errorf("no GPU is called %q: there are %s", name, strings.Join(names, ", "))
}

// Close releases the device. What it has made must be closed before: buffers that are still open are an error.
func (d *Device) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	d.tell()
	err := d.side.close()
	d.resident.close()
	d.pipelines.close()
	objc.Release(d.id)
	if n := d.inUse(); n != 0 {
		err = errors.Join(err, fmt.Errorf("metal: the device is closed, and buffers of %d bytes are not", n))
	}
	return err
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "metal" }

// maxUncompleted is the maxCommandBufferCount of queues, beyond which Metal blocks. Tests lower it.
var maxUncompleted = 64

// argumentSlots is the number of buffer arguments that a kernel may have.
const argumentSlots = 31

// pageSize is the size of a page of memory on Apple's chips, in bytes.
const pageSize = 16 << 10

// Info implements [backend.Device].
func (d *Device) Info() backend.Info {
	return backend.Info{
		Submits:     true,
		Description: d.Description.Name, PageSize: pageSize, Alignment: 256, Loads: 16,
		MaxBuffer: d.maxBuffer, Memory: d.Memory,
		MaxThreadgroup: 1024, ThreadgroupBytes: d.groupMax, ArgumentSlots: argumentSlots,
		MaxUncompleted: maxUncompleted, Apart: true,
		Sampling: d.sampling,
		Numerics: backend.Numerics{FlushesDenormals: true, ManyNaNs: true},
	}
}
