package msl

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mlxc/mlxc/internal/files/regular"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

//go:embed *.h *.metal
var embedded embed.FS

// Own returns the files of this package: sources as they are written, and the headers that they include.
func Own() fs.FS { return embedded }

// library holds the declarations of all sources. It is immutable: [Register] makes a new one.
type library struct {
	texts     map[string]string // by file
	sources   map[string]*decl.Source
	functions map[string]*kernel
	digests   map[ir.Digest]string  // the files of registered texts
	others    map[elsewhere]*kernel // the declarations of kernels that other files hold
	version   int
}

// kernel has the declarations of one name. Their lines are read when they are first asked for.
type kernel struct {
	members []*decl.Member
	read    func() []*decl.Decl
}

// with returns k, which may be nil, with one more declaration.
func (k *kernel) with(m *decl.Member) *kernel {
	out := &kernel{members: []*decl.Member{m}}
	if k != nil {
		out.members = append(slices.Clone(k.members), m)
	}
	out.read = sync.OnceValue(func() (ds []*decl.Decl) {
		for _, m := range out.members {
			d, err := m.Decl()
			if err != nil {
				panic(err) // INVARIANT: Register has read those of its text, and a test those of the embedded sources.
			}
			ds = append(ds, d)
		}
		return ds
	})
	return out
}

// elsewhere names a kernel of another file.
type elsewhere struct {
	kind     ir.LibraryKind
	digest   ir.Digest
	function string
}

var current struct {
	sync.Mutex // of Register
	atomic.Pointer[library]
}

// load returns the library of the embedded and the registered sources. It panics if the
// declarations of an embedded source are wrong; a test of this package reads all of them.
func load() *library {
	if l := current.Load(); l != nil {
		return l
	}
	current.Lock()
	defer current.Unlock()
	if l := current.Load(); l != nil {
		return l
	}
	l := &library{texts: map[string]string{}, sources: map[string]*decl.Source{}, functions: map[string]*kernel{}, digests: map[ir.Digest]string{}, others: map[elsewhere]*kernel{}}
	sources, headers := own()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if err := l.add(name, sources[name], headers); err != nil {
			panic(err)
		}
	}
	current.Store(l)
	return l
}

// own are the embedded sources and headers, by file.
func own() (sources, headers map[string]string) {
	sources, headers = map[string]string{}, map[string]string{}
	files, err := embedded.ReadDir(".")
	for _, f := range files {
		var text []byte
		if text, err = embedded.ReadFile(f.Name()); err != nil {
			break
		}
		if filepath.Ext(f.Name()) == ".h" {
			headers[f.Name()] = string(text)
		} else {
			sources[f.Name()] = string(text)
		}
	}
	if err != nil {
		panic(err) // INVARIANT: the files are part of the program.
	}
	return sources, headers
}

// add adds a source, which may include headers.
func (l *library) add(file, text string, headers map[string]string) error {
	if _, ok := l.texts[file]; ok {
		return fmt.Errorf("the library has a source %s: give the file another name", file)
	}
	src, err := decl.Index(file, text, headers)
	if err != nil {
		return err
	}
	if len(src.Members) == 0 {
		return fmt.Errorf("%s declares no kernel: put a declaration, which begins with // @kernel NAME, above each (docs/kernels.md)", file)
	}
	for _, d := range src.Members {
		if d.Of != nil {
			of := elsewhere{d.Of.Kind, d.Of.Digest, d.Name}
			if have := l.others[of]; have != nil && have.members[0].File != file {
				return fmt.Errorf("%s:%d: %s:%d declares the kernel %s of %s: leave one of them out", file, d.Line, have.members[0].File, have.members[0].Line, d.Name, d.Of.Path)
			}
			l.others[of] = l.others[of].with(d)
			continue
		}
		if have := l.functions[d.Name]; have != nil && have.members[0].File != file {
			return fmt.Errorf("%s:%d: %s:%d declares the kernel %s: give this one another name", file, d.Line, have.members[0].File, have.members[0].Line, d.Name)
		}
		l.functions[d.Name] = l.functions[d.Name].with(d)
	}
	l.texts[file], l.sources[file] = withHeaders(file, text, headers), src
	return nil
}

