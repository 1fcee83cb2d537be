//go:build unix

package softmetal

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// rig runs single kernels on a device: those of a Metal file in testdata, compiled together, or of a module in AIR's
// text form.
type rig struct {
	t *testing.T
	*Device
	kernels map[string]*kernel
	inputs  map[string]air.Input
}

// elsewhereRun, if it is not nil, is called before each dispatch, and reports whether it has run the dispatch
// elsewhere (gpu_test.go).
var elsewhereRun func(r *rig, in air.Input, grid, group [3]uint32, args []any) (bool, error)

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	d, err := New(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return &rig{t: t, Device: d, kernels: map[string]*kernel{}, inputs: map[string]air.Input{}}
}

// metal compiles and loads the kernels of a file.
func (r *rig) metal(file string) *rig {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(r.t, err)
	return r.source(file, string(text))
}

// source compiles and loads the kernels of a source text.
func (r *rig) source(file, text string) *rig {
	r.t.Helper()
	u, err := mslc.Compile(context.Background(), file, text, mslc.Options{Lines: true})
	require.NoError(r.t, err)
	inputs := make([]air.Input, len(u.Kernels))
	for i := range u.Kernels {
		module, err := u.Module(u.Kernels[i].Name)
		require.NoError(r.t, err)
		inputs[i] = air.Input{Name: file, IR: []byte(module), Kernel: &u.Kernels[i]}
	}
	r.add(inputs)
	return r
}

// add compiles kernels in parallel, and loads them.
func (r *rig) add(inputs []air.Input) {
	r.t.Helper()
	errs := make([]error, len(inputs))
	var wait sync.WaitGroup
	room := make(chan struct{}, 4)
	for i, in := range inputs {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			_, errs[i] = r.object(context.Background(), in)
		})
	}
	wait.Wait()
	for i, in := range inputs {
		require.NoError(r.t, errs[i])
		k := &kernel{Kernel: in.Kernel}
		l, err := r.process.load(context.Background(), object{name: in.Kernel.Name, code: func(ctx context.Context) ([]byte, error) { return r.object(ctx, in) }})
		require.NoError(r.t, err)
		k.number, k.frame = l.number, l.frame
		r.kernels[in.Kernel.Name] = k
		r.inputs[in.Kernel.Name] = in
	}
}

// buffer returns a buffer with this contents.
func (r *rig) buffer(data []byte) *buffer {
	r.t.Helper()
	b, err := r.Alloc(backend.BufferSpec{Size: int64(len(data))})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { assert.NoError(r.t, b.Close()) })
	copy(b.(*buffer).bytes(), data)
	return b.(*buffer)
}

// local is an argument in threadgroup space, of that many bytes.
type local int

// run runs a kernel on a grid of threads. The arguments have the slots 0, 1, 2 and so on:
// buffers, constants (bytes, or uint32), or lengths of threadgroup memory.
func (r *rig) run(ctx context.Context, name string, grid, group [3]uint32, args ...any) error {
	r.t.Helper()
	k := r.kernels[name]
	require.NotNil(r.t, k, name)
	if elsewhereRun != nil {
		if done, err := elsewhereRun(r, r.inputs[name], grid, group, args); done || err != nil {
			return err
		}
	}
	var b batch
	b.reset()
	r.encode(&b, k, grid, group, args...)
	_, err := r.process.run(ctx, &b, false)
	return err
}

// encode appends a dispatch.
func (r *rig) encode(b *batch, k *kernel, grid, group [3]uint32, args ...any) {
	b.command(nil, commandDispatch)
	b.u32(k.number)
	for _, v := range append(grid[:], group[:]...) {
		b.u32(v)
	}
	b.u32(uint32(len(args)))
	locals := 0
	for i, a := range args {
		switch a := a.(type) {
		case local: // threadgroup arguments have slots of their own
			b.u32(uint32(locals))
			b.u32(argumentLength)
			b.u32(uint32(a))
			locals++
			continue
		}
		b.u32(uint32(i - locals))
		switch a := a.(type) {
		case *buffer:
			b.u32(argumentBuffer)
			b.place(backend.At(a))
			b.u64(uint64(a.size))
		case uint32:
			b.u32(argumentBytes)
			b.u32(4)
			b.u32(a)
		case []byte:
			b.u32(argumentBytes)
			b.u32(uint32(len(a)))
			b.data = append(b.data, a...)
		default:
			r.t.Fatalf("argument %d is a %T", i, a)
		}
	}
}

// bytesOf returns the bytes of numbers, in the byte order of this machine.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))...)
}

// wordsOf returns the little-endian 32-bit words in data.
func wordsOf(data []byte) []uint32 {
	out := make([]uint32, len(data)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}

func floatsOf(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i, w := range wordsOf(data) {
		out[i] = math.Float32frombits(w)
	}
	return out
}
