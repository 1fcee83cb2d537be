package mslcheck

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// maxSlot is the greatest index of a kernel's buffers (Metal feature set tables: 31
// entries in the buffer argument table).
const maxSlot = 30

// threadAttributes are the attributes of kernel parameters that describe a thread or
// the grid. A position may be a vector; the others are scalars. All of them are
// unsigned, of 16 or 32 bits (Metal Shading Language Specification, "Kernel function
// input attributes").
var threadAttributes = map[string]struct{ position bool }{
	"thread_position_in_grid": {true}, "threads_per_grid": {true},
	"threadgroup_position_in_grid": {true}, "threadgroups_per_grid": {true},
	"thread_position_in_threadgroup": {true}, "threads_per_threadgroup": {true}, "dispatch_threads_per_threadgroup": {true},
	"thread_index_in_threadgroup": {}, "thread_index_in_simdgroup": {}, "simdgroup_index_in_threadgroup": {},
	"simdgroups_per_threadgroup": {}, "dispatch_simdgroups_per_threadgroup": {}, "threads_per_simdgroup": {},
	"quadgroup_index_in_threadgroup": {}, "thread_index_in_quadgroup": {}, "quadgroups_per_threadgroup": {},
	"grid_origin": {true}, "grid_size": {true}, "thread_execution_width": {},
}

// functionAttributes lists the attributes that a function may have.
var functionAttributes = map[string]bool{"kernel": true, "host_name": true, "max_total_threads_per_threadgroup": true, "maybe_unused": true, "nodiscard": true}

// missing lists words of C++ that MSL 3.1 does not have (Metal Shading Language
// Specification, "Restrictions", and its scalar types).
var missing = map[string]string{
	"double": "MSL has no double", "goto": "MSL has no goto", "asm": "MSL has no inline assembly", "virtual": "MSL has no virtual functions",
	"dynamic_cast": "MSL has no dynamic_cast", "typeid": "MSL has no typeid", "new": "MSL has no new", "delete": "MSL has no delete",
	"noexcept": "MSL has no noexcept", "register": "MSL has no register", "thread_local": "MSL has no thread_local",
	"throw": "MSL has no exceptions", "try": "MSL has no exceptions", "catch": "MSL has no exceptions",
}

// diagnostic says which rule is broken, and where.
type diagnostic struct {
	file string
	line int
	text string
}

func (d diagnostic) String() string { return fmt.Sprintf("%s:%d: error: %s", d.file, d.line, d.text) }

// rules looks for what C++ allows and MSL forbids.
type rules struct {
	*msltree.Unit
	found []diagnostic
}

func (r *rules) errorf(tok int, format string, args ...any) {
	t := r.Tok[tok]
	r.found = append(r.found, diagnostic{t.File, t.Line, fmt.Sprintf(format, args...)})
}

// check applies all rules, and returns what they find in the order of the source.
func (u *unit) check() []diagnostic {
	r := &rules{Unit: u.Unit}
	r.words()
	r.scopes()
	r.pointers()
	hosts := map[string]int{}
	for _, f := range u.Functions {
		r.function(f)
		if f.Kernel && f.Template == nil {
			r.host(hosts, msltree.HostOf(f), f.Tok)
		}
	}
	r.instances(hosts)
	r.threadgroupVariables()
	sort.SliceStable(r.found, func(i, j int) bool { return r.found[i].line < r.found[j].line })
	return r.found
}

func (r *rules) words() {
	for i, t := range r.Tok {
		if t.Kind != msltree.Ident {
			continue
		}
		if why, ok := missing[t.Text]; ok && r.At(i-1) != "." && r.At(i-1) != "->" {
			r.errorf(i, "%s", why)
		}
		if t.Text == "long" && r.At(i+1) == "long" {
			r.errorf(i, "MSL has no long long: long has 64 bits")
		}
	}
	for i := range r.Tok {
		// A lambda: "[" where an operand would stand.
		if r.At(i) == "[" && !r.Attribute(i) && !r.Attribute(i-1) && (r.At(r.Match[i]+1) == "(" || r.At(r.Match[i]+1) == "{") {
			if p := r.At(i - 1); p == "=" || p == "(" || p == "," || p == "return" || p == ";" || p == "{" {
				r.errorf(i, "MSL 3.1 has no lambda expressions")
			}
		}
	}
}

