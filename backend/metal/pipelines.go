//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/mlxc/mlxc/backend/metal/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
)

// pipeline is an MTLComputePipelineState.
type pipeline struct {
	id      objc.ID
	threads int // of a threadgroup, at most
	static  int // bytes of threadgroup memory that the kernel has of its own
}

// pipelines makes pipelines, each once in the life of a device.
type pipelines struct {
	device  *Device
	options objc.ID // MTLCompileOptions

	mu        sync.Mutex
	libraries map[string]*once[objc.ID]
	made      map[string]*once[pipeline]
	functions map[string]map[string]bool // of libraries, by path
}

// once is a value that is made once; an attempt that failed is made again.
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

func newPipelines(d *Device) (*pipelines, error) {
	p := &pipelines{device: d, libraries: map[string]*once[objc.ID]{}, made: map[string]*once[pipeline]{}, functions: map[string]map[string]bool{}}
	if p.options = objc.New("MTLCompileOptions"); p.options == 0 {
		return nil, errors.New("there is no class MTLCompileOptions")
	}
	// What kernels are compiled with everywhere: −inf and NaN are what they are, bfloat is known,
	// and what is contracted is said in the source.
	objc.SetLanguageVersion.Send(p.options, uintptr(objc.LanguageVersion3_1))
	if objc.Responds(p.options, objc.SetMathMode) {
		objc.SetMathMode.Send(p.options, uintptr(objc.MathModeSafe))
	} else {
		objc.SetFastMath.Send(p.options, 0)
	}
	return p, nil
}

func (p *pipelines) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.made {
		objc.Release(x.value.id)
	}
	for _, x := range p.libraries {
		objc.Release(x.value)
	}
	objc.Release(p.options)
}

// entry returns what m holds for a key.
func entry[T any](mu *sync.Mutex, m map[string]*once[T], key string) *once[T] {
	mu.Lock()
	defer mu.Unlock()
	x := m[key]
	if x == nil {
		x = &once[T]{}
		m[key] = x
	}
	return x
}

// find returns the pipeline of a kernel, or of a copy or fill. An indirect one can stand in an indirect
// command buffer.
func (p *pipelines) find(ctx context.Context, g *ir.Graph, k *plan.Pipeline, indirect bool) (pipeline, error) {
	if ctx.Err() != nil {
		return pipeline{}, context.Cause(ctx)
	}
	if k.Source == plan.Guard {
		return p.of("move", func() (objc.ID, error) { return p.compile(moves) }, "mlxc_guard", nil, indirect)
	}
	if k.Source != plan.FromGraph {
		name := fmt.Sprintf("mlxc_%s_%d", [...]string{plan.Copy: "copy", plan.Fill: "fill"}[k.Source], k.Width)
		return p.of("move", func() (objc.ID, error) { return p.compile(moves) }, name, nil, indirect)
	}
	x := &g.Kernels[k.Kernel]
	switch x.Library.Kind {
	case ir.Metallib:
		return p.of("library "+x.Library.Path, func() (objc.ID, error) { return p.open(x.Library.Path, x.Library.Digest) }, x.Function, x.Constants, indirect)
	case ir.Generated:
		d, err := decl.Elementwise(x.Function)
		if err != nil {
			return pipeline{}, err
		}
		text := elementwise.Compile(d).Source()
		return p.of("text "+text, func() (objc.ID, error) { return p.compile(text) }, elementwise.Function, x.Constants, indirect)
	case ir.Builtin:
		if path := p.device.options.Library; path != "" {
			has, err := p.has(path, x.Function)
			if err != nil {
				return pipeline{}, err
			}
			if has {
				return p.of("library "+path, func() (objc.ID, error) { return p.open(path, ir.Digest{}) }, x.Function, x.Constants, indirect)
			}
		}
		ds := msl.Declarations(x.Function)
		if len(ds) == 0 {
			return pipeline{}, fmt.Errorf("there is no kernel %q", x.Function)
		}
		file := ds[0].File
		return p.of("file "+file, func() (objc.ID, error) {
			text, err := msl.Source(file)
			if err != nil {
				return 0, err
			}
			return p.compile(text)
		}, x.Function, x.Constants, indirect)
	case ir.SourceFile:
		text, err := msl.SourceOf(x)
		if err != nil {
			return pipeline{}, err
		}
		return p.of("text "+text, func() (objc.ID, error) { return p.compile(text) }, x.Function, x.Constants, indirect)
	}
	return pipeline{}, fmt.Errorf("a library of kind %s is not known here", x.Library.Kind)
}

// of returns the pipeline of a function of a library.
func (p *pipelines) of(library string, open func() (objc.ID, error), function string, constants []ir.FunctionConstant, indirect bool) (pipeline, error) {
	var key strings.Builder
	fmt.Fprintf(&key, "%s %s %v", library, function, indirect)
	for _, c := range constants {
		fmt.Fprintf(&key, " %d=%d:%v", c.Index, c.Bits, c.Type)
	}
	return entry(&p.mu, p.made, key.String()).get(func() (out pipeline, err error) {
		lib, err := entry(&p.mu, p.libraries, library).get(open)
		if err != nil {
			return pipeline{}, err
		}
		objc.Pool(func() { out, err = p.build(lib, function, constants, indirect) })
		return out, err
	})
}

