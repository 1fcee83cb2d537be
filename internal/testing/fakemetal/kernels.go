//go:build linux

package fakemetal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/testing/onedispatch"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/ir"
)

// kernels holds the memory, libraries and pipelines of the device, and runs dispatches on software
// Metal, each as a graph of its own. Only the goroutine of serve uses it.
type kernels struct {
	device    *softmetal.Device
	on        *onedispatch.Runner
	compiler  clang.Compiler
	cache     *air.Cache
	folder    string // where sources are written
	buffers   map[uint64]backend.Buffer
	next      uint64
	libraries map[uint32]*library // by number: the first 4 bytes of their digest
	pipelines []*pipeline
}

// library is a Metal library that was compiled from source or opened.
type library struct {
	ir.Library
	names    []string
	describe func(name string) (*air.Kernel, error)
}

// pipeline is a kernel with the values of its function constants.
type pipeline struct{ ir.Kernel }

func newKernels(ctx context.Context, d *softmetal.Device) (*kernels, error) {
	k := &kernels{device: d, buffers: map[uint64]backend.Buffer{}, libraries: map[uint32]*library{}}
	var err error
	if k.compiler, err = clang.Find(ctx); err != nil {
		return nil, err
	}
	if k.cache, err = air.OpenCache("", 0); err != nil {
		return nil, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	k.folder = filepath.Join(user, "mlxc", "test", "sources")
	if err := os.MkdirAll(k.folder, 0o755); err != nil {
		return nil, err
	}
	k.on, err = onedispatch.New(d)
	return k, err
}

func (k *kernels) close() {
	k.on.Close()
	for _, b := range k.buffers {
		_ = b.Close()
	}
	_ = k.cache.Close()
}

func (k *kernels) allocate(size int64, w *writer) error {
	b, err := k.device.Alloc(backend.BufferSpec{Size: size, Storage: ir.Shared})
	if err != nil {
		return err
	}
	k.next++
	k.buffers[k.next] = b
	w.u64(k.next)
	w.u64(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes())))))
	return nil
}

func (k *kernels) free(handle uint64) error {
	b := k.buffers[handle]
	if b == nil {
		return fmt.Errorf("there is no buffer %d", handle)
	}
	delete(k.buffers, handle)
	return b.Close()
}

// modules has the kernels of all compiled sources: by function, an air.Input without constants.
var modules sync.Map

// function identifies a function of a source.
type function struct {
	source ir.Digest
	name   string
}

// module returns the code of a kernel to software Metal (its option Module); nil if source did not compile it.
func module(_ context.Context, k *ir.Kernel) ([]byte, error) {
	known, ok := modules.Load(function{k.Library.Digest, k.Function})
	if !ok {
		return nil, nil
	}
	in := known.(air.Input)
	for _, c := range k.Constants {
		in.Constants = append(in.Constants, air.ConstantValue{Index: int(c.Index), Bits: c.Bits})
	}
	return json.Marshal(in)
}

// largeSource is the size in bytes from which on the kernels of a source are compiled one by one, when a function is asked
// for: a source with hundreds of kernels, of which a program uses a few, would take minutes.
const largeSource = 64 << 10

// source compiles a source and keeps its kernels in modules: a small one as a whole, of a large one only the names. Machine
// code is made of a kernel when a pipeline needs it.
func (k *kernels) source(ctx context.Context, text string, w *writer) error {
	sum := sha256.Sum256([]byte(text))
	l := &library{}
	if len(text) < largeSource {
		all, err := k.compile(ctx, text, sum, nil)
		if err != nil {
			return err
		}
		for i := range all {
			l.names = append(l.names, all[i].Kernel.Name)
			modules.Store(function{sum, all[i].Kernel.Name}, all[i])
		}
		l.describe = func(name string) (*air.Kernel, error) {
			if i := slices.Index(l.names, name); i >= 0 {
				return all[i].Kernel, nil
			}
			return nil, fmt.Errorf("the library has no function %s", name)
		}
	} else {
		data, err := k.cache.Data(ctx, k.key(sum, nil), "names.json", func() ([]byte, error) {
			names, err := mslc.Names(ctx, "program_source", text, mslc.Options{Trust: trusted()})
			if err != nil {
				return nil, err
			}
			return json.Marshal(names)
		})
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &l.names); err != nil {
			return err
		}
		l.describe = func(name string) (*air.Kernel, error) {
			if !slices.Contains(l.names, name) {
				return nil, fmt.Errorf("the library has no function %s", name)
			}
			if known, ok := modules.Load(function{sum, name}); ok {
				return known.(air.Input).Kernel, nil
			}
			all, err := k.compile(ctx, text, sum, []string{name})
			if err != nil {
				return nil, err
			}
			modules.Store(function{sum, name}, all[0])
			return all[0].Kernel, nil
		}
	}
	// The path is part of the cache's key of a kernel, so it must be the same in every run.
	path := filepath.Join(k.folder, fmt.Sprintf("%x.metal", sum[:12]))
	if old, err := os.ReadFile(path); err != nil || string(old) != text {
		if err := atomicfile.Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return err
		}
	}
	l.Library = ir.Library{Kind: ir.SourceFile, Path: path, Digest: sum}
	k.add(l, w)
	return nil
}

