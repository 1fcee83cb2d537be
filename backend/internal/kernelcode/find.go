package kernelcode

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/files/regular"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/toolchain/cage"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

// Source finds the code of kernels. See [New].
type Source struct {
	compiler clang.Compiler
	cache    *air.Cache
	builtin  string
	unset    bool // Unset was called

	mu   sync.Mutex
	open map[string]*library
}

// New returns a source whose modules a cache keeps. builtin, if not "", is a .metallib from which
// kernels of our own library are taken where it has them.
func New(c clang.Compiler, cache *air.Cache, builtin string) *Source {
	return &Source{compiler: c, cache: cache, builtin: builtin, open: map[string]*library{}}
}

// Unset makes the code of kernels of Metal sources say which variables nothing has set, for a checker that
// follows them (air.Input.Checked). It is called before anything is found.
func (l *Source) Unset() { l.unset = true }

// Find returns the code of a kernel, with the values of its function constants.
func (l *Source) Find(ctx context.Context, k *ir.Kernel) (air.Input, error) {
	in, err := l.code(ctx, k)
	if err != nil {
		return air.Input{}, err
	}
	in.Trusted = l.compilerFor(k).Trust
	for _, c := range k.Constants {
		in.Constants = append(in.Constants, air.ConstantValue{Index: int(c.Index), Bits: c.Bits})
	}
	return in, nil
}

// compilerFor is the compiler for a kernel: what is our own it compiles where it cannot be confined, too.
func (l *Source) compilerFor(k *ir.Kernel) clang.Compiler {
	c := l.compiler
	switch k.Library.Kind {
	case ir.Generated:
		c.Trust = true
	case ir.Builtin:
		c.Trust = c.Trust || l.builtin == ""
	case ir.SourceFile:
		// A source is our own by its text, wherever it lies.
		if text, err := msl.SourceOf(k); err == nil {
			c.Trust = c.Trust || ownTexts()[sha256.Sum256([]byte(text))]
		}
	}
	return c
}

// ownTexts are the digests of the sources of our own library.
var ownTexts = sync.OnceValue(func() map[[sha256.Size]byte]bool {
	out := map[[sha256.Size]byte]bool{}
	names, err := fs.Glob(msl.Own(), "*.metal")
	if err != nil {
		panic(err) // INVARIANT: the pattern is one.
	}
	for _, n := range names {
		text, err := msl.Source(n)
		if err != nil {
			panic(err) // INVARIANT: the files are part of the program.
		}
		out[sha256.Sum256([]byte(text))] = true
	}
	return out
})

// code is Find without the constants.
func (l *Source) code(ctx context.Context, k *ir.Kernel) (air.Input, error) {
	switch k.Library.Kind {
	case ir.Metallib:
		return l.compiled(ctx, k.Library.Path, k.Library.Digest, k.Function)
	case ir.Generated:
		d, err := decl.Elementwise(k.Function)
		if err != nil {
			return air.Input{}, err
		}
		return l.source(ctx, l.compilerFor(k), "generated.metal", elementwise.Compile(d).Source(), elementwise.Function)
	case ir.Builtin:
		if l.builtin != "" {
			lib, err := l.library(l.builtin, ir.Digest{})
			if err != nil {
				return air.Input{}, err
			}
			if _, err := lib.Kernel(k.Function); err == nil {
				return l.compiled(ctx, l.builtin, ir.Digest{}, k.Function)
			}
		}
		name, text, err := textOf(k)
		if err != nil {
			return air.Input{}, err
		}
		in, err := l.source(ctx, l.compilerFor(k), name, text, k.Function)
		if err != nil {
			return air.Input{}, err
		}
		return Declared(in, msl.Declarations(k.Function)), nil
	case ir.SourceFile:
		name, text, err := textOf(k)
		if err != nil {
			return air.Input{}, err
		}
		return l.source(ctx, l.compilerFor(k), name, text, k.Function)
	}
	return air.Input{}, fmt.Errorf("a library of kind %s is not known here", k.Library.Kind)
}

