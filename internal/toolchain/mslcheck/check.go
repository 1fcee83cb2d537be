package mslcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/internal/toolchain/mslshim"
	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

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
	Used  bool   // the body mentions it
	If    string // the function constant that has to be true for it to be there, or ""
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
	dir, err := mslshim.New(ctx, name, source)
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	name = dir.Name
	pre, err := dir.Preprocess(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	s, err := msltree.NewStream(pre)
	if err != nil {
		return nil, err
	}
	u := &unit{msltree.Parse(s)}
	var errs []error
	for _, d := range u.check() {
		errs = append(errs, errors.New(d.String()))
	}
	cpp := name + ".cpp"
	if err := dir.Write(cpp, u.emit()); err != nil {
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
		if _, err := dir.Run(ctx, append(append(append([]string(nil), language...), pass.args...), cpp)...); err != nil {
			errs = append(errs, fmt.Errorf("%w (pass %s)", err, pass.name))
			if pass.name == "flat" {
				break
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	compiled, err := os.ReadFile(filepath.Join(dir.Dir, object))
	if err != nil {
		return nil, err
	}
	return u.library(name, compiled)
}

// library describes the kernels of u, which was compiled to object.
func (u *unit) library(name string, object []byte) (*Library, error) {
	l := &Library{}
	entries := u.Entries()
	bytes, err := threadgroupBytes(object, len(entries))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i, e := range entries {
		k := Kernel{Host: e.Host, Function: e.Function.Name, Line: u.Tok[e.Function.Tok].Line, ThreadgroupBytes: bytes[i]}
		for _, a := range e.Function.Attrs {
			if a.Name == "max_total_threads_per_threadgroup" {
				if k.MaxThreads, err = msltree.Product(e.Substitute(a.Arg)); err != nil {
					return nil, fmt.Errorf("%s:%d: max_total_threads_per_threadgroup: %w", name, e.Line, err)
				}
			}
		}
		for _, p := range e.Function.Params {
			slot, isMemory, err := slotOf(p)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: parameter %s: %w", name, e.Line, p.Name, err)
			}
			if !isMemory {
				continue
			}
			q := Param{Name: p.Name, Space: p.Space, Slot: slot, Const: p.Constant, Used: u.Mentions(e.Function, p.Name), Type: e.Substitute(u.TypeText(p))}
			for _, a := range p.Attrs {
				if a.Name == "function_constant" {
					q.If = a.Arg
				}
			}
			switch p.Shape {
			case msltree.Reference:
				q.Count = 1
			case msltree.Array:
				if q.Count, err = msltree.Product(e.Substitute(p.Count)); err != nil {
					return nil, fmt.Errorf("%s:%d: length of %s: %w", name, e.Line, p.Name, err)
				}
			}
			k.Params = append(k.Params, q)
		}
		if k.place(); slices.ContainsFunc(k.Params, func(p Param) bool { return p.Slot > maxSlot }) {
			return nil, fmt.Errorf("%s:%d: kernel %s has more than %d arguments in memory", name, e.Line, e.Host, maxSlot+1)
		}
		l.Kernels = append(l.Kernels, k)
	}
	for _, v := range u.Variables {
		for _, a := range v.Attrs {
			if a.Name != "function_constant" {
				continue
			}
			i, err := strconv.ParseUint(a.Arg, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%s: function constant %s: %w", name, v.Name, err)
			}
			l.Constants = append(l.Constants, FunctionConstant{Index: uint16(i), Name: v.Name, Type: u.At(v.First + 1)})
		}
	}
	return l, nil
}

// slotOf returns the slot that an attribute gives to a parameter in memory, or -1. It is false of other parameters.
func slotOf(p msltree.Parameter) (slot int, isMemory bool, err error) {
	slot = -1
	for _, a := range p.Attrs {
		switch a.Name {
		case "buffer", "threadgroup":
			if slot, err = strconv.Atoi(a.Arg); err != nil {
				return 0, false, err
			}
		case "function_constant", "maybe_unused":
		default: // the position of a thread
			return 0, false, nil
		}
	}
	return slot, true, nil
}

// place gives parameters without a slot the lowest that is free, as the language does.
func (k *Kernel) place() {
	type place struct {
		ofThreadgroup bool
		slot          int
	}
	used := map[place]bool{}
	for _, p := range k.Params {
		used[place{p.Space == "threadgroup", p.Slot}] = true
	}
	for i := range k.Params {
		p := &k.Params[i]
		for n := 0; p.Slot < 0; n++ {
			if at := (place{p.Space == "threadgroup", n}); !used[at] {
				used[at] = true
				p.Slot = n
			}
		}
	}
}
