//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
)

// libraries finds the functions of kernels: in .metallib files, each opened once in the life of a device,
// and in Metal sources, of which the functions that are needed are compiled.
type libraries struct {
	device  *Device
	options objc.ID // MTLCompileOptions

	mu          sync.Mutex
	files       map[string]*once[*file] // by path
	sources     map[ir.Library]*source
	precompiled struct {
		opened, lacks sync.Once
		file          *file // nil: there is none that can be used
	}
}

// file is an opened .metallib.
type file struct {
	library   objc.ID
	functions map[string]bool
	digest    func() ([sha256.Size]byte, error) // SHA-256 of the file, computed when it is first asked for
}

// source is a Metal source with the libraries that were compiled of it so far.
type source struct {
	text func() (string, error)

	mu   sync.Mutex
	made []part
}

// part is a library that was compiled of some functions of a source.
type part struct {
	library   objc.ID
	digest    [sha256.Size]byte // SHA-256 of the text that was compiled
	functions []string          // the functions that it was compiled for
}

// home is where a function comes from: a library, or else a source, which may still have to be compiled.
type home struct {
	library  objc.ID
	source   *source
	function string
}

func newLibraries(d *Device) (*libraries, error) {
	l := &libraries{device: d, files: map[string]*once[*file]{}, sources: map[ir.Library]*source{}}
	if l.options = objc.New("MTLCompileOptions"); l.options == 0 {
		return nil, errors.New("there is no class MTLCompileOptions")
	}
	// The same options for all kernels: IEEE infinities and NaNs, precise functions and Metal 3.1, which
	// has bfloat. Contraction is switched off by a pragma in each source.
	objc.SetLanguageVersion.Send(l.options, uintptr(objc.LanguageVersion3_1))
	if objc.Responds(l.options, objc.SetMathMode) {
		objc.SetMathMode.Send(l.options, uintptr(objc.MathModeSafe))
		objc.SetMathFunctions.Send(l.options, uintptr(objc.MathFunctionsPrecise)) // MathModeSafe alone would leave them fast
	} else {
		objc.SetFastMath.Send(l.options, 0)
	}
	return l, nil
}

func (l *libraries) close() {
	for _, x := range l.files {
		if x.value != nil {
			objc.Release(x.value.library)
		}
	}
	for _, s := range l.sources {
		for _, p := range s.made {
			objc.Release(p.library)
		}
	}
	l.files, l.sources = nil, nil
	objc.Release(l.options)
}

// home returns where the function of a plan's pipeline comes from.
func (l *libraries) home(g *ir.Graph, k *plan.Pipeline) (home, error) {
	if k.Source != plan.FromGraph {
		return l.ours(k.Entry(), ir.Library{Path: plan.MovesFile}, func() (string, error) { return plan.Moves, nil }), nil
	}
	x := &g.Kernels[k.Kernel]
	switch x.Library.Kind {
	case ir.Metallib:
		f, err := l.file(x.Library)
		if err != nil {
			return home{}, err
		}
		return home{library: f.library, function: x.Function}, nil
	case ir.Generated:
		d, err := decl.Elementwise(x.Function)
		if err != nil {
			return home{}, err
		}
		// The function's name determines the text.
		return l.in(elementwise.Function, ir.Library{Kind: ir.Generated, Path: x.Function}, func() (string, error) { return elementwise.Compile(d).Source(), nil }), nil
	case ir.Builtin:
		if path := l.device.options.Library; path != "" {
			f, err := l.file(ir.Library{Kind: ir.Metallib, Path: path})
			if err != nil {
				return home{}, err
			}
			if f.functions[x.Function] {
				return home{library: f.library, function: x.Function}, nil
			}
		}
		ds := msl.Declarations(x.Function)
		if len(ds) == 0 {
			return home{}, fmt.Errorf("there is no kernel %q", x.Function)
		}
		name := ds[0].File
		return l.ours(x.Function, ir.Library{Path: name}, func() (string, error) { return msl.Source(name) }), nil
	case ir.SourceFile:
		own := ir.Kernel{Library: x.Library, Function: x.Function}
		return l.in(x.Function, x.Library, func() (string, error) { return msl.SourceOf(&own) }), nil
	}
	return home{}, fmt.Errorf("a library of kind %s is not known here", x.Library.Kind)
}