// Register adds a Metal source with declarations to the library. Recorders, passes and the prover
// then know its kernels like all others. Devices run them if they can;
// [github.com/mlxc/mlxc/backend/cpu.Register] gives the CPU their twins. It is an error if the
// library already has the file or a kernel of it, or if declarations do not parse. Register sources
// before you read the graphs that use them. A graph names such a kernel as one of the library, or
// as one of a source file with the digest of the text. Declarations behind a @library line describe
// kernels of that file, not of the text.
func Register(file, text string) error {
	l := load()
	current.Lock()
	defer current.Unlock()
	l = current.Load() // another call of Register may have been faster
	next := &library{maps.Clone(l.texts), maps.Clone(l.sources), maps.Clone(l.functions), maps.Clone(l.digests), maps.Clone(l.others), l.version + 1}
	if err := next.add(file, text, nil); err != nil {
		return err
	}
	if _, err := next.sources[file].Tests(); err != nil {
		return err
	}
	next.digests[sha256.Sum256([]byte(text))] = file
	current.Store(next)
	return nil
}

// Declared reports whether a kernel has declarations, so that it is known what it touches and,
// unless they are declarations of effects ([EffectsOnly]), what it computes. Kernels of the library
// and generated kernels have declarations. So do kernels of a file that was given to [Register], or
// that a text given to it declares.
func Declared(k *ir.Kernel) bool { return k.Library.Declared() || ofFile(k) != nil }

// EffectsOnly reports whether the declarations of a kernel say only what it touches, and not what
// it computes.
func EffectsOnly(k *ir.Kernel) bool {
	if k.Library.Kind == ir.Generated {
		return false
	}
	ds, err := DeclarationsOf(k)
	return err == nil && ds[0].EffectsOnly
}

// ofFile returns the declarations of a kernel of a source file or compiled library, or nil if it
// has none. A graph may name a source without a digest (all zeros). Then the file's contents do not
// matter, here as in [SourceOf]: a source of the same name declares its kernels.
func ofFile(k *ir.Kernel) []*decl.Decl {
	l := load()
	if l.version == 0 || k.Library.Declared() {
		return nil
	}
	if ds := l.others[elsewhere{k.Library.Kind, k.Library.Digest, k.Function}]; ds != nil {
		return ds.read()
	}
	if k.Library.Kind != ir.SourceFile {
		return nil
	}
	file, ok := l.digests[k.Library.Digest]
	if k.Library.Digest == (ir.Digest{}) { // only the name is known, and any contents will do
		file = filepath.Base(k.Library.Path)
		_, ok = l.texts[file]
	}
	if ds := l.functions[k.Function]; ok && ds != nil && ds.members[0].File == file {
		return ds.read()
	}
	return nil
}

// TextOf returns the Metal source of a kernel of a source file. ok is false if it was not given to
// [Register].
func TextOf(k *ir.Kernel) (string, bool) {
	l := load()
	file, ok := l.digests[k.Library.Digest]
	if !ok || k.Library.Kind != ir.SourceFile {
		return "", false
	}
	return l.texts[file], true
}

// SourceOf returns the text of the source file that holds a kernel: the text that was given to
// [Register], or else that of the file, whose digest must be the one that the graph names.
func SourceOf(k *ir.Kernel) (string, error) {
	if text, ok := TextOf(k); ok {
		return text, nil
	}
	text, err := regular.Read(k.Library.Path, sourceBytes)
	if err != nil {
		return "", err
	}
	if at := noText(text); at >= 0 {
		return "", fmt.Errorf("%s: byte %d is no UTF-8 text, which Metal's compiler takes alone: save it as UTF-8", k.Library.Path, at)
	}
	if sum := sha256.Sum256(text); k.Library.Digest != (ir.Digest{}) && k.Library.Digest != ir.Digest(sum) {
		return "", fmt.Errorf("%s has the digest %x, the graph was recorded with %v: give it the source that it was recorded with", k.Library.Path, sum, k.Library.Digest)
	}
	return string(text), nil
}

