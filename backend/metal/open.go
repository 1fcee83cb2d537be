//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/objc"
)

// List returns the GPUs of the machine.
func List() (out []Description, err error) {
	if err := load(); err != nil {
		return nil, err
	}
	objc.Pool(func() {
		preferred := objc.SystemDefaultDevice()
		defer objc.Release(preferred)
		all := objc.AllDevices()
		defer objc.Release(all)
		for _, d := range objc.Objects(all) {
			x := describe(d)
			x.Default = preferred != 0 && objc.RegistryID.Send(d) == objc.RegistryID.Send(preferred)
			out = append(out, x)
		}
	})
	return out, nil
}

func load() error {
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
	for f := objc.GPUFamilyApple1; f <= objc.GPUFamilyApple10; f++ {
		if objc.SupportsFamily.SendBool(d, uintptr(f)) {
			x.Family = int(f-objc.GPUFamilyApple1) + 1
		}
	}
	return x
}

// Device is a GPU. See [Open].
type Device struct {
	Description
	options   Options
	id        objc.ID
	maxBuffer int64
	groupMax  int // bytes of threadgroup memory
	pipelines *pipelines
	clock     clock
	sampling  backend.Sampling
	warnings
	side       side
	workingSet int64 // bytes that the system recommends to have in use at most; 0: it does not say

	mu        sync.Mutex
	allocated int64 // bytes of buffers
	closed    bool
}

// Open opens a GPU.
func Open(o Options) (d *Device, err error) {
	if o.Encoders < 0 || o.Encoders > mostEncoders {
		return nil, fmt.Errorf("metal: %d command buffers side by side: there may be 1 to %d, and more than 2 rarely pay", o.Encoders, mostEncoders)
	}
	if err := load(); err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	objc.Pool(func() {
		var id objc.ID
		if id, err = find(o.Device); err != nil {
			return
		}
		d = &Device{Description: describe(id), options: o, id: id, clock: newClock(), warnings: warnings{tell: o.Warn}}
		d.sampling = samplingOf(id)
		d.maxBuffer, d.groupMax, d.workingSet = d.MaxBuffer, d.ThreadgroupBytes, d.Description.Memory
		if o.Memory > 0 && (d.Memory == 0 || o.Memory < d.Memory) {
			d.Memory = o.Memory
		}
		d.pipelines, err = newPipelines(d)
	})
	if err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	return d, nil
}

// find returns a device, which is the caller's.
func find(name string) (objc.ID, error) {
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

// Close releases the device. Whatever was made by it is closed before.
func (d *Device) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	err := d.side.close()
	d.pipelines.close()
	objc.Release(d.id)
	if n := d.inUse(); n != 0 {
		err = errors.Join(err, fmt.Errorf("metal: the device is closed, and buffers of %d bytes are not", n))
	}
	return err
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "metal" }

// maxUncompleted is how many command buffers a Metal queue holds before it blocks.
const maxUncompleted = 64

// argumentSlots is how many arguments a kernel may have.
const argumentSlots = 31

// pageSize is that of Apple's chips.
const pageSize = 16 << 10

// Info implements [backend.Device].
func (d *Device) Info() backend.Info {
	return backend.Info{
		Description: d.Description.Name, PageSize: pageSize, Alignment: 256,
		MaxBuffer: d.maxBuffer, Memory: d.Memory,
		MaxThreadgroup: 1024, ThreadgroupBytes: d.groupMax, ArgumentSlots: argumentSlots,
		MaxUncompleted: maxUncompleted, Apart: true,
		Sampling: d.sampling,
		Numerics: backend.Numerics{FlushesDenormals: true, ManyNaNs: true},
	}
}