func (r *rules) scopes() {
	index := map[string]string{}
	for _, v := range r.Variables {
		fc := ""
		for _, a := range v.Attrs {
			switch a.Name {
			case "function_constant":
				fc = a.Arg
			case "maybe_unused":
			default:
				r.errorf(a.Tok, "[[%s]] says nothing about a variable", a.Name)
			}
		}
		if v.Space != "constant" {
			r.errorf(v.First, "%s is a variable of program scope: it has to be in the constant address space", v.Name)
			continue
		}
		if fc == "" {
			if !v.Init {
				r.errorf(v.First, "constant %s has no value", v.Name)
			}
			continue
		}
		if n, err := strconv.ParseUint(fc, 10, 16); err != nil {
			r.errorf(v.First, "function constant %s has the index %q, not one of 0 to 65535", v.Name, fc)
		} else if other, ok := index[fc]; ok {
			r.errorf(v.First, "function constants %s and %s both have index %d", other, v.Name, n)
		}
		if v.Init {
			r.errorf(v.First, "function constant %s has a value of its own", v.Name)
		}
		index[fc] = v.Name
	}
}

// pointers finds pointer and reference types without an address space.
func (r *rules) pointers() {
	const text = "a pointer or reference type needs an address space (device, constant, threadgroup or thread)"
	for _, f := range r.Functions {
		for _, p := range f.Params {
			if p.Space == "" && (p.Shape == msltree.Pointer || p.Shape == msltree.Reference) && r.Text(p.First, p.First+1) != "auto" {
				r.errorf(p.First, text)
			}
		}
	}
	spaced := func(a, b int) bool {
		for i := a; i < b; i++ {
			if msltree.Spaces[r.At(i)] {
				return true
			}
		}
		return false
	}
	for i := range r.Tok {
		switch {
		case r.At(i) == "*" && r.At(i+1) == ")" || r.At(i) == "*" && r.At(i+1) == ">":
			// (T*) or …_cast<T*>: a product cannot end like this.
			a := i
			for a > 0 && r.At(a-1) != "(" && r.At(a-1) != "," && r.At(a-1) != ";" && !(r.At(a-1) == "<" && strings.HasSuffix(r.At(a-2), "_cast")) {
				a--
			}
			if !spaced(a, i) && !r.inParameters(i) {
				r.errorf(i, text)
			}
		case r.At(i-1) == "{" || r.At(i-1) == "}" || r.At(i-1) == ";" || r.At(i-1) == "(" && r.At(i-2) == "for":
			// Here a declaration begins: [const] TYPE * NAME.
			j := i
			for r.At(j) == "const" || r.At(j) == "static" || r.At(j) == "volatile" {
				j++
			}
			if r.At(j) == "return" || j >= len(r.Tok) || r.Tok[j].Kind != msltree.Ident || msltree.Spaces[r.At(j)] || r.At(j) == "auto" {
				continue
			}
			for j++; r.At(j) == "::" || r.At(j) == "<"; {
				if r.At(j) == "<" {
					e := r.Angle(j)
					if e < 0 {
						break
					}
					j = e
				} else {
					j += 2
				}
			}
			if t := r.At(j); t != "*" && t != "&" && t != "&&" {
				continue
			}
			for r.At(j) == "*" || r.At(j) == "&" || r.At(j) == "&&" || r.At(j) == "const" {
				j++
			}
			if j < len(r.Tok) && r.Tok[j].Kind == msltree.Ident && slices.Contains([]string{"=", ";", "[", ",", "(", ":"}, r.At(j+1)) {
				r.errorf(i, text)
			}
		}
	}
}

// inParameters reports whether token i is in a parameter list.
func (r *rules) inParameters(i int) bool {
	for _, f := range r.Functions {
		if f.Open < i && i < r.Match[f.Open] {
			return true
		}
	}
	return false
}

func (r *rules) function(f *msltree.Function) {
	for _, a := range f.Attrs {
		if !functionAttributes[a.Name] {
			r.errorf(a.Tok, "unknown attribute [[%s]] of function %s", a.Name, f.Name)
		}
	}
	if !f.Kernel {
		for _, p := range f.Params {
			for _, a := range p.Attrs {
				if a.Name != "maybe_unused" {
					r.errorf(a.Tok, "[[%s]]: %s is no kernel", a.Name, f.Name)
				}
			}
		}
		return
	}
	if f.Name == "main" {
		r.errorf(f.Tok, "a kernel cannot be called main")
	}
	if t := r.At(f.Tok - 1); t != "void" {
		r.errorf(f.Tok, "kernel %s returns %s, not void", f.Name, t)
	}
	r.parameters(f)
}