// sourceBytes is the max size of a source file.
const sourceBytes = 64 << 20

// noText returns the index of the first byte that is zero or not UTF-8, or -1.
func noText(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// Registered returns the source that declares a kernel. ok is false unless that source was given to
// [Register].
func Registered(k *ir.Kernel) (file string, ok bool) {
	if k.Library.Kind == ir.Generated {
		return "", false
	}
	ds, err := DeclarationsOf(k)
	if err != nil {
		return "", false
	}
	_, err = fs.Stat(embedded, ds[0].File)
	return ds[0].File, err != nil
}

// Version is a number that increases whenever the library gains a source.
func Version() int { return load().version }

// Source returns the text of the Metal source called name ("norm.metal"), as it is compiled: the headers that it
// includes stand in it, between #line directives.
func Source(name string) (string, error) {
	if text, ok := load().texts[name]; ok {
		return text, nil
	}
	return "", fmt.Errorf("the library has no source %s", name)
}

// Files returns the names of the Metal sources, sorted. It leaves out texts that only declare
// kernels of other files.
func Files() (out []string) {
	for file, src := range load().sources {
		if slices.ContainsFunc(src.Members, func(d *decl.Member) bool { return d.Of == nil }) {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

// Functions returns the names of all declared functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(load().functions)) }

// FunctionsWithout returns the names of the functions that have a declaration without arguments of these element types,
// sorted. A graph that holds no such elements needs no other function.
func FunctionsWithout(types ...ir.DType) []string {
	var out []string
	for name, k := range load().functions {
		if slices.ContainsFunc(k.members, func(m *decl.Member) bool { return !takes(m, types) }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// takes reports whether a declaration has an argument with elements of one of these types.
func takes(m *decl.Member, types []ir.DType) bool {
	return slices.ContainsFunc(types, func(t ir.DType) bool {
		yes, err := m.Takes(t)
		if err != nil {
			panic(err) // INVARIANT: as in with.
		}
		return yes
	})
}

// PlainLoops is the source of kernels that nobody has tuned. Operations of MLX take them; those of a session take the tuned
// kernels of other sources, and fusion chooses none of them.
const PlainLoops = "code_products.metal"

// FileOf returns the source of the function called name, without reading its declarations; "" if the library has no such
// function.
func FileOf(name string) string {
	if k := load().functions[name]; k != nil {
		return k.members[0].File
	}
	return ""
}

// Declarations returns the declarations of the function called name, in the
// order of the source; nil if the library has no such function.
func Declarations(name string) []*decl.Decl {
	if k := load().functions[name]; k != nil {
		return k.read()
	}
	return nil
}

// Tests returns what a Metal source says for tests of its declarations.
func Tests(file string) (*decl.Tests, error) {
	if s := load().sources[file]; s != nil {
		return s.Tests()
	}
	return nil, fmt.Errorf("the library has no source %s", file)
}

// DeclarationsOf returns the declarations of a kernel: those of its function if it is builtin or of
// a registered source, or the one that its term makes if it is generated. It returns an error for a
// kernel of another library, an unknown function, or an invalid term.
func DeclarationsOf(k *ir.Kernel) ([]*decl.Decl, error) {
	switch k.Library.Kind {
	case ir.Builtin:
		if ds := Declarations(k.Function); len(ds) > 0 {
			return ds, nil
		}
		return nil, fmt.Errorf("the builtin library has no function %q", k.Function)
	case ir.Generated:
		return generated(k.Function)
	default:
		if ds := ofFile(k); ds != nil {
			return ds, nil
		}
	}
	return nil, fmt.Errorf("kernel @%s is of library %q, which has no declarations", ir.QuoteName(k.Name), k.Library.Path)
}

// generatedCache holds the declarations of generated kernels by their texts, because a graph asks
// for the same few again and again. It is emptied when it is full.
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
	if invariants.Caches && ds != nil {
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

// Bind finds the declaration that describes a dispatch of a declared kernel, and applies it. If a
// function has several declarations and none fits, the error is that of the last one.
func Bind(g *ir.Graph, d *ir.Dispatch) (*decl.Instance, error) {
	k := &g.Kernels[d.Kernel]
	ds, err := DeclarationsOf(k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.ID, err)
	}
	// Executors rely on the argument table: they may map from a file what it calls read-only.
	if ds[0].EffectsOnly {
		return bindEffects(g, d, k, ds)
	}
	for _, x := range ds {
		if !slices.Equal(k.Args, x.Kernel(k.Name).Args) {
			continue // one for other function constants, or none of this kernel
		}
		var in *decl.Instance
		if in, err = x.Bind(g, d); err == nil {
			return in, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s: the argument table of kernel @%s is not that of the %s function %s", d.ID, ir.QuoteName(k.Name), k.Library.Kind, k.Function)
	}
	return nil, err
}

// bindEffects is [Bind] for declarations of effects. The recorder of the graph made the argument
// table. It may list more accesses than the declaration, which may know that an argument is not
// touched, or only read.
func bindEffects(g *ir.Graph, d *ir.Dispatch, k *ir.Kernel, ds []*decl.Decl) (*decl.Instance, error) {
	var err error
	for _, x := range ds {
		if err = fitsTable(x, k); err != nil {
			err = fmt.Errorf("%s: %w", d.ID, err)
			continue
		}
		var in *decl.Instance
		if in, err = x.Bind(g, d); err == nil {
			return in, nil
		}
	}
	return nil, err
}

// fitsTable returns an error if a declaration of effects contradicts a kernel's argument table.
func fitsTable(x *decl.Decl, k *ir.Kernel) error {
	at := func(a *decl.Arg, format string, args ...any) error {
		return fmt.Errorf("kernel @%s: argument %d (%s) %s (%s:%d)", ir.QuoteName(k.Name), a.Slot, a.Name, fmt.Sprintf(format, args...), x.File, x.Line)
	}
	for i := range k.Args {
		t := &k.Args[i]
		if t.Kind != ir.DeviceArg {
			continue
		}
		if !slices.ContainsFunc(x.Args, func(a decl.Arg) bool { return a.Slot == t.Slot && a.Kind != ir.ThreadgroupArg }) {
			return fmt.Errorf("kernel @%s has argument %d (%s), of which %s:%d says nothing", ir.QuoteName(k.Name), t.Slot, t.Name, x.File, x.Line)
		}
	}
	for i := range x.Args {
		a := &x.Args[i]
		if a.Mode == decl.Unused || a.Kind == ir.ThreadgroupArg {
			continue
		}
		switch t, ok := k.Arg(a.Slot); {
		case !ok:
			return at(a, "is declared, and not in the table of the graph")
		case t.Kind != a.Kind || t.Type != a.Type || t.Count != 0 && t.Count != a.Count && a.Kind == ir.ConstantArg:
			return at(a, "is declared as %s %s, the table of the graph has %s %s", a.Kind, a.Type, t.Kind, t.Type)
		case a.Mode >= decl.Write && t.Access == ir.ReadArg:
			return at(a, "is declared to be written, by the table of the graph it is only read")
		}
	}
	return nil
}

// Describe returns the effects of a dispatch, from the declaration that describes it. It is an
// error if no declaration describes the dispatch, if it touches bytes outside its views, or if its
// views overlap in a way that the kernel does not allow. Such a dispatch must not run.
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
