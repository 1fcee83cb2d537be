//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/mlxc/mlxc/internal/objc"
)

// rig is a GPU with queues, pipelines and arguments, which all tests share.
type rig struct {
	o       Options
	device  objc.ID
	queue   objc.ID
	other   objc.ID // a second queue
	library objc.ID
	pipes   map[string]objc.ID
	owned   []objc.ID
	args    []step
	// stuck: a command buffer did not end in time, or the context did: nothing that it uses may be released.
	stuck bool

	batches objc.Batches
}

// errHangs is the error of a command buffer that did not end within Options.Patience.
var errHangs = errors.New("a command buffer has not ended")

func newRig(o Options) (r *rig, err error) {
	if !objc.Loaded() {
		if err := objc.Load(); err != nil {
			return nil, err
		}
	}
	r = &rig{o: o, pipes: map[string]objc.ID{}}
	objc.Pool(func() { err = r.open() })
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// spin sets the arguments of all steps; slow ones take so many turns of their loop.
func (r *rig) spin(turns int) {
	r.args = nil
	for i := range steps {
		r.args = append(r.args, stepOf(i, turns))
	}
}

// slow is the intended duration of a slow step, in seconds: much longer than a dispatch.
const slow = 100e-6

// calibrate measures the loop on this GPU and sets its turns so that slow steps take as long as slow says.
func (r *rig) calibrate(ctx context.Context) error {
	const turns = 1 << 14
	times := map[int]float64{}
	for _, n := range []int{0, turns} {
		r.spin(n)
		var p *program
		var err error
		objc.Pool(func() { p, err = r.newProgram(ctx, &test{}, true) })
		if err != nil {
			return err
		}
		for range 4 {
			objc.Pool(func() {
				c := objc.Retain(p.commandBuffer(p.queue))
				defer objc.Release(c)
				p.encode(c, func(e *pass) { e.step(0) })
				p.commit(c)
				if err = p.land(0); err == nil {
					t := objc.GPUEndTime.SendDouble(c) - objc.GPUStartTime.SendDouble(c)
					if old, ok := times[n]; !ok || t < old {
						times[n] = t
					}
				}
			})
			if err != nil {
				break
			}
		}
		p.close()
		if err != nil {
			return err
		}
	}
	each := max((times[turns]-times[0])/turns, 1e-10)
	r.spin(int(min(max(slow/each, 16), 1<<20)))
	return nil
}

func (r *rig) open() error {
	if r.o.Device == 0 {
		r.device = r.own(objc.SystemDefaultDevice())
	}
	if r.device == 0 {
		all := objc.AllDevices()
		for _, d := range objc.Objects(all) {
			if r.o.Device == 0 || uint64(objc.RegistryID.Send(d)) == r.o.Device {
				r.device = r.own(objc.Retain(d))
				break
			}
		}
		objc.Release(all)
	}
	if r.device == 0 {
		return errors.New("Metal finds no GPU")
	}
	r.queue = r.own(objc.NewQueue.SendID(r.device, 64))
	r.other = r.own(objc.NewQueue.SendID(r.device, 64))
	if r.queue == 0 || r.other == 0 {
		return errors.New("the system gives no command queue")
	}
	options := objc.New("MTLCompileOptions")
	defer objc.Release(options)
	objc.SetLanguageVersion.Send(options, uintptr(objc.LanguageVersion3_1))
	lib, err := objc.WithError(objc.NewLibraryWithSource, func(slot uintptr) uintptr {
		return objc.NewLibraryWithSource.Send(r.device, uintptr(objc.String(source)), uintptr(options), slot)
	})
	if err != nil {
		return fmt.Errorf("the litmus tests do not compile: %w", err)
	}
	r.library = r.own(objc.ID(lib))
	for _, name := range []string{"litmus_step", "litmus_group", "litmus_copy", "litmus_constant"} {
		p, err := r.pipeline(name)
		if err != nil {
			return err
		}
		r.pipes[name] = r.own(p)
	}
	return nil
}

// pipeline makes the pipeline of a kernel, which the caller releases. The caller has an autorelease pool.
func (r *rig) pipeline(name string) (objc.ID, error) {
	d, err := r.descriptor(name)
	if err != nil {
		return 0, err
	}
	defer objc.Release(d)
	return r.described(name, d, 0)
}

// descriptor makes the descriptor of a kernel's pipeline. The caller releases it.
func (r *rig) descriptor(name string) (objc.ID, error) {
	values := objc.New("MTLFunctionConstantValues")
	defer objc.Release(values)
	f, err := objc.WithError(objc.NewFunction, func(slot uintptr) uintptr {
		return objc.NewFunction.Send(r.library, uintptr(objc.String(name)), uintptr(values), slot)
	})
	if err != nil {
		return 0, fmt.Errorf("kernel %s: %w", name, err)
	}
	defer objc.Release(objc.ID(f))
	d := objc.New("MTLComputePipelineDescriptor")
	objc.SetComputeFunction.Send(d, f)
	objc.SetSupportIndirect.Send(d, 1)
	return d, nil
}

// described makes the pipeline of a descriptor; name is for errors. The caller releases it.
func (r *rig) described(name string, d objc.ID, options uint64) (objc.ID, error) {
	p, err := objc.WithError(objc.NewPipeline, func(slot uintptr) uintptr {
		return objc.NewPipeline.Send(r.device, uintptr(d), uintptr(options), 0, slot)
	})
	if err != nil {
		return 0, fmt.Errorf("kernel %s: %w", name, err)
	}
	return objc.ID(p), nil
}

func (r *rig) own(o objc.ID) objc.ID {
	if o != 0 {
		r.owned = append(r.owned, o)
	}
	return o
}

// close releases everything, unless a command buffer may still use it.
func (r *rig) close() {
	if r.stuck {
		return
	}
	for i := len(r.owned) - 1; i >= 0; i-- {
		objc.Release(r.owned[i])
	}
	_ = r.batches.Close()
}

// wait waits for command buffers and releases them. It returns the error of the first that failed.
func (r *rig) wait(ctx context.Context, list []objc.ID) error {
	done := make(chan error, 1)
	go func() {
		var first error
		for _, c := range list {
			objc.Pool(func() {
				objc.WaitUntilCompleted.Send(c)
				if uint64(objc.BufferStatus.Send(c)) != objc.CommandBufferStatusCompleted && first == nil {
					first = fmt.Errorf("a command buffer failed: %w", objc.Failure(objc.BufferError.SendID(c)))
				}
			})
			objc.Release(c)
		}
		done <- first
	}()
	late := time.NewTimer(r.o.Patience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		r.stuck = true
		return fmt.Errorf("%w after %v", errHangs, r.o.Patience)
	case <-ctx.Done():
		r.stuck = true
		return context.Cause(ctx)
	}
}

// words returns the first n u32 of a buffer's contents.
func words(b objc.ID, n int) []uint32 {
	data := objc.Bytes(objc.Contents.Send(b), 4*n)
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// pinned calls f with the address of v, which the garbage collector does not move until f returns.
func pinned[T any](v *T, f func(p uintptr)) {
	var pin runtime.Pinner
	pin.Pin(v)
	defer pin.Unpin()
	f(uintptr(unsafe.Pointer(v)))
}
