package msl

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"sync"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

//go:embed *.metal
var sources embed.FS

// Source returns the Metal source file called name ("norm.metal").
func Source(name string) (string, error) {
	b, err := sources.ReadFile(name)
	return string(b), err
}

// Files returns the names of the Metal sources, sorted.
func Files() []string {
	names, err := fs.Glob(sources, "*.metal")
	if err != nil {
		panic(err) // the pattern is constant
	}
	return names
}

var load = sync.OnceValues(func() (map[string][]*decl.Decl, error) {
	out := map[string][]*decl.Decl{}
	for _, f := range Files() {
		src, err := Source(f)
		if err != nil {
			return nil, err
		}
		ds, err := decl.Parse(f, src)
		if err != nil {
			return nil, err
		}
		for _, d := range ds {
			out[d.Name] = append(out[d.Name], d)
		}
	}
	return out, nil
})

// Declarations returns the declarations of the function called name, in the
// order of the source; nil if the library has no such function. It panics on a
// source whose declarations do not parse: a test of this package parses all.
func Declarations(name string) []*decl.Decl {
	m, err := load()
	if err != nil {
		panic(err)
	}
	return m[name]
}

// DeclarationsOf returns the declarations of a kernel: those of its function if
// it is builtin, the one that its term makes if it is generated. Kernels of
// other libraries have none; that is an error, and so are unknown functions and
// terms that are none.
func DeclarationsOf(k *ir.Kernel) ([]*decl.Decl, error) {
	switch k.Library.Kind {
	case ir.Builtin:
		if ds := Declarations(k.Function); len(ds) > 0 {
			return ds, nil
		}
		return nil, fmt.Errorf("the builtin library has no function %q", k.Function)
	case ir.Generated:
		return generated(k.Function)
	}
	return nil, fmt.Errorf("kernel @%s is of library %q, which has no declarations", ir.QuoteName(k.Name), k.Library.Path)
}

// generatedCache holds declarations of generated kernels by their text: a graph
// asks for the same few again and again. It starts anew when it is full.
var generatedCache struct {
	sync.Mutex
	of map[string][]*decl.Decl
}

const maxGeneratedCache = 1024

func generated(text string) ([]*decl.Decl, error) {
	c := &generatedCache
	c.Lock()
	ds := c.of[text]
	c.Unlock()
	if ds != nil {
		return ds, nil
	}
	d, err := decl.Elementwise(text)
	if err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	if c.of == nil || len(c.of) >= maxGeneratedCache {
		c.of = map[string][]*decl.Decl{}
	}
	c.of[text] = []*decl.Decl{d}
	return c.of[text], nil
}

// Functions returns the names of all declared functions, sorted.
func Functions() []string {
	m, err := load()
	if err != nil {
		panic(err)
	}
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// Bind finds the declaration that describes a dispatch of a builtin kernel and
// applies it. The error of a function with several declarations is the last
// one's.
func Bind(g *ir.Graph, d *ir.Dispatch) (*decl.Instance, error) {
	k := &g.Kernels[d.Kernel]
	ds, err := DeclarationsOf(k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.ID, err)
	}
	// Executors believe the argument table: what it calls read-only they may map
	// from a file.
	if want := ds[0].Kernel(k.Name).Args; !slices.Equal(k.Args, want) {
		return nil, fmt.Errorf("%s: the argument table of kernel @%s is not that of the %s function %s", d.ID, ir.QuoteName(k.Name), k.Library.Kind, k.Function)
	}
	for _, x := range ds {
		var in *decl.Instance
		if in, err = x.Bind(g, d); err == nil {
			return in, nil
		}
	}
	return nil, err
}

// Describe applies the declaration that describes a dispatch of a builtin
// kernel and returns its effects. A dispatch that no declaration describes, that
// touches bytes outside its views, or whose views overlap as the kernel does
// not allow, is an error: it must not run.
func Describe(g *ir.Graph, d *ir.Dispatch) (*ir.Effects, error) {
	in, err := Bind(g, d)
	if err != nil {
		return nil, err
	}
	e, err := in.Effects()
	if err != nil {
		return nil, err
	}
	return e, in.CheckAliasing()
}