// textOf returns the Metal source that a kernel stands in, of our own library or of a file, and its name.
func textOf(k *ir.Kernel) (name, text string, err error) {
	if k.Library.Kind == ir.SourceFile {
		text, err = msl.SourceOf(k)
		return k.Library.Path, text, err
	}
	ds := msl.Declarations(k.Function)
	if len(ds) == 0 {
		return "", "", fmt.Errorf("there is no kernel %q", k.Function)
	}
	text, err = msl.Source(ds[0].File)
	return ds[0].File, text, err
}

// Declared returns a kernel of our own library, or without declarations one of those that plans are made of,
// with what a compiler may believe of it beside its code:
// that vectors lie at multiples of their sizes (docs/kernels.md), and of how many threads a threadgroup
// is, where the declarations say that in numbers, as fewer threads have more registers each.
func Declared(in air.Input, ds []*decl.Decl) air.Input {
	in.Aligned = true
	if n := threads(ds); n > 0 && in.Kernel.MaxThreadgroup == 0 {
		k := *in.Kernel
		k.MaxThreadgroup = n
		in.Kernel = &k
	}
	return in
}

// threads is how many a threadgroup has by the declarations of a kernel, at most; 0: they do not say it
// in numbers.
func threads(ds []*decl.Decl) int {
	most := int64(0)
	for _, d := range ds {
		n := int64(1)
		for _, x := range d.Group {
			if x.Check == nil || x.Check.Op != term.Number || x.Check.Num < 1 {
				return 0
			}
			n *= x.Check.Num
		}
		most = max(most, n)
	}
	return int(most)
}

// moduleKey is the key of a kernel's module, of a Metal source.
func (l *Source) moduleKey(name, text, function string) air.Key {
	h := sha256.New()
	fmt.Fprintf(h, "%x %s %d %q %q %v\n%s", mslc.Digest(), l.compiler.Path, l.compiler.Version, name, function, l.unset, text)
	return h.Sum(nil)
}

// Own returns a kernel of a Metal source that is part of the program, whose name is for errors.
func (l *Source) Own(ctx context.Context, name, text, function string) (air.Input, error) {
	c := l.compiler
	c.Trust = true
	in, err := l.source(ctx, c, name, text, function)
	in.Trusted = true
	return in, err
}

// source compiles a kernel of a Metal source, if the cache has it not: it alone, as the source
// may have thousands.
func (l *Source) source(ctx context.Context, c clang.Compiler, name, text, function string) (air.Input, error) {
	data, err := l.cache.Data(ctx, l.moduleKey(name, text, function), "module.json", func() ([]byte, error) {
		u, err := mslc.Compile(ctx, name, text, mslc.Options{Kernels: []string{function}, Lines: true, Trust: c.Trust, Unset: l.unset, Limits: limits(1)})
		if err != nil {
			return nil, err
		}
		return module(u, name, function)
	})
	return input(data, err)
}

// limits are what a compilation of so many kernels of a source may take: one of MLX's or ggml's takes a few seconds, most
// of which it is to read the source.
func limits(kernels int) cage.Limits {
	cpu := 2*time.Minute + time.Duration(kernels)*10*time.Second
	return cage.Limits{CPU: cpu, Time: 4 * cpu}
}