// compile makes a library of Metal source.
func (p *pipelines) compile(text string) (lib objc.ID, err error) {
	objc.Pool(func() {
		var r uintptr
		r, err = objc.WithError(objc.NewLibraryWithSource, func(slot uintptr) uintptr {
			return objc.NewLibraryWithSource.Send(p.device.id, uintptr(objc.String(text)), uintptr(p.options), slot)
		})
		lib = objc.ID(r)
	})
	if err != nil {
		err = fmt.Errorf("the source does not compile: %w", err)
	}
	return lib, err
}

// open makes a library of a .metallib.
func (p *pipelines) open(path string, digest ir.Digest) (lib objc.ID, err error) {
	if digest != (ir.Digest{}) {
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		if sum := sha256.Sum256(data); ir.Digest(sum) != digest {
			return 0, fmt.Errorf("%s has the digest %x, the graph was recorded with %v: give it the library that it was recorded with", path, sum, digest)
		}
	} else if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	objc.Pool(func() {
		url := objc.FileURLWithPath.SendID(objc.ClassNamed("NSURL"), uintptr(objc.String(path)))
		var r uintptr
		r, err = objc.WithError(objc.NewLibraryWithURL, func(slot uintptr) uintptr {
			return objc.NewLibraryWithURL.Send(p.device.id, uintptr(url), slot)
		})
		lib = objc.ID(r)
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return lib, err
}

// has reports whether a .metallib has a function.
func (p *pipelines) has(path, function string) (found bool, err error) {
	lib, err := entry(&p.mu, p.libraries, "library "+path).get(func() (objc.ID, error) { return p.open(path, ir.Digest{}) })
	if err != nil {
		return false, err
	}
	names := p.names(path, lib)
	_, found = names[function]
	return found, nil
}

// names are the functions of a library.
func (p *pipelines) names(path string, lib objc.ID) map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if names, ok := p.functions[path]; ok {
		return names
	}
	names := map[string]bool{}
	objc.Pool(func() {
		for _, n := range objc.Objects(objc.FunctionNames.SendID(lib)) {
			names[objc.GoString(n)] = true
		}
	})
	p.functions[path] = names
	return names
}

// dataTypes are Metal's names of element types, as function constants have them.
var dataTypes = map[ir.DType]uint64{
	ir.Bool: objc.DataTypeBool,
	ir.I8:   objc.DataTypeChar, ir.U8: objc.DataTypeUChar, ir.I16: objc.DataTypeShort, ir.U16: objc.DataTypeUShort,
	ir.I32: objc.DataTypeInt, ir.U32: objc.DataTypeUInt, ir.I64: objc.DataTypeLong, ir.U64: objc.DataTypeULong,
	ir.F16: objc.DataTypeHalf, ir.BF16: objc.DataTypeBFloat, ir.F32: objc.DataTypeFloat,
}

// build makes a pipeline, inside of a pool.
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
	id, err := objc.WithError(objc.NewPipeline, func(slot uintptr) uintptr {
		return objc.NewPipeline.Send(p.device.id, uintptr(d), 0, 0, slot)
	})
	if err != nil {
		return out, fmt.Errorf("kernel %s: no pipeline can be made of it: %w", name, err)
	}
	out.id = objc.ID(id)
	out.threads, out.static = int(objc.MaxThreads.Send(out.id)), int(objc.StaticThreadgroup.Send(out.id))
	return out, nil
}

// moves copies and fills n elements of 1, 4 or 16 bytes, and guards counts (plan.Copy, plan.Fill,
// plan.Guard).
const moves = `#include <metal_stdlib>
using namespace metal;

#define MOVES(BYTES, T)                                                                      \
  kernel void mlxc_copy_##BYTES(                                                             \
      const device T* from [[buffer(0)]], device T* to [[buffer(1)]], constant uint& n [[buffer(2)]], \
      uint i [[thread_position_in_grid]]) {                                                  \
    if (i < n)                                                                               \
      to[i] = from[i];                                                                       \
  }                                                                                          \
  kernel void mlxc_fill_##BYTES(                                                             \
      device T* to [[buffer(0)]], constant T& element [[buffer(1)]], constant uint& n [[buffer(2)]], \
      uint i [[thread_position_in_grid]]) {                                                  \
    if (i < n)                                                                               \
      to[i] = element;                                                                       \
  }

MOVES(1, uchar)
MOVES(4, uint)
MOVES(16, uint4)

kernel void mlxc_guard(
    const device uint* counts [[buffer(0)]], device uint* to [[buffer(1)]], constant packed_uint3& most [[buffer(2)]]) {
  uint wrong = counts[0] > most[0] ? 1 : counts[1] > most[1] ? 2 : counts[2] > most[2] ? 3 : 0;
  for (uint i = 0; i < 3; i++)
    to[i] = wrong ? 0 : counts[i];
  to[3] = wrong;
  if (wrong) {
    to[4] = counts[wrong - 1];
    to[5] = most[wrong - 1];
  }
}
`
