package ptxcode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/kernelcode"
	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/backend/internal/ptxwrite"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Source finds kernels. See [New].
type Source struct {
	cache   *air.Cache
	library string
	archive func() (*prebuilt.Archive, error)
	trust   bool
	theirs  *prebuilt.Archive // has kernels of source files; nil: there is none
	image   func(ctx context.Context, in air.Input, launch nvptx.Launch) ([]byte, error)

	mu       sync.Mutex
	compiler *clang.Compiler // nil: it was not looked for, or not found
	code     *kernelcode.Source
	counts   Counts
}

// Counts says where texts came from.
type Counts struct {
	Prebuilt  int // compiled beforehand
	Generated int // written by package ptxwrite
	Cached    int // compiled by clang before, and kept in the cache
	Compiled  int // compiled by clang
	// Stale is how many of these the archive has only of another state of their source or of the compiler; Why
	// explains one.
	Stale int
	Why   string
	// Time is the time that it took to find all, summed over concurrent threads.
	Time time.Duration
}

// New returns a source whose compiled texts a cache keeps. library, if not "", is a .metallib from which
// kernels of our own library are taken where it has them.
func New(cache *air.Cache, library string) *Source {
	return &Source{cache: cache, library: library, archive: prebuilt.Own}
}

// Images has [Code.PTX] return what make returns for a kernel's module, for tests without a GPU. Descriptions are
// found as usual.
func (s *Source) Images(make func(ctx context.Context, in air.Input, launch nvptx.Launch) ([]byte, error)) {
	s.image = make
}

// Trust has kernels that are not ours compiled even where the compiler cannot be sandboxed.
func (s *Source) Trust() { s.trust = true }

// Beforehand has kernels of source files be taken from an archive, where it has them ([prebuilt.OfFile]), for tests
// on machines without a compiler.
func (s *Source) Beforehand(a *prebuilt.Archive) { s.theirs = a }

// Counts returns the counts so far.
func (s *Source) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Code is a kernel that was found: its description, and the means to get its PTX.
type Code struct {
	// Kernel says what is to be bound to its arguments.
	Kernel *air.Kernel
	// Matrices says that the kernel multiplies simdgroup matrices.
	Matrices bool

	source  *Source
	request *prebuilt.Request // what to ask an archive for; nil: nothing
	theirs  bool              // that archive is the one of source files
	term    *decl.Decl        // of a generated kernel
	in      *air.Input        // what clang compiles
	find    func(context.Context) (air.Input, error)
	mu      sync.Mutex // of in
}

// Find returns a kernel of a graph.
func (s *Source) Find(ctx context.Context, k *ir.Kernel) (*Code, error) {
	c := &Code{source: s, find: func(ctx context.Context) (air.Input, error) {
		code, err := s.toolchain(ctx)
		if err != nil && k.Library.Path != "" {
			return air.Input{}, fmt.Errorf("kernel %s of %s has to be compiled: %w", k.Function, k.Library.Path, err)
		} else if err != nil {
			return air.Input{}, err
		}
		return code.Find(ctx, k)
	}}
	switch {
	case k.Library.Kind == ir.Generated:
		d, err := decl.Elementwise(k.Function)
		if err != nil {
			return nil, err
		}
		c.term, c.Kernel = d, ptxwrite.Describe(d)
		return c, nil
	case k.Library.Kind == ir.Builtin && s.library == "":
		ds := msl.Declarations(k.Function)
		if len(ds) == 0 {
			return nil, fmt.Errorf("there is no kernel %q", k.Function)
		}
		text, err := msl.Source(ds[0].File)
		if err != nil {
			return nil, err
		}
		r := prebuilt.NewRequest(ds[0].File, text, k.Function)
		for _, v := range k.Constants {
			r.Constants = append(r.Constants, air.ConstantValue{Index: int(v.Index), Bits: v.Bits})
		}
		return c, c.described(ctx, &r)
	case k.Library.Kind == ir.SourceFile:
		text, err := msl.SourceOf(k)
		if err != nil {
			return nil, err // also where there is no compiler
		}
		if s.theirs == nil {
			break
		}
		r := prebuilt.OfFile(k.Library.Path, text, k.Function)
		for _, v := range k.Constants {
			r.Constants = append(r.Constants, air.ConstantValue{Index: int(v.Index), Bits: v.Bits})
		}
		c.theirs = true
		return c, c.described(ctx, &r)
	}
	return c, c.described(ctx, nil)
}

// Own returns a kernel of a Metal source that is part of the program.
func (s *Source) Own(ctx context.Context, file, text, function string) (*Code, error) {
	c := &Code{source: s, find: func(ctx context.Context) (air.Input, error) {
		code, err := s.toolchain(ctx)
		if err != nil {
			return air.Input{}, err
		}
		in, err := code.Own(ctx, file, text, function)
		return kernelcode.Declared(in, nil), err
	}}
	r := prebuilt.NewRequest(file, text, function)
	return c, c.described(ctx, &r)
}

