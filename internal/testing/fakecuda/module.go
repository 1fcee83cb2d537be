//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// image is what a module is loaded from, in place of PTX.
type image struct {
	Launch nvptx.Launch
	Early  []int `json:",omitempty"` // indices of the arguments that are read before the wait
	Input  air.Input
}

// earlyLine begins the first line of an image; the compiler's PTX has it too.
const earlyLine = "// mlxc early arguments:"

// Image encodes a kernel and how it is launched, in place of PTX. early are the indices of the arguments that the
// kernel says it reads before its wait.
func Image(in air.Input, launch nvptx.Launch, early ...int) ([]byte, error) {
	data, err := json.Marshal(image{launch, early, in})
	if err != nil {
		return nil, err
	}
	out := []byte(earlyLine)
	for _, i := range early {
		out = fmt.Appendf(out, " %d", i)
	}
	return append(append(out, '\n'), data...), nil
}

// noteLine begins what an image may end with.
const noteLine = "\n// mlxc fit: "

// maxImage is the maximum length of an image in bytes.
const maxImage = 64 << 20

// modules are the kernels that software Metal may be asked to compile, encoded air.Inputs by digest.
var modules sync.Map

// module gives software Metal the code of a kernel, one of modules.
func module(_ context.Context, k *ir.Kernel) ([]byte, error) {
	if data, ok := modules.Load(k.Library.Digest); ok {
		return data.([]byte), nil
	}
	return nil, fmt.Errorf("there is no module of kernel %s", k.Function)
}

// code is a loaded module (CUmodule).
type code struct {
	image
	kernel    ir.Kernel // as software Metal knows it
	note      []byte    // for Options.Fits; nil: grids and blocks are those of the kernel
	functions []uintptr
}

// function is the entry of a module (CUfunction).
type function struct {
	*code
	dynamic int // maximum bytes of dynamic shared memory of a launch
}

// static is the size in bytes of the shared memory that a kernel declares.
func (c *code) static() int {
	if c.note != nil {
		return 0
	}
	n := int64(0)
	for _, m := range c.Input.Kernel.Threadgroup {
		n += m.Size
	}
	return int(n)
}

func (c *code) threads() int {
	if c.note != nil {
		return maxThreads
	}
	if n := c.Input.Kernel.MaxThreadgroup; n > 0 {
		return min(n, maxThreads)
	}
	return maxThreads
}

// parse reads an image, and has software Metal compile it.
func (g *GPU) parse(text []byte) (*code, error) {
	c := &code{}
	_, rest, ok := bytes.Cut(text, []byte("\n"))
	if !ok || !bytes.HasPrefix(text, []byte(earlyLine)) {
		return nil, errors.New("this is no image of a stand-in's")
	}
	rest, c.note, _ = bytes.Cut(rest, []byte(noteLine))
	if c.note != nil && g.options.Fits == nil {
		return nil, errors.New("the image ends with a note that nobody reads")
	}
	if err := json.Unmarshal(rest, &c.image); err != nil || c.Input.Kernel == nil {
		return nil, fmt.Errorf("this is no image of a stand-in's: %v", err)
	}
	if c.Launch.Programmatic && g.options.Major < 9 {
		return nil, fmt.Errorf("the kernel is for sm_90, the GPU is of sm_%d%d", g.options.Major, g.options.Minor)
	}
	data, err := json.Marshal(c.Input)
	if err != nil {
		return nil, err
	}
	c.kernel = ir.Kernel{Name: c.Input.Kernel.Name, Function: c.Input.Kernel.Name, Library: ir.Library{Kind: ir.SourceFile, Path: "fakecuda", Digest: sha256.Sum256(data)}}
	modules.Store(c.kernel.Library.Digest, data)
	return c, g.runner.compile(c)
}

func init() {
	register(inside, "cuModuleLoadDataEx", 5, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || a[1] == 0 || a[2] > 0 && (a[3] == 0 || a[4] == 0) {
			return invalidValue
		}
		c, err := g.parse([]byte(text(a[1], maxImage)))
		if err == nil {
			return give(a[0], g.handle(c))
		}
		const errorLogBuffer, errorLogSize = 5, 6
		var to, size uintptr
		for i, option := range list[uint32](a[3], a[2]) {
			switch v := list[uintptr](a[4], a[2])[i]; option {
			case errorLogBuffer:
				to = v
			case errorLogSize:
				size = v
			}
		}
		if to != 0 && size > 0 {
			log := list[byte](to, size)
			log[copy(log[:size-1], err.Error())] = 0
		}
		return invalidPTX
	})
	registerDestroy("cuModuleUnload", func(g *GPU, c *code) {
		for _, h := range c.functions {
			if f, ok := g.objects[h]; ok {
				g.drop(h, f)
			}
		}
	})
	registerOn(inside, "cuModuleGetFunction", 3, 1, func(g *GPU, c *code, a []uintptr) uint32 {
		switch {
		case a[0] == 0 || a[2] == 0:
			return invalidValue
		case text(a[2], 1<<12) != nvptx.Entry:
			return notFound
		}
		h := g.handle(&function{c, sharedBytes - c.static()})
		c.functions = append(c.functions, h)
		return give(a[0], h)
	})
	registerOn(inside, "cuFuncGetAttribute", 3, 2, func(_ *GPU, f *function, a []uintptr) uint32 {
		switch uint32(a[1]) {
		case functionMaxThreads:
			return give(a[0], int32(f.threads()))
		case functionSharedBytes:
			return give(a[0], int32(f.static()))
		case functionDynamicShared:
			return give(a[0], int32(f.dynamic))
		}
		return invalidValue
	})
	registerOn(inside, "cuFuncSetAttribute", 3, 0, func(_ *GPU, f *function, a []uintptr) uint32 {
		n := int(int32(a[2]))
		if uint32(a[1]) == functionCarveout && n >= -1 && n <= 100 {
			return success // a hint
		}
		if uint32(a[1]) != functionDynamicShared || n < 0 || n+f.static() > sharedOptin {
			return invalidValue
		}
		f.dynamic = n
		return success
	})
}

const (
	functionMaxThreads    = 0
	functionSharedBytes   = 1
	functionDynamicShared = 8
	functionCarveout      = 9
)
