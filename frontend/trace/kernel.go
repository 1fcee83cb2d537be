package trace

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// File is a library that a module names, to be written beside it.
type File struct {
	Path string // relative to the module
	Data []byte
}

// kernels makes the kernels of graphs from the pipelines of a log.
type kernels struct {
	ctx       context.Context
	log       *Log
	options   *Options
	files     []File
	paths     map[*library]ir.Library
	metallibs map[*library]*metallib.Library
	compiled  map[string]*air.Kernel // by library and function
	units     map[string]*mslc.Unit  // what was compiled, by the same
	unread    map[string]map[int][]bool
	functions map[*library][]string // that graphs have, of sources: they are compiled together
	done      map[*pipeline]described
	byName    []string // functions that are taken from the builtin library
	blobs     map[writing]*ir.Blob
	silent    map[string]string        // why the code of a function cannot be described, by library and function
	unknown   map[string][]string      // functions whose code cannot be described, by the reason
	reasons   []string                 // in the order in which they came
	at        int                      // the step whose lives are looked for
	wrote     map[*buffer]int          // the last step before it that may have written a buffer
	kept      map[*buffer][]span[bool] // what some step finds as one before it has left it; nil: that may be all of it
	parts     bool                     // lives may begin anywhere in a buffer, not only where it does
	reachers  []string                 // functions that may touch all that is behind a value which they get
}

// writing identifies what a buffer held: the writing of the host, and how much of it a memory takes.
type writing struct {
	buffer  *buffer
	version int
	base    int64
	size    int64
}

// dataTypes are the types of function constants, by their numbers in Metal (MTLDataType).
var dataTypes = map[uint32]ir.DType{
	3: ir.F32, 16: ir.F16, 29: ir.I32, 33: ir.U32, 37: ir.I16, 41: ir.U16, 45: ir.I8, 49: ir.U8, 53: ir.Bool, 81: ir.I64, 85: ir.U64, 121: ir.BF16,
}

// newKernels prepares to describe the kernels of the steps that become graphs.
func newKernels(ctx context.Context, w *world, l *Log, o *Options) *kernels {
	k := &kernels{
		ctx: ctx, log: l, options: o, silent: map[string]string{}, unknown: map[string][]string{}, paths: map[*library]ir.Library{}, metallibs: map[*library]*metallib.Library{},
		compiled: map[string]*air.Kernel{}, units: map[string]*mslc.Unit{}, unread: map[string]map[int][]bool{}, functions: map[*library][]string{}, done: map[*pipeline]described{}, blobs: map[writing]*ir.Blob{}, wrote: map[*buffer]int{},
	}
	seen := map[string]bool{}
	for _, s := range w.steps {
		if !w.graph(s) {
			continue
		}
		for i := range s.commands {
			if p := s.commands[i].code; p != nil && !seen[key(p.library, p.function)] {
				seen[key(p.library, p.function)] = true
				k.functions[p.library] = append(k.functions[p.library], p.function)
			}
		}
	}
	return k
}

// described is what kernels.of returns.
type described struct {
	kernel ir.Kernel
	known  bool
	err    error
}

// of returns the kernel of a pipeline, as its code describes it. Of code that cannot be described here what is bound says all
// that is known: known is false.
func (k *kernels) of(p *pipeline) (ir.Kernel, bool, error) {
	d, ok := k.done[p]
	if !ok {
		d.kernel, d.known, d.err = k.make(p)
		k.done[p] = d
	}
	return d.kernel, d.known, d.err
}

func (k *kernels) make(p *pipeline) (out ir.Kernel, known bool, err error) {
	if k.options.Builtin {
		if ds := msl.Declarations(p.function); len(ds) > 0 && ds[0].MLX {
			return k.declared(p, ds)
		}
	}
	lib, err := k.library(p.library)
	if err != nil {
		return out, false, err
	}
	compiled, err := k.describe(p)
	if err != nil {
		return out, false, err
	}
	if compiled == nil {
		out, _, err = k.withConstants(ir.Kernel{Name: p.function, Library: lib, Function: p.function}, p, true, nil)
		return out, false, err
	}
	out, err = bind.Kernel(compiled, lib)
	return k.withConstants(out, p, false, err)
}