// in returns a home in the source that id names. text returns the source's text; it is called when some
// of it is compiled, and must always return the same.
func (l *libraries) in(function string, id ir.Library, text func() (string, error)) home {
	s := entry(&l.mu, l.sources, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil {
		s.text = text
	}
	return home{source: s, function: function}
}

// library returns the library that has the function of h, compiled if it is not yet.
func (l *libraries) library(h home) (objc.ID, error) {
	if h.source == nil {
		return h.library, nil
	}
	if err := l.make(h.source, []string{h.function}); err != nil {
		return 0, err
	}
	h.source.mu.Lock()
	defer h.source.mu.Unlock()
	return h.source.part(h.function).library, nil
}

// part returns the compiled part that has a function, nil if none has.
func (s *source) part(function string) *part {
	for i := range s.made {
		if slices.Contains(s.made[i].functions, function) {
			return &s.made[i]
		}
	}
	return nil
}

// make compiles those of the functions that no part of the source has yet, into one library.
func (l *libraries) make(s *source, functions []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := slices.DeleteFunc(slices.Clone(functions), func(f string) bool { return s.part(f) != nil })
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	text, err := s.text()
	if err != nil {
		return err
	}
	text = msl.Only(text, missing)
	digest := sha256.Sum256([]byte(text))
	// If the source has no templates, msl.Only leaves out nothing, and the text was compiled before.
	if i := slices.IndexFunc(s.made, func(p part) bool { return p.digest == digest }); i >= 0 {
		s.made[i].functions = append(s.made[i].functions, missing...)
		return nil
	}
	lib, err := l.compile(text)
	if err != nil {
		return err
	}
	s.made = append(s.made, part{lib, digest, missing})
	return nil
}

// compile makes an MTLLibrary of a Metal source.
func (l *libraries) compile(text string) (lib objc.ID, err error) {
	if err := objc.Text(text); err != nil {
		return 0, fmt.Errorf("the source does not compile: %w", err)
	}
	objc.Pool(func() {
		var r uintptr
		r, err = objc.WithError(objc.NewLibraryWithSource, func(slot uintptr) uintptr {
			return objc.NewLibraryWithSource.Send(l.device.id, uintptr(objc.String(text)), uintptr(l.options), slot)
		})
		lib = objc.ID(r)
	})
	if err != nil {
		err = fmt.Errorf("the source does not compile: %w", err)
	}
	return lib, err
}

// file opens a .metallib. An error if its digest is not the graph's, unless that is all zeros.
func (l *libraries) file(of ir.Library) (*file, error) {
	f, err := entry(&l.mu, l.files, of.Path).get(func() (*file, error) { return l.open(of.Path) })
	if err != nil || of.Digest == (ir.Digest{}) {
		return f, err
	}
	sum, err := f.digest()
	if err != nil {
		return nil, err
	}
	if ir.Digest(sum) != of.Digest {
		return nil, fmt.Errorf("%s has the digest %x, the graph was recorded with %v: give it the library that it was recorded with", of.Path, sum, of.Digest)
	}
	return f, nil
}

func (l *libraries) open(path string) (*file, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: nothing is read from it", path)
	}
	f := &file{functions: map[string]bool{}}
	f.digest = sync.OnceValues(func() (sum [sha256.Size]byte, err error) {
		data, err := os.ReadFile(path)
		return sha256.Sum256(data), err
	})
	var err error
	objc.Pool(func() {
		var url objc.ID
		if url, err = objc.FileURL(path); err != nil {
			return
		}
		var r uintptr
		r, err = objc.WithError(objc.NewLibraryWithURL, func(slot uintptr) uintptr {
			return objc.NewLibraryWithURL.Send(l.device.id, uintptr(url), slot)
		})
		if f.library = objc.ID(r); err != nil {
			return
		}
		for _, n := range objc.Objects(objc.FunctionNames.SendID(f.library)) {
			f.functions[objc.GoString(n)] = true
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
