package record

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Kernel adds a kernel that is not in the kernel library: where its code is, and a table of
// its arguments, with which every dispatch is compared. Adding the same kernel again
// returns the same ID.
func (e *Encoder) Kernel(k ir.Kernel) ir.KernelID {
	if at := slices.IndexFunc(e.g.Kernels, func(have ir.Kernel) bool { return have.Name == k.Name }); at >= 0 {
		if !sameKernel(&e.g.Kernels[at], &k) {
			e.fail("there is a different kernel of the name @%s: rename one", k.Name)
		}
		return ir.KernelID(at)
	}
	if !e.valid(&ir.Graph{Kernels: []ir.Kernel{k}}) {
		return -1
	}
	e.g.Kernels = append(e.g.Kernels, k)
	return ir.KernelID(len(e.g.Kernels) - 1)
}

// Function returns the ID of a kernel of the kernel library (docs/kernels.md): a function,
// specialized by function constants.
func (e *Encoder) Function(function string, constants ...ir.FunctionConstant) ir.KernelID {
	id, _ := e.kernel(function, constants)
	return id
}

// functionKey is a function and the constants that specialize it.
type functionKey struct {
	function  string
	constants [8]constantKey
}

type constantKey struct {
	index uint16
	t     ir.DType
	bits  uint64
}

// kernel returns the kernel of a library function, specialized by function constants. ok is
// false if the library has no such function.
func (e *Encoder) kernel(function string, constants []ir.FunctionConstant) (id ir.KernelID, ok bool) {
	if len(constants) == 0 {
		if id, ok := e.plain[function]; ok {
			return id, true
		}
	}
	key := functionKey{function: function}
	for i, c := range constants {
		if i < len(key.constants) {
			key.constants[i] = constantKey{c.Index, c.Type, c.Bits}
		}
	}
	if id, ok := e.functions[key]; ok && len(constants) <= len(key.constants) {
		return id, true
	}
	name := specialized(function, constants)
	ds := msl.Declarations(function)
	if len(ds) == 0 {
		e.fail("the kernel library has no function %q%s", function, alike(function))
		return 0, false
	}
	k := decl.For(ds, constants).Kernel(name, constants...)
	at := slices.IndexFunc(e.g.Kernels, func(have ir.Kernel) bool { return sameKernel(&have, &k) })
	id = ir.KernelID(at)
	if at < 0 { // otherwise it came with a graph that was encoded
		k.Name = e.unusedKernel(name) // constants that the name leaves out may give it to several kernels
		id = e.Kernel(k)
	}
	e.functions[key] = id
	if len(constants) == 0 {
		e.plain[function] = id
	}
	return id, true
}

// specialized names a function with its constants, such as rope_float32.forward.traditional: flags that are false are left
// out.
func specialized(name string, constants []ir.FunctionConstant) string {
	for _, c := range constants {
		switch {
		case c.Bits == 0:
		case c.Type == ir.Bool:
			name += "." + c.Name
		default:
			name += fmt.Sprintf(".%s_%d", c.Name, c.Bits)
		}
	}
	return name
}

// unusedKernel returns a name that no kernel has.
func (e *Encoder) unusedKernel(name string) string {
	for base, n := name, 2; slices.ContainsFunc(e.g.Kernels, func(k ir.Kernel) bool { return k.Name == name }); n++ {
		name = fmt.Sprintf("%s.%d", base, n)
	}
	return name
}

// varying matches what members of a family of functions differ in: element types, and numbers such as the bits of a code,
// a group size or a head size.
var varying = regexp.MustCompile(`bfloat16(?:_t)?|float(?:16_t|16|32)?|\d+`)

// alike lists, for an error, library functions whose names differ from a missing one only in numbers or, if there are
// none, in types too.
func alike(function string) string {
	var found []string
	for _, anyType := range []bool{false, true} {
		pattern := regexp.MustCompile("^" + varying.ReplaceAllStringFunc(regexp.QuoteMeta(function), func(s string) string {
			switch {
			case s[0] != 'b' && s[0] != 'f':
				return `\d+`
			case anyType:
				return `(?:bfloat16_t|bfloat16|float16_t|float16|float32|float)`
			}
			return s
		}) + "$")
		for _, f := range msl.Functions() {
			if pattern.MatchString(f) {
				found = append(found, f)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch {
	case len(found) == 0:
		return ""
	case len(found) > 8:
		return fmt.Sprintf(" (there are %s and %d more)", strings.Join(found[:8], ", "), len(found)-8)
	}
	return fmt.Sprintf(" (there is %s)", strings.Join(found, ", "))
}