// key is the cache's key of a source's kernels; none: all.
func (k *kernels) key(sum ir.Digest, names []string) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "compiled %x %s %d %x %q", mslc.Digest(), k.compiler.Path, k.compiler.Version, sum, names)
	return h.Sum(nil)
}

// compile compiles kernels of a source; none: all.
func (k *kernels) compile(ctx context.Context, text string, sum ir.Digest, names []string) ([]air.Input, error) {
	data, err := k.cache.Data(ctx, k.key(sum, names), "kernels.json", func() ([]byte, error) {
		u, err := mslc.Compile(ctx, "program_source", text, mslc.Options{Kernels: names, Lines: true, Trust: trusted()})
		if err != nil {
			return nil, err
		}
		all := make([]air.Input, len(u.Kernels))
		for i := range u.Kernels {
			text, err := u.Module(u.Kernels[i].Name)
			if err != nil {
				return nil, err
			}
			all[i] = air.Input{Name: "program_source", IR: []byte(text), Kernel: &u.Kernels[i]}
		}
		return json.Marshal(all)
	})
	if err != nil {
		return nil, err
	}
	var all []air.Input
	return all, json.Unmarshal(data, &all)
}

// open reads a .metallib.
func (k *kernels) open(path string, w *writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lib, err := metallib.Parse(path, data)
	if err != nil {
		return err
	}
	l := &library{Library: ir.Library{Kind: ir.Metallib, Path: path, Digest: sha256.Sum256(data)}, describe: lib.Describe}
	for i := range lib.Kernels {
		l.names = append(l.names, lib.Kernels[i].Name)
	}
	k.add(l, w)
	return nil
}

// add adds a library and answers with its number, the same in every run, and the names of its
// functions.
func (k *kernels) add(l *library, w *writer) {
	number := binary.LittleEndian.Uint32(l.Digest[:])
	k.libraries[number] = l
	w.u32(number)
	w.u32(uint32(len(l.names)))
	for _, n := range l.names {
		w.text(n)
	}
}

func (k *kernels) find(number uint32, name string) (*library, *air.Kernel, error) {
	l := k.libraries[number]
	if l == nil {
		return nil, nil, fmt.Errorf("there is no library %d", number)
	}
	d, err := l.describe(name)
	return l, d, err
}

// constantTypes are the types of function constants, by their names in Metal: MTLDataType and our type.
var constantTypes = map[string]struct {
	metal uint32
	typ   ir.DType
}{
	"bool": {53, ir.Bool}, "char": {45, ir.I8}, "uchar": {49, ir.U8}, "short": {37, ir.I16}, "ushort": {41, ir.U16},
	"int": {29, ir.I32}, "uint": {33, ir.U32}, "long": {81, ir.I64}, "ulong": {85, ir.U64},
	"half": {16, ir.F16}, "bfloat": {121, ir.BF16}, "float": {3, ir.F32},
}

func (k *kernels) function(number uint32, name string, w *writer) error {
	_, d, err := k.find(number, name)
	if err != nil {
		return err
	}
	w.u32(uint32(len(d.Constants)))
	for _, c := range d.Constants {
		t, ok := constantTypes[c.Type]
		if !ok {
			return fmt.Errorf("function constant %s has the type %s, which is not known here", c.Name, c.Type)
		}
		w.u32(uint32(c.Index))
		w.u32(t.metal)
		w.text(c.Name)
	}
	return nil
}

