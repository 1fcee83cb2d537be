package mslcheck

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

//go:embed shim
var shim embed.FS

// headers are the names under which sources include Metal's library. All of them are
// empty, because the rewritten source includes shim/msl.h.
var headers = []string{
	"metal_stdlib", "metal_atomic", "metal_common", "metal_compute", "metal_geometric", "metal_integer", "metal_math", "metal_matrix",
	"metal_relational", "metal_simdgroup", "metal_simdgroup_matrix", "metal_types", "metal_vector",
}

// Library is what a checked source defines.
type Library struct {
	Kernels   []Kernel // in the order of the source: kernels with [[host_name]] instances, and kernels that are no templates
	Constants []FunctionConstant
}

// Kernel is a function that a host can ask for.
type Kernel struct {
	Host     string  // its name in the library
	Function string  // its name in the source
	Line     int     // the line of the function
	Params   []Param // arguments in memory; thread positions are left out
	// ThreadgroupBytes is the size of its threadgroup variables, in bytes.
	ThreadgroupBytes int64
	// MaxThreads is [[max_total_threads_per_threadgroup]]; 0 if there is none.
	MaxThreads int64
}

// Param is an argument of a kernel in memory.
type Param struct {
	Name  string
	Space string // device, constant or threadgroup
	Slot  int    // its index among the buffers, or among the threadgroup arguments
	Type  string // the type of an element, with template parameters filled in
	Const bool
	// Count is the number of elements: 1 for a reference, n for an array T[n], and 0
	// for a pointer, which does not say.
	Count int64
	Used  bool // the body mentions it
}

// FunctionConstant is a constant that the host sets when it makes a pipeline.
type FunctionConstant struct {
	Index uint16
	Name  string
	Type  string
}

// Check checks the source of a Metal file. name stands for the file in messages. The
// error has one line for each mistake: NAME:LINE:COLUMN: error: TEXT.
func Check(ctx context.Context, name, source string) (*Library, error) {
	c, err := clang.Find(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mslcheck")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name = filepath.Base(name)
	if err := lay(dir, name, source); err != nil {
		return nil, err
	}
	pre, err := run(ctx, c, dir, "-E", "-x", "c++", "-std=c++17", "-I", "include", "-D__METAL__=1", "-D__METAL_VERSION__=310", "-D__METAL_MACOS__=1", "-D__HAVE_BFLOAT__=1", name)
	if err != nil {
		return nil, err
	}
	s, err := newStream(string(pre))
	if err != nil {
		return nil, err
	}
	u := parse(s)
	var errs []error
	for _, d := range u.check() {
		errs = append(errs, errors.New(d.String()))
	}
	cpp := name + ".cpp"
	if err := os.WriteFile(filepath.Join(dir, cpp), []byte(u.emit()), 0o600); err != nil {
		return nil, err
	}
	object := name + ".o"
	for _, pass := range []struct {
		name string
		args []string
	}{
		{"flat", []string{"-std=c++17", "-fsyntax-only"}},
		{"spaces", []string{"-std=c++14", "-fsyntax-only", "-DMSL_SPACES"}},
		{"object", []string{"-std=c++17", "-O1", "-c", "-o", object}},
	} {
		if len(errs) > 0 && pass.name == "object" {
			break // the next run would say the same again
		}
		if _, err := run(ctx, c, dir, append(append(append([]string(nil), language...), pass.args...), cpp)...); err != nil {
			errs = append(errs, fmt.Errorf("%w (pass %s)", err, pass.name))
			if pass.name == "flat" {
				break
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	compiled, err := os.ReadFile(filepath.Join(dir, object))
	if err != nil {
		return nil, err
	}
	return u.library(name, compiled)
}

// lay writes the shim, the empty headers and the source into dir.
func lay(dir, name, source string) error {
	if err := os.CopyFS(dir, shim); err != nil {
		return err
	}
	include := filepath.Join(dir, "include")
	if err := os.Mkdir(include, 0o700); err != nil {
		return err
	}
	for _, h := range headers {
		if err := os.WriteFile(filepath.Join(include, h), nil, 0o600); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a source cannot be called %s", name)
	}
	return os.WriteFile(path, []byte(source), 0o600)
}

// library describes the kernels of u, which was compiled to object.
func (u *unit) library(name string, object []byte) (*Library, error) {
	l := &Library{}
	entries := u.all()
	bytes, err := threadgroupBytes(object, len(entries))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, e := range entries {
		k := Kernel{Host: e.host, Function: e.f.name, Line: u.Tok[e.f.tok].Line, ThreadgroupBytes: bytes[i]}
		for _, a := range e.f.attrs {
			if a.name == "max_total_threads_per_threadgroup" {
				if k.MaxThreads, err = product(substitute(a.arg, e)); err != nil {
					return nil, fmt.Errorf("%s:%d: max_total_threads_per_threadgroup: %w", name, e.line, err)
				}
			}
		}
		for _, p := range e.f.params {
			for _, a := range p.attrs {
				if a.name != "buffer" && a.name != "threadgroup" {
					continue
				}
				slot, err := strconv.Atoi(a.arg)
				if err != nil {
					return nil, fmt.Errorf("%s:%d: parameter %s: %w", name, e.line, p.name, err)
				}
				q := Param{Name: p.name, Space: p.space, Slot: slot, Const: p.constant, Used: u.mentions(e.f, p.name), Type: substitute(u.typ(p), e)}
				switch p.shape {
				case reference:
					q.Count = 1
				case array:
					if q.Count, err = product(substitute(p.count, e)); err != nil {
						return nil, fmt.Errorf("%s:%d: length of %s: %w", name, e.line, p.name, err)
					}
				}
				k.Params = append(k.Params, q)
			}
		}
		l.Kernels = append(l.Kernels, k)
	}
	for _, v := range u.variables {
		for _, a := range v.attrs {
			if a.name != "function_constant" {
				continue
			}
			i, err := strconv.ParseUint(a.arg, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%s: function constant %s: %w", name, v.name, err)
			}
			l.Constants = append(l.Constants, FunctionConstant{Index: uint16(i), Name: v.name, Type: u.At(v.first + 1)})
		}
	}
	return l, nil
}

func (u *unit) typ(p parameter) string {
	var w []string
	for _, i := range p.typ {
		w = append(w, u.At(i))
	}
	return strings.Join(w, " ")
}

// mentions reports whether f's body mentions the parameter.
func (u *unit) mentions(f *function, name string) bool {
	for i := f.body; i < u.match[f.body]; i++ {
		if u.At(i) == name && u.Tok[i].Kind == Ident && u.At(i-1) != "." && u.At(i-1) != "->" {
			return true
		}
	}
	return false
}

// substitute fills the template arguments of e into text, which is a sequence of
// tokens.
func substitute(text string, e entry) string {
	w := strings.Fields(text)
	for i := range w {
		for j, n := range e.f.template {
			if w[i] == n && j < len(e.args) {
				w[i] = e.args[j]
			}
		}
	}
	return strings.Join(w, " ")
}

// product evaluates a product of integer literals, as attributes and array lengths
// contain.
func product(text string) (int64, error) {
	n := int64(1)
	for i, w := range strings.Fields(text) {
		if i%2 == 1 {
			if w != "*" {
				return 0, fmt.Errorf("%q is no product of numbers", text)
			}
			continue
		}
		v, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no product of numbers", text)
		}
		n *= v
	}
	return n, nil
}
