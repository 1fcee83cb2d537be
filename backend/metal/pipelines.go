//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// simdWidth is the number of threads in a simdgroup of Apple's GPUs. Kernels exchange values within
// simdgroups of this width; with another one they would compute something else.
const simdWidth = 32

// pipeline is an MTLComputePipelineState.
type pipeline struct {
	id      objc.ID
	threads int // maxTotalThreadsPerThreadgroup
	static  int // staticThreadgroupMemoryLength: bytes that the kernel itself declares
}

// pipelines makes the compute pipelines of a device, each once, and keeps them until the device is closed.
type pipelines struct {
	device    *Device
	libraries *libraries
	archive   *archive

	mu   sync.Mutex
	made map[pipelineKey]*once[pipeline]
}

// pipelineKey identifies a pipeline: two with the same key have the same code.
type pipelineKey struct {
	from      plan.Source
	width     int
	library   ir.Library
	function  string
	constants string
	indirect  bool
}

// once is a value that the first successful call of get makes. After an error the next call tries again.
type once[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
}

func (o *once[T]) get(do func() (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made {
		return o.value, nil
	}
	v, err := do()
	if err == nil {
		o.value, o.made = v, true
	}
	return v, err
}

// has reports whether the value is made.
func (o *once[T]) has() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.made
}

// entry returns m's value for a key, which it adds if it is missing. mu guards m.
func entry[K comparable, T any](mu *sync.Mutex, m map[K]*T, key K) *T {
	mu.Lock()
	defer mu.Unlock()
	x := m[key]
	if x == nil {
		x = new(T)
		m[key] = x
	}
	return x
}

func newPipelines(d *Device) (*pipelines, error) {
	l, err := newLibraries(d)
	if err != nil {
		return nil, err
	}
	return &pipelines{device: d, libraries: l, archive: newArchive(d), made: map[pipelineKey]*once[pipeline]{}}, nil
}

// close releases all pipelines. No other method may be called after it.
func (p *pipelines) close() {
	p.archive.close()
	for _, x := range p.made {
		objc.Release(x.value.id)
	}
	p.made = nil
	p.libraries.close()
}

// keyOf returns the key of a plan's pipeline.
func keyOf(g *ir.Graph, k *plan.Pipeline, indirect bool) pipelineKey {
	key := pipelineKey{from: k.Source, width: k.Width, indirect: indirect}
	if k.Source != plan.FromGraph {
		return key
	}
	x := &g.Kernels[k.Kernel]
	key.library, key.function = x.Library, x.Function
	if len(x.Constants) > 0 {
		var b []byte
		for _, c := range x.Constants {
			b = binary.LittleEndian.AppendUint16(b, c.Index)
			b = binary.LittleEndian.AppendUint64(append(b, byte(c.Type)), c.Bits)
		}
		key.constants = string(b)
	}
	return key
}

// all makes the pipelines of a plan in parallel, after it has compiled what they need of each Metal source,
// all functions of one source at once. out and errs are by pipeline.
func (p *pipelines) all(ctx context.Context, g *ir.Graph, list []plan.Pipeline, indirect bool, progress func(float64)) (out []pipeline, errs []error) {
	out, errs = make([]pipeline, len(list)), make([]error, len(list))
	homes := make([]home, len(list))
	needs := map[*source][]int{} // by source: the pipelines, as indices, that are not made yet
	var order []*source
	for i := range list {
		if entry(&p.mu, p.made, keyOf(g, &list[i], indirect)).has() {
			continue
		}
		if homes[i], errs[i] = p.libraries.home(g, &list[i]); errs[i] == nil && homes[i].source != nil {
			s := homes[i].source
			if needs[s] == nil {
				order = append(order, s)
			}
			needs[s] = append(needs[s], i)
		}
	}
	var mu sync.Mutex
	done, total := 0, len(order)+len(list)
	beside := func(n int, do func(i int)) {
		var wait sync.WaitGroup
		room := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i := range n {
			room <- struct{}{}
			wait.Go(func() {
				defer func() { <-room }()
				do(i)
				mu.Lock()
				defer mu.Unlock()
				if done++; progress != nil {
					progress(float64(done) / float64(total))
				}
			})
		}
		wait.Wait()
	}
	beside(len(order), func(n int) {
		s := order[n]
		var functions []string
		for _, i := range needs[s] {
			functions = append(functions, homes[i].function)
		}
		err := context.Cause(ctx)
		if err == nil {
			err = p.libraries.make(s, functions)
		}
		for _, i := range needs[s] {
			errs[i] = err
		}
	})
	beside(len(list), func(i int) {
		if errs[i] == nil {
			out[i], errs[i] = p.find(ctx, g, &list[i], indirect)
		}
	})
	return out, errs
}