// described finds the description of a kernel: in an archive, if it has what r asks for, or else by compiling it.
func (c *Code) described(ctx context.Context, r *prebuilt.Request) error {
	why := error(nil)
	if r != nil {
		c.request, c.Matrices = r, r.Matrices
		k, err := prebuiltIn(c, (*prebuilt.Archive).Describe, *r)
		if err == nil {
			c.Kernel = k
			return nil
		}
		why = err
	}
	in, err := c.input(ctx)
	if err != nil {
		return because(r, why, err)
	}
	c.Kernel = in.Kernel
	c.Matrices = bytes.Contains(in.IR, []byte("air.simdgroup_matrix_8x8_multiply"))
	return nil
}

// because adds to the error of a kernel that cannot be compiled why it is not taken from the archive.
func because(r *prebuilt.Request, why, err error) error {
	if why == nil {
		return err
	}
	return fmt.Errorf("kernel %s of %s has to be compiled, for %w; and %w", r.Function, r.File, why, err)
}

// errTheirs stands for the errors of an archive of source files' kernels that advise `make ptx`, which does not make
// it.
var errTheirs = errors.New("the archive that was given has it of another state of its source or of the compiler")

// prebuiltIn asks the archive that may have the kernel.
func prebuiltIn[T any](c *Code, ask func(*prebuilt.Archive, prebuilt.Request) (T, error), r prebuilt.Request) (found T, err error) {
	a := c.source.theirs
	if !c.theirs {
		if a, err = c.source.archive(); err != nil {
			return found, err
		}
	}
	found, err = ask(a, r)
	if c.theirs && (errors.Is(err, prebuilt.ErrStale) || errors.Is(err, prebuilt.ErrMaker)) {
		err = errTheirs
	}
	return found, err
}

// input returns what clang compiles, which is found once.
func (c *Code) input(ctx context.Context) (*air.Input, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in == nil {
		in, err := c.find(ctx)
		if err != nil {
			return nil, err
		}
		c.in = &in
	}
	return c.in, nil
}

// PTX returns the text of an entry as [nvptx.Compile] makes it.
func (c *Code) PTX(ctx context.Context, launch nvptx.Launch) (text []byte, err error) {
	if c.source.image != nil {
		in, err := c.input(ctx)
		if err != nil {
			return nil, err
		}
		return c.source.image(ctx, *in, launch)
	}
	began, counted := time.Now(), Counts{}
	defer func() {
		s := c.source
		s.mu.Lock()
		defer s.mu.Unlock()
		n := &s.counts
		n.Time += time.Since(began)
		if err == nil {
			n.Prebuilt, n.Generated, n.Cached, n.Compiled = n.Prebuilt+counted.Prebuilt, n.Generated+counted.Generated, n.Cached+counted.Cached, n.Compiled+counted.Compiled
			if n.Stale += counted.Stale; counted.Why != "" {
				n.Why = counted.Why
			}
		}
	}()
	if c.term != nil {
		counted.Generated++
		return ptxwrite.Emit(c.term, launch), nil
	}
	var why error
	if c.request != nil {
		r := *c.request
		r.Launch = launch
		k, err := prebuiltIn(c, (*prebuilt.Archive).Find, r)
		if err == nil {
			counted.Prebuilt++
			return k.PTX, nil
		}
		why = err
		if !errors.Is(err, prebuilt.ErrUnknown) {
			counted.Stale, counted.Why = 1, fmt.Sprintf("kernel %s of %s: %v", r.Function, r.File, err)
		}
	}
	in, err := c.input(ctx)
	if err != nil {
		return nil, because(c.request, why, err)
	}
	s := c.source
	counted.Cached++
	return s.cache.Data(ctx, nvptx.Key(*s.compiler, *in, launch), "kernel.ptx", func() ([]byte, error) {
		counted.Cached, counted.Compiled = 0, 1
		return nvptx.Compile(ctx, *s.compiler, *in, launch)
	})
}

// noCompiler is the error where there is no clang.
type noCompiler struct{ error }

// Is makes it a [backend.ErrNoCompiler].
func (noCompiler) Is(target error) bool { return target == backend.ErrNoCompiler }

// Unwrap returns what was looked for, and where.
func (e noCompiler) Unwrap() error { return e.error }

// toolchain finds clang, once it is needed.
func (s *Source) toolchain(ctx context.Context) (*kernelcode.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiler == nil {
		c, err := clang.Find(ctx)
		if err != nil && ctx.Err() == nil {
			return nil, noCompiler{err}
		} else if err != nil {
			return nil, err
		}
		c.Trust = s.trust
		s.compiler, s.code = &c, kernelcode.New(c, s.cache, s.library)
	}
	return s.code, nil
}

// Together compiles the kernels of a graph that are needed and stand in one source file in a few runs of the
// compiler ([kernelcode.Source.Together]). Without a compiler it does nothing: the error comes when they are found.
// Those of our own library are left out: most are prebuilt.
func (s *Source) Together(ctx context.Context, g *ir.Graph, needed []bool, workers int) {
	files := slices.Clone(needed)
	for i := range files {
		files[i] = files[i] && g.Kernels[i].Library.Kind == ir.SourceFile
	}
	if !slices.Contains(files, true) {
		return
	}
	if code, err := s.toolchain(ctx); err == nil {
		code.Together(ctx, g, files, workers)
	}
}