// Together compiles the kernels of a graph that are needed and stand in one source, a file or one of our own
// library, in a few runs of the compiler, so many side by side, for much of the work is to read the source,
// and leaves them in the cache. What goes wrong with a source shows again when its kernels are found, one by
// one.
func (l *Source) Together(ctx context.Context, g *ir.Graph, needed []bool, workers int) {
	type source struct {
		name, text string
		trust      bool
	}
	functions := map[source][]string{}
	var sources []source // in the order of the graph
	for i := range g.Kernels {
		k := &g.Kernels[i]
		if !needed[i] || k.Library.Kind != ir.SourceFile && (k.Library.Kind != ir.Builtin || l.builtin != "") {
			continue
		}
		name, text, err := textOf(k)
		if err != nil {
			continue
		}
		s := source{name, text, l.compilerFor(k).Trust}
		if functions[s] == nil {
			sources = append(sources, s)
		}
		functions[s] = append(functions[s], k.Function)
	}
	var wait sync.WaitGroup
	room := make(chan struct{}, max(1, workers))
	for _, s := range sources {
		key := func(function string) air.Key { return l.moduleKey(s.name, s.text, function) }
		missing := functions[s]
		slices.Sort(missing)
		missing = slices.DeleteFunc(slices.Compact(missing), func(f string) bool { return l.cache.Has(key(f), "module.json") })
		if len(missing) == 1 {
			continue // which is compiled where it is found
		}
		most := max(12, (len(missing)+2*workers-1)/max(1, 2*workers)) // kernels of a run, so that several run side by side
		for some := range slices.Chunk(missing, most) {
			room <- struct{}{}
			wait.Go(func() {
				defer func() { <-room }()
				u, err := mslc.Compile(ctx, s.name, s.text, mslc.Options{Kernels: some, Lines: true, Trust: s.trust, Unset: l.unset, Limits: limits(len(some))})
				for i := 0; err == nil && i < len(some); i++ {
					_, err = l.cache.Data(ctx, key(some[i]), "module.json", func() ([]byte, error) { return module(u, s.name, some[i]) })
				}
			})
		}
	}
	wait.Wait()
}

// module is a kernel of a unit as the cache has it.
func module(u *mslc.Unit, name, function string) ([]byte, error) {
	for i := range u.Kernels {
		if k := &u.Kernels[i]; k.Name == function {
			ir, err := u.Module(function)
			if err != nil {
				return nil, err
			}
			return json.Marshal(air.Input{Name: name, IR: []byte(ir), Kernel: k})
		}
	}
	return nil, fmt.Errorf("%s has no kernel %q", name, function)
}

func input(data []byte, err error) (in air.Input, _ error) {
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	return in, err
}

// compiled is a kernel of a .metallib with a digest.
func (l *Source) compiled(ctx context.Context, path string, digest ir.Digest, function string) (air.Input, error) {
	lib, err := l.library(path, digest)
	if err != nil {
		return air.Input{}, err
	}
	bitcode, err := lib.Bitcode(function)
	if err != nil {
		return air.Input{}, err
	}
	k, err := lib.Describe(function)
	if err != nil {
		return air.Input{}, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "disassembled %s %d\n%s", l.compiler.Path, l.compiler.Version, bitcode)
	text, err := l.cache.Data(ctx, h.Sum(nil), "module.ll", func() ([]byte, error) { return air.Disassemble(ctx, l.compiler, bitcode) })
	if err != nil {
		return air.Input{}, fmt.Errorf("%s: kernel %s: %w", path, function, err)
	}
	return air.Input{Name: path, IR: text, Kernel: k}, nil
}

// library opens a .metallib, once. It has the digest that a graph names, unless that is all zeros.
func (l *Source) library(path string, digest ir.Digest) (*metallib.Library, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lib := l.open[path]
	if lib == nil {
		data, err := regular.Read(path, libraryBytes)
		if err != nil {
			return nil, err
		}
		parsed, err := metallib.Parse(path, data)
		if err != nil {
			return nil, err
		}
		lib = &library{parsed, sha256.Sum256(data)}
		l.open[path] = lib
	}
	if digest != (ir.Digest{}) && digest != lib.digest {
		return nil, fmt.Errorf("%s has the digest %v, the graph was recorded with %v: give it the library that it was recorded with", path, lib.digest, digest)
	}
	return lib.Library, nil
}

// libraryBytes is how long a compiled library may be: MLX's has 160 million.
const libraryBytes = 2 << 30

// library is one that was opened.
type library struct {
	*metallib.Library
	digest ir.Digest
}