// The flags of a kernel's argument, as pipeline.c reads them.
const (
	argumentRead = 1 << iota
	argumentWritten
	argumentUsed
	argumentNeeded
)

func (k *kernels) pipeline(ctx context.Context, r *reader, w *writer) error {
	number, name := r.u32(), r.text()
	l, d, err := k.find(number, name)
	if err != nil {
		return err
	}
	p := &pipeline{Kernel: ir.Kernel{Name: name, Library: l.Library, Function: name}}
	values := map[string]uint64{}
	for range r.u32() {
		index, bits := r.u32(), r.u64()
		for _, c := range d.Constants {
			if uint32(c.Index) == index {
				values[c.Name] = bits
				p.Constants = append(p.Constants, ir.FunctionConstant{Index: uint16(index), Name: c.Name, Type: constantTypes[c.Type].typ, Bits: bits})
			}
		}
	}
	if err := k.on.Compile(ctx, p.Kernel, d); err != nil { // so that errors come now, not when it first runs
		return err
	}
	w.u32(uint32(len(k.pipelines)))
	k.pipelines = append(k.pipelines, p)
	w.u32(uint32(d.MaxThreadgroup))
	memory := int64(0)
	for _, m := range d.Threadgroup {
		memory += m.Size
	}
	w.u64(uint64(memory))
	var list writer
	n := uint32(0)
	for i := range d.Args {
		a := &d.Args[i]
		if a.Attribute != "" {
			continue
		}
		// Absent if its condition, a function constant, is false; computed conditions are not known here.
		value, known := values[a.If]
		if a.If != "" && known && value == 0 {
			continue
		}
		flags := uint32(0)
		if a.Access != air.Write {
			flags |= argumentRead
		}
		if a.Access != air.Read {
			flags |= argumentWritten
		}
		if !a.Unused {
			flags |= argumentUsed
			if a.If == "" || known {
				flags |= argumentNeeded
			}
		}
		list.u32(uint32(a.Space))
		list.u32(uint32(a.Index))
		list.u32(flags)
		list.u64(uint64(a.Size))
		list.u64(uint64(a.TypeAlign))
		list.text(a.Name)
		n++
	}
	w.u32(n)
	w.data = append(w.data, list.data...)
	return nil
}

// The kinds of bindings, as launch.c writes them.
const (
	boundBuffer = 1 + iota
	boundBytes
	boundThreadgroup
)

// run runs the dispatch of a request and returns the kernel's name.
func (k *kernels) run(ctx context.Context, r *reader) (string, error) {
	number := r.u32()
	if int(number) >= len(k.pipelines) {
		return "", fmt.Errorf("there is no pipeline %d", number)
	}
	p := k.pipelines[number]
	n := &ir.Dispatch{}
	if r.u32() != 0 {
		n.GridKind = ir.Threads
	} else {
		n.GridKind = ir.Threadgroups
	}
	for i := range n.Grid {
		n.Grid[i] = ir.Ext(int64(r.u64()))
	}
	for i := range n.Threadgroup {
		n.Threadgroup[i] = uint32(r.u64())
	}
	var memory []onedispatch.Bound
	for range r.u32() {
		slot, kind := uint8(r.u32()), r.u32()
		switch kind {
		case boundBuffer:
			handle, offset, size := r.u64(), int64(r.u64()), int64(r.u64())
			b := k.buffers[handle]
			if b == nil {
				return "", fmt.Errorf("there is no buffer %d", handle)
			}
			memory = append(memory, onedispatch.Bound{Slot: slot, Room: b, Offset: offset, Size: size})
		case boundBytes:
			n.Bindings = append(n.Bindings, ir.Binding{Slot: slot, Kind: ir.BindBytes, Bytes: slices.Clone(r.bytes())})
		case boundThreadgroup:
			n.ThreadgroupMemory = append(n.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: slot, Bytes: r.u32()})
		}
	}
	return p.Function, k.on.Run(ctx, p.Kernel, n, memory)
}
