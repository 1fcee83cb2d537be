package mslcheck

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
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
	*unit
	found []diagnostic
}

func (r *rules) errorf(tok int, format string, args ...any) {
	t := r.Tok[tok]
	r.found = append(r.found, diagnostic{t.File, t.Line, fmt.Sprintf(format, args...)})
}

// check applies all rules, and returns what they find in the order of the source.
func (u *unit) check() []diagnostic {
	r := &rules{unit: u}
	r.words()
	r.scopes()
	r.pointers()
	hosts := map[string]int{}
	for _, f := range u.functions {
		r.function(f)
		if f.kernel && f.template == nil {
			r.host(hosts, hostOf(f), f.tok)
		}
	}
	r.instances(hosts)
	r.threadgroupVariables()
	sort.SliceStable(r.found, func(i, j int) bool { return r.found[i].line < r.found[j].line })
	return r.found
}

func (r *rules) words() {
	for i, t := range r.Tok {
		if t.Kind != Ident {
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
		if r.At(i) == "[" && !r.attribute(i) && !r.attribute(i-1) && (r.At(r.match[i]+1) == "(" || r.At(r.match[i]+1) == "{") {
			if p := r.At(i - 1); p == "=" || p == "(" || p == "," || p == "return" || p == ";" || p == "{" {
				r.errorf(i, "MSL 3.1 has no lambda expressions")
			}
		}
	}
}

func (r *rules) scopes() {
	index := map[string]string{}
	for _, v := range r.variables {
		fc := ""
		for _, a := range v.attrs {
			switch a.name {
			case "function_constant":
				fc = a.arg
			case "maybe_unused":
			default:
				r.errorf(a.tok, "[[%s]] says nothing about a variable", a.name)
			}
		}
		if v.space != "constant" {
			r.errorf(v.first, "%s is a variable of program scope: it has to be in the constant address space", v.name)
			continue
		}
		if fc == "" {
			if !v.init {
				r.errorf(v.first, "constant %s has no value", v.name)
			}
			continue
		}
		if n, err := strconv.ParseUint(fc, 10, 16); err != nil {
			r.errorf(v.first, "function constant %s has the index %q, not one of 0 to 65535", v.name, fc)
		} else if other, ok := index[fc]; ok {
			r.errorf(v.first, "function constants %s and %s both have index %d", other, v.name, n)
		}
		if v.init {
			r.errorf(v.first, "function constant %s has a value of its own", v.name)
		}
		index[fc] = v.name
	}
}

// pointers finds pointer and reference types without an address space.
func (r *rules) pointers() {
	const text = "a pointer or reference type needs an address space (device, constant, threadgroup or thread)"
	for _, f := range r.functions {
		for _, p := range f.params {
			if p.space == "" && (p.shape == pointer || p.shape == reference) && r.Text(p.first, p.first+1) != "auto" {
				r.errorf(p.first, text)
			}
		}
	}
	spaced := func(a, b int) bool {
		for i := a; i < b; i++ {
			if spaces[r.At(i)] {
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
			if r.At(j) == "return" || j >= len(r.Tok) || r.Tok[j].Kind != Ident || spaces[r.At(j)] || r.At(j) == "auto" {
				continue
			}
			for j++; r.At(j) == "::" || r.At(j) == "<"; {
				if r.At(j) == "<" {
					e := r.angle(j)
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
			if j < len(r.Tok) && r.Tok[j].Kind == Ident && slices.Contains([]string{"=", ";", "[", ",", "(", ":"}, r.At(j+1)) {
				r.errorf(i, text)
			}
		}
	}
}

// inParameters reports whether token i is in a parameter list.
func (r *rules) inParameters(i int) bool {
	for _, f := range r.functions {
		if f.open < i && i < r.match[f.open] {
			return true
		}
	}
	return false
}

func (r *rules) function(f *function) {
	for _, a := range f.attrs {
		if !functionAttributes[a.name] {
			r.errorf(a.tok, "unknown attribute [[%s]] of function %s", a.name, f.name)
		}
	}
	if !f.kernel {
		for _, p := range f.params {
			for _, a := range p.attrs {
				if a.name != "maybe_unused" {
					r.errorf(a.tok, "[[%s]]: %s is no kernel", a.name, f.name)
				}
			}
		}
		return
	}
	if f.name == "main" {
		r.errorf(f.tok, "a kernel cannot be called main")
	}
	if t := r.At(f.tok - 1); t != "void" {
		r.errorf(f.tok, "kernel %s returns %s, not void", f.name, t)
	}
	r.parameters(f)
}

func (r *rules) parameters(f *function) {
	slots := map[string]string{}
	seen := map[string]bool{}
	width, widthOf := 0, ""
	for _, p := range f.params {
		var attrs []attribute
		for _, a := range p.attrs {
			if a.name != "maybe_unused" && a.name != "function_constant" {
				attrs = append(attrs, a)
			}
		}
		if len(attrs) != 1 {
			r.errorf(p.first, "parameter %s of kernel %s has %d attributes, needs one ([[buffer(n)]], [[threadgroup(n)]] or a thread's position)", p.name, f.name, len(attrs))
			continue
		}
		a := attrs[0]
		typ := r.typeText(p)
		if a.name == "buffer" || a.name == "threadgroup" {
			r.slot(f, p, a, slots)
			continue
		}
		ta, ok := threadAttributes[a.name]
		switch {
		case !ok:
			r.errorf(a.tok, "unknown attribute [[%s]] of parameter %s", a.name, p.name)
			continue
		case seen[a.name]:
			r.errorf(a.tok, "[[%s]] stands twice in kernel %s", a.name, f.name)
		case p.shape != byValue || p.space != "":
			r.errorf(p.first, "[[%s]] %s is passed by value, without address space", a.name, p.name)
		}
		seen[a.name] = true
		scalar := strings.TrimRight(typ, "23")
		if scalar != "uint" && scalar != "ushort" || !ta.position && scalar != typ || len(typ)-len(scalar) > 1 {
			r.errorf(p.first, "[[%s]] %s cannot be a %s", a.name, p.name, typ)
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
			r.errorf(p.first, "[[%s]] %s has %d components, %s has %d: positions and sizes of a kernel have equally many", a.name, p.name, n, widthOf, width)
		}
		width, widthOf = n, p.name
	}
}

func (r *rules) typeText(p parameter) string {
	var w []string
	for _, i := range p.typ {
		w = append(w, r.At(i))
	}
	return strings.Join(w, " ")
}

func (r *rules) slot(f *function, p parameter, a attribute, slots map[string]string) {
	n, err := strconv.Atoi(a.arg)
	if err != nil || n < 0 || n > maxSlot {
		r.errorf(a.tok, "[[%s(%s)]]: the index is not one of 0 to %d", a.name, a.arg, maxSlot)
	}
	key := a.name + a.arg
	if other, ok := slots[key]; ok {
		r.errorf(a.tok, "parameters %s and %s of kernel %s are both [[%s(%s)]]", other, p.name, f.name, a.name, a.arg)
	}
	slots[key] = p.name
	want := "device or constant"
	ok := p.space == "device" || p.space == "constant"
	if a.name == "threadgroup" {
		want, ok = "threadgroup", p.space == "threadgroup"
	}
	if !ok {
		space := p.space
		if space == "" {
			space = "no"
		}
		r.errorf(p.first, "[[%s]] %s is in %s address space, needs %s", a.name, p.name, space, want)
	}
	if p.shape == byValue {
		r.errorf(p.first, "[[%s]] %s is no pointer, reference or array", a.name, p.name)
	}
}

func hostOf(f *function) string {
	for _, a := range f.attrs {
		if a.name == "host_name" {
			return literal(a.arg)
		}
	}
	return f.name
}

func (r *rules) host(hosts map[string]int, name string, tok int) {
	if first, ok := hosts[name]; ok {
		r.errorf(tok, "host name %q is taken by line %d", name, first)
	}
	hosts[name] = r.Tok[tok].Line
}

func (r *rules) instances(hosts map[string]int) {
	used := map[string]bool{}
	for _, in := range r.unit.instances {
		used[in.name] = true
		if in.host == "" {
			r.errorf(in.first, "instance of %s has no [[host_name(\"…\")]]", in.name)
		}
		r.host(hosts, in.host, in.first)
		f := r.kernel(in.name)
		switch {
		case f == nil:
			r.errorf(in.first, "there is no kernel %s", in.name)
		case f.template == nil:
			r.errorf(in.first, "kernel %s is no template", in.name)
		case len(in.args) > len(f.template):
			r.errorf(in.first, "kernel %s has %d template parameters, the instance %d", in.name, len(f.template), len(in.args))
		}
	}
	for _, f := range r.functions {
		if f.kernel && f.template != nil && !used[f.name] {
			r.errorf(f.tok, "template kernel %s has no instance", f.name)
		}
	}
}

func (u *unit) kernel(name string) *function {
	for _, f := range u.functions {
		if f.kernel && f.name == name && f.body >= 0 {
			return f
		}
	}
	return nil
}

// threadgroupVariables finds threadgroup variables in places where they are not
// allowed. They must stand at the outermost level of a kernel's body, without an
// initial value.
func (r *rules) threadgroupVariables() {
	for _, f := range r.functions {
		for _, v := range r.threadgroupLocals(f) {
			if !f.kernel {
				r.errorf(v.tok, "threadgroup variable in %s, which is no kernel", f.name)
			}
			if v.depth != 1 {
				r.errorf(v.tok, "a threadgroup variable stands at the outermost level of a kernel")
			}
			if v.init {
				r.errorf(v.tok, "a threadgroup variable has no initial value")
			}
		}
	}
}

type threadgroupLocal struct {
	tok   int // the keyword
	depth int // the number of braces around it, within the body
	init  bool
}

// threadgroupLocals returns the threadgroup variables in f's body, without pointers to
// threadgroup memory.
func (u *unit) threadgroupLocals(f *function) []threadgroupLocal {
	if f.body < 0 {
		return nil
	}
	var out []threadgroupLocal
	depth := 0
	for i := f.body; i <= u.match[f.body]; i++ {
		switch u.At(i) {
		case "{":
			depth++
		case "}":
			depth--
		case "threadgroup":
			begin := i
			for p := u.At(begin - 1); p == "const" || p == "static" || p == "volatile"; p = u.At(begin - 1) {
				begin--
			}
			if p := u.At(begin - 1); p != ";" && p != "{" && p != "}" && p != ")" || u.At(begin-1) == ")" && u.At(u.match[begin-1]-1) != "alignas" {
				continue
			}
			v := threadgroupLocal{tok: i, depth: depth}
			isPointer := false
			for j := i + 1; u.At(j) != ";" && u.At(j) != ""; j++ {
				switch {
				case u.At(j) == "*" || u.At(j) == "&":
					isPointer = isPointer || !v.init
				case u.At(j) == "=" || u.At(j) == "{":
					v.init = true
				}
				if u.match[j] > j {
					j = u.match[j]
				}
			}
			if !isPointer {
				out = append(out, v)
			}
		}
	}
	return out
}