func (r *rules) parameters(f *msltree.Function) {
	slots := map[string]string{}
	seen := map[string]bool{}
	width, widthOf := 0, ""
	for _, p := range f.Params {
		var attrs []msltree.Attribute
		for _, a := range p.Attrs {
			if a.Name != "maybe_unused" && a.Name != "function_constant" {
				attrs = append(attrs, a)
			}
		}
		if len(attrs) == 0 && p.Shape != msltree.ByValue && p.Space != "" && p.Space != "thread" {
			continue // it gets the lowest slot that is free
		}
		if len(attrs) != 1 {
			r.errorf(p.First, "parameter %s of kernel %s has %d attributes, needs one ([[buffer(n)]], [[threadgroup(n)]] or a thread's position)", p.Name, f.Name, len(attrs))
			continue
		}
		a := attrs[0]
		typ := r.TypeText(p)
		if a.Name == "buffer" || a.Name == "threadgroup" {
			r.slot(f, p, a, slots)
			continue
		}
		ta, ok := threadAttributes[a.Name]
		switch {
		case !ok:
			r.errorf(a.Tok, "unknown attribute [[%s]] of parameter %s", a.Name, p.Name)
			continue
		case seen[a.Name]:
			r.errorf(a.Tok, "[[%s]] stands twice in kernel %s", a.Name, f.Name)
		case p.Shape != msltree.ByValue || p.Space != "":
			r.errorf(p.First, "[[%s]] %s is passed by value, without address space", a.Name, p.Name)
		}
		seen[a.Name] = true
		scalar := strings.TrimRight(typ, "23")
		if scalar != "uint" && scalar != "ushort" || !ta.position && scalar != typ || len(typ)-len(scalar) > 1 {
			r.errorf(p.First, "[[%s]] %s cannot be a %s", a.Name, p.Name, typ)
			continue
		}
		if !ta.position {
			continue
		}
		n := 1
		if typ != scalar {
			n = int(typ[len(scalar)] - '0')
		}
		if width != 0 && width != n {
			r.errorf(p.First, "[[%s]] %s has %d components, %s has %d: positions and sizes of a kernel have equally many", a.Name, p.Name, n, widthOf, width)
		}
		width, widthOf = n, p.Name
	}
}

func (r *rules) slot(f *msltree.Function, p msltree.Parameter, a msltree.Attribute, slots map[string]string) {
	n, err := strconv.Atoi(a.Arg)
	if err != nil || n < 0 || n > maxSlot {
		r.errorf(a.Tok, "[[%s(%s)]]: the index is not one of 0 to %d", a.Name, a.Arg, maxSlot)
	}
	key := a.Name + a.Arg
	if other, ok := slots[key]; ok {
		r.errorf(a.Tok, "parameters %s and %s of kernel %s are both [[%s(%s)]]", other, p.Name, f.Name, a.Name, a.Arg)
	}
	slots[key] = p.Name
	want := "device or constant"
	ok := p.Space == "device" || p.Space == "constant"
	if a.Name == "threadgroup" {
		want, ok = "threadgroup", p.Space == "threadgroup"
	}
	if !ok {
		space := p.Space
		if space == "" {
			space = "no"
		}
		r.errorf(p.First, "[[%s]] %s is in %s address space, needs %s", a.Name, p.Name, space, want)
	}
	if p.Shape == msltree.ByValue {
		r.errorf(p.First, "[[%s]] %s is no pointer, reference or array", a.Name, p.Name)
	}
}

func (r *rules) host(hosts map[string]int, name string, tok int) {
	if first, ok := hosts[name]; ok {
		r.errorf(tok, "host name %q is taken by line %d", name, first)
	}
	hosts[name] = r.Tok[tok].Line
}

func (r *rules) instances(hosts map[string]int) {
	used := map[string]bool{}
	for _, in := range r.Unit.Instances {
		used[in.Name] = true
		if in.Host == "" {
			r.errorf(in.First, "instance of %s has no [[host_name(\"…\")]]", in.Name)
		}
		r.host(hosts, in.Host, in.First)
		f := r.Kernel(in.Name)
		switch {
		case f == nil:
			r.errorf(in.First, "there is no kernel %s", in.Name)
		case f.Template == nil:
			r.errorf(in.First, "kernel %s is no template", in.Name)
		case len(in.Args) > len(f.Template):
			r.errorf(in.First, "kernel %s has %d template parameters, the instance %d", in.Name, len(f.Template), len(in.Args))
		}
	}
	for _, f := range r.Functions {
		if f.Kernel && f.Template != nil && !used[f.Name] {
			r.errorf(f.Tok, "template kernel %s has no instance", f.Name)
		}
	}
}

// threadgroupVariables finds threadgroup variables in places where they are not
// allowed. They must stand at the outermost level of a kernel's body, without an
// initial value.
func (r *rules) threadgroupVariables() {
	for _, f := range r.Functions {
		for _, v := range r.ThreadgroupLocals(f) {
			if !f.Kernel {
				r.errorf(v.Tok, "threadgroup variable in %s, which is no kernel", f.Name)
			}
			if v.Depth != 1 {
				r.errorf(v.Tok, "a threadgroup variable stands at the outermost level of a kernel")
			}
			if v.Init {
				r.errorf(v.Tok, "a threadgroup variable has no initial value")
			}
		}
	}
}