// find returns the pipeline of a kernel, or of a copy, fill or guard. With indirect it is one that indirect
// command buffers may use.
func (p *pipelines) find(ctx context.Context, g *ir.Graph, k *plan.Pipeline, indirect bool) (pipeline, error) {
	if ctx.Err() != nil {
		return pipeline{}, context.Cause(ctx)
	}
	return entry(&p.mu, p.made, keyOf(g, k, indirect)).get(func() (out pipeline, err error) {
		began := time.Now()
		h, err := p.libraries.home(g, k)
		if err != nil {
			return out, err
		}
		lib, err := p.libraries.library(h)
		if err != nil {
			return out, err
		}
		var constants []ir.FunctionConstant
		if k.Source == plan.FromGraph {
			constants = g.Kernels[k.Kernel].Constants
		}
		objc.Pool(func() { out, err = p.build(lib, h.function, constants, indirect) })
		if err == nil && indirect && p.device.unprimed() {
			if err = p.device.prime(ctx, out, memoryOf(g, k)); err != nil {
				objc.Release(out.id)
				return pipeline{}, fmt.Errorf("kernel %s: %w", h.function, err)
			}
		}
		if err == nil {
			p.device.made(h.function, &out, time.Since(began))
		}
		return out, err
	})
}

// memoryOf returns the indices at which a kernel takes threadgroup memory as an argument.
func memoryOf(g *ir.Graph, k *plan.Pipeline) (slots []uint8) {
	if k.Source != plan.FromGraph {
		return nil
	}
	for _, a := range g.Kernels[k.Kernel].Args {
		if a.Kind == ir.ThreadgroupArg {
			slots = append(slots, a.Slot)
		}
	}
	return slots
}

// dataTypes are the MTLDataTypes of function constants, by our type.
var dataTypes = map[ir.DType]uint64{
	ir.Bool: objc.DataTypeBool,
	ir.I8:   objc.DataTypeChar, ir.U8: objc.DataTypeUChar, ir.I16: objc.DataTypeShort, ir.U16: objc.DataTypeUShort,
	ir.I32: objc.DataTypeInt, ir.U32: objc.DataTypeUInt, ir.I64: objc.DataTypeLong, ir.U64: objc.DataTypeULong,
	ir.F16: objc.DataTypeHalf, ir.BF16: objc.DataTypeBFloat, ir.F32: objc.DataTypeFloat,
}

// build makes the pipeline of a function of a library. The caller has an autorelease pool.
func (p *pipelines) build(lib objc.ID, name string, constants []ir.FunctionConstant, indirect bool) (out pipeline, err error) {
	values := objc.New("MTLFunctionConstantValues")
	defer objc.Release(values)
	var pin runtime.Pinner
	defer pin.Unpin()
	for _, c := range constants {
		typ, ok := dataTypes[c.Type]
		if !ok {
			return out, fmt.Errorf("kernel %s: the function constant %d is of type %v, which Metal has not", name, c.Index, c.Type)
		}
		bits := c.Bits
		pin.Pin(&bits)
		objc.SetConstantValue.Send(values, uintptr(unsafe.Pointer(&bits)), uintptr(typ), uintptr(c.Index))
	}
	function, err := objc.WithError(objc.NewFunction, func(slot uintptr) uintptr {
		return objc.NewFunction.Send(lib, uintptr(objc.String(name)), uintptr(values), slot)
	})
	if err != nil {
		return out, fmt.Errorf("kernel %s: %w", name, err)
	}
	defer objc.Release(objc.ID(function))
	d := objc.New("MTLComputePipelineDescriptor")
	defer objc.Release(d)
	objc.SetComputeFunction.Send(d, function)
	if indirect {
		objc.SetSupportIndirect.Send(d, 1)
	}
	objc.SetPipelineLabel.Send(d, uintptr(objc.String(name)))
	if out.id, err = p.archive.pipeline(d); err != nil {
		return out, fmt.Errorf("kernel %s: no pipeline can be made of it: %w", name, err)
	}
	if n := objc.ThreadExecutionWidth.Send(out.id); n != simdWidth {
		objc.Release(out.id)
		return pipeline{}, fmt.Errorf("kernel %s: this GPU has simdgroups of %d threads, and kernels are written for %d, as all of Apple's GPUs have: use another device", name, n, simdWidth)
	}
	out.threads, out.static = int(objc.MaxThreads.Send(out.id)), int(objc.StaticThreadgroup.Send(out.id))
	return out, nil
}