// declared returns the kernel of the builtin library that has a pipeline's name, with those of its constants that some declaration has.
func (k *kernels) declared(p *pipeline, ds []*decl.Decl) (ir.Kernel, bool, error) {
	widest := slices.MaxFunc(ds, func(a, b *decl.Decl) int { return len(a.Args) - len(b.Args) })
	out := widest.Kernel(p.function)
	k.byName = append(k.byName, p.function)
	for _, d := range ds {
		for _, c := range d.Constants {
			if !slices.ContainsFunc(out.Constants, func(f ir.FunctionConstant) bool { return f.Index == c.Index }) {
				out.Constants = append(out.Constants, ir.FunctionConstant{Index: c.Index, Name: c.Name, Type: c.Type})
			}
		}
	}
	slices.SortFunc(out.Constants, func(a, b ir.FunctionConstant) int { return int(a.Index) - int(b.Index) })
	return k.withConstants(out, p, false, nil)
}

// withConstants gives a kernel the values of its function constants, or, with all, every constant of the pipeline.
func (k *kernels) withConstants(out ir.Kernel, p *pipeline, all bool, err error) (ir.Kernel, bool, error) {
	fault := func(format string, args ...any) (ir.Kernel, bool, error) {
		return out, false, k.log.fault(p.offset, "kernel %s: %s", p.function, fmt.Sprintf(format, args...))
	}
	if err != nil {
		return fault("%v", err)
	}
	out.Constants = slices.Clone(out.Constants)
	for _, c := range p.constants {
		t, ok := dataTypes[c.typ]
		if !ok {
			return fault("function constant %d is of Metal's type %d, which a graph cannot give", c.index, c.typ)
		}
		i := slices.IndexFunc(out.Constants, func(f ir.FunctionConstant) bool { return uint32(f.Index) == c.index })
		switch {
		case c.index > 1<<16-1:
			return fault("function constant %d", c.index)
		case i >= 0:
			out.Constants[i].Bits = c.bits
		case all: // it is not known which ones the kernel has
			out.Constants = append(out.Constants, ir.FunctionConstant{Index: uint16(c.index), Type: t, Bits: c.bits})
		}
	}
	return out, true, nil
}

// library returns a library as the module names it, and adds its file.
func (k *kernels) library(l *library) (ir.Library, error) {
	if out, ok := k.paths[l]; ok {
		return out, nil
	}
	digest := ir.Digest(sha256.Sum256(l.code))
	out := ir.Library{Kind: ir.SourceFile, Digest: digest}
	suffix := ".metal"
	if l.kind == "metallib" {
		out.Kind, suffix = ir.Metallib, ".metallib"
	}
	base := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' || r == '_') {
			return r
		}
		return '_'
	}, strings.TrimSuffix(path.Base(strings.ReplaceAll(l.name, "\\", "/")), suffix))
	out.Path = path.Join(k.options.Folder, fmt.Sprintf("%.40s-%.12s%s", base, digest, suffix))
	k.paths[l] = out
	if !slices.ContainsFunc(k.files, func(f File) bool { return f.Path == out.Path }) {
		k.files = append(k.files, File{out.Path, l.code})
	}
	return out, nil
}

// describe returns the interface of a pipeline's code; nil if nothing here can read it.
func (k *kernels) describe(p *pipeline) (*air.Kernel, error) {
	if out, ok := k.compiled[key(p.library, p.function)]; ok {
		return out, nil
	}
	out, err := k.read(p)
	if err != nil {
		if k.ctx.Err() != nil {
			return nil, context.Cause(k.ctx)
		}
		k.silent[key(p.library, p.function)] = err.Error()
		why := fmt.Sprintf("of %s, of which only what is bound is known (%v)", p.library.name, err)
		if k.unknown[why] == nil {
			k.reasons = append(k.reasons, why)
		}
		k.unknown[why] = append(k.unknown[why], p.function)
	}
	k.compiled[key(p.library, p.function)] = out
	return out, nil
}

func (k *kernels) read(p *pipeline) (*air.Kernel, error) {
	l := p.library
	if l.kind == "metallib" {
		lib := k.metallibs[l]
		if lib == nil {
			var err error
			if lib, err = metallib.Parse(l.name, l.code); err != nil {
				return nil, err
			}
			k.metallibs[l] = lib
		}
		return lib.Describe(p.function)
	}
	for _, functions := range [][]string{k.functions[l], {p.function}} { // one that does not compile must not hide the others
		u, err := mslc.Compile(k.ctx, l.name, string(l.code), mslc.Options{Kernels: functions, Trust: k.options.Trust, FastMath: l.fast})
		if err != nil && len(functions) > 1 && k.ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range u.Kernels {
			k.compiled[key(l, u.Kernels[i].Name)] = &u.Kernels[i]
			k.units[key(l, u.Kernels[i].Name)] = u
		}
		break
	}
	if out := k.compiled[key(l, p.function)]; out != nil {
		return out, nil
	}
	return nil, fmt.Errorf("it has no kernel %s", p.function)
}

func key(l *library, function string) string { return fmt.Sprint(l.id, " ", function) }
