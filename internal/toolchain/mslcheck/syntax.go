package mslcheck

import (
	"strconv"
	"strings"
)

// spaces are MSL's address-space keywords.
var spaces = map[string]bool{"device": true, "constant": true, "threadgroup": true, "thread": true}

// attribute is one entry of [[…]], with its name and the tokens of its argument.
type attribute struct {
	name string
	arg  string
	tok  int
}

// function is the declaration or definition of a function.
type function struct {
	name     string
	tok      int // the token of the name
	first    int // the first token after template<…>
	kernel   bool
	template []string // the names of its template parameters; nil if it is no template
	attrs    []attribute
	params   []parameter
	open     int // "(" of the parameters
	body     int // "{"; −1 for a declaration
}

// parameter is a function's parameter.
type parameter struct {
	first, end int // its tokens
	name       string
	nameTok    int
	attrs      []attribute
	space      string // "" if none is written
	constant   bool   // const, or in the constant space
	typ        []int  // tokens of the type without const and address space
	shape      shape
	count      string // of an array, as written
}

type shape uint8

const (
	byValue shape = iota
	pointer
	reference
	array
)

// instance is template [[host_name("…")]] [[kernel]] … f<…>;
type instance struct {
	first, end int // its tokens, ";" included
	host       string
	name       string
	args       []string
	nameTok    int
	argsEnd    int
	decltype   [2]int // the tokens inside decltype(…); 0, 0 if there is none
}

// variable is a variable at namespace scope.
type variable struct {
	first, end int
	name       string
	space      string
	attrs      []attribute
	init       bool
}

// unit is what the rewriter knows about a source.
type unit struct {
	*Stream
	functions []*function
	instances []*instance
	variables []*variable
}

func parse(s *Stream) *unit {
	u := &unit{Stream: s}
	u.scope(0, len(s.Tok))
	return u
}

// scope reads the declarations of a namespace or class body [i, end).
func (u *unit) scope(i, end int) {
	for i < end {
		i = u.declaration(i, end)
	}
}

// declaration reads one declaration and returns the index after it.
func (u *unit) declaration(i, end int) int {
	switch t := u.At(i); {
	case t == ";":
		return i + 1
	case (t == "public" || t == "private" || t == "protected") && u.At(i+1) == ":":
		return i + 2
	case t == "namespace" || t == "inline" && u.At(i+1) == "namespace" || t == "extern" && u.At(i+2) == "{":
		for i < end && u.At(i) != "{" && u.At(i) != ";" {
			i++
		}
		if u.At(i) != "{" { // namespace a = b;
			return i + 1
		}
		u.scope(i+1, u.match[i])
		return u.match[i] + 1
	case t == "using" || t == "typedef" || t == "static_assert":
		return u.statementEnd(i, end)
	case t == "template" && u.At(i+1) != "<":
		return u.instance(i, end)
	}
	var template []string
	for u.At(i) == "template" && u.At(i+1) == "<" {
		e := u.angle(i + 1)
		if e < 0 {
			return u.statementEnd(i, end)
		}
		template = append(template, u.templateParams(i+1, e-1)...)
		if template == nil {
			template = []string{}
		}
		i = e
	}
	return u.entity(i, end, template)
}

// statementEnd returns the index after the next ";" at this level.
func (u *unit) statementEnd(i, end int) int {
	for i < end && u.At(i) != ";" {
		if m := u.match[i]; m > i {
			i = m
		}
		i++
	}
	return i + 1
}

// templateParams returns the names in template<…>, whose "<" is token a and whose ">"
// is token b.
func (u *unit) templateParams(a, b int) []string {
	var names []string
	last, skip := "", false
	depth := 0
	for i := a + 1; i <= b; i++ {
		switch t := u.At(i); {
		case i == b || t == "," && depth == 0:
			names = append(names, last)
			last, skip = "", false
		case t == "<":
			depth++
		case t == ">":
			depth--
		case t == "=" && depth == 0:
			skip = true
		case u.Tok[i].Kind == Ident && depth == 0 && !skip:
			last = t
		}
	}
	return names
}

// entity reads a class, function or variable.
func (u *unit) entity(first, end int, template []string) int {
	class := false
	var attrs []attribute
	for i := first; i < end; i++ {
		switch t := u.At(i); {
		case u.attribute(i):
			attrs = append(attrs, u.attributes(i)...)
			i = u.match[i]
		case t == "struct" || t == "class" || t == "union" || t == "enum":
			class = true
			if t == "enum" {
				return u.statementEnd(i, end)
			}
		case t == "decltype" || t == "alignas" || t == "__attribute__":
			if u.At(i+1) == "(" {
				i = u.match[i+1]
			}
		case t == "<":
			if e := u.angle(i); e > 0 {
				i = e - 1
			}
		case t == "operator":
			for u.At(i+1) != "(" || u.At(i+2) == ")" && u.At(i+3) == "(" {
				i++
				if i >= end {
					return end
				}
				if u.At(i) == "(" {
					i++
					break
				}
			}
			return u.function(first, i, end, template, attrs)
		case t == "(" && i == first:
			i = u.match[i] // no function can contain this
		case t == "(" && !class:
			return u.function(first, i-1, end, template, attrs)
		case t == "{" && class:
			u.scope(i+1, u.match[i])
			return u.statementEnd(u.match[i], end)
		case t == ";" || t == "=" || t == "{" || t == "[":
			if class {
				return u.statementEnd(i, end)
			}
			return u.variable(first, i, end, attrs)
		}
	}
	return end
}

// function reads a function whose name is token name; its parameters follow.
func (u *unit) function(first, name, end int, template []string, attrs []attribute) int {
	f := &function{name: u.At(name), tok: name, first: first, template: template, attrs: attrs, open: name + 1, body: -1}
	for i := first; i < name; i++ {
		if u.At(i) == "kernel" && !u.inAttribute(i, first) {
			f.kernel = true
		}
	}
	for _, a := range attrs {
		f.kernel = f.kernel || a.name == "kernel"
	}
	f.params = u.parameters(f.open)
	u.functions = append(u.functions, f)
	for i := u.match[f.open] + 1; i < end; i++ {
		switch u.At(i) {
		case "{":
			f.body = i
			return u.match[i] + 1
		case ";":
			return i + 1
		case "(", "[":
			i = u.match[i]
		}
	}
	return end
}

// inAttribute reports whether token i stands inside [[…]] opened at or after first.
func (u *unit) inAttribute(i, first int) bool {
	for j := first; j < i; j++ {
		if u.attribute(j) {
			if u.match[j] > i {
				return true
			}
			j = u.match[j]
		}
	}
	return false
}

// attributes reads the entries of the [[…]] that begins at token i.
func (u *unit) attributes(i int) []attribute {
	var out []attribute
	for j := i + 2; j < u.match[i+1]; j++ {
		a := attribute{name: u.At(j), tok: j}
		for u.At(j+1) == "::" {
			a.name += "::" + u.At(j+2)
			j += 2
		}
		if u.At(j+1) == "(" {
			a.arg = u.Text(j+2, u.match[j+1])
			j = u.match[j+1]
		}
		out = append(out, a)
		if u.At(j+1) == "," {
			j++
		}
	}
	return out
}

// parameters reads the parameter list whose "(" is token open.
func (u *unit) parameters(open int) []parameter {
	var out []parameter
	end := u.match[open]
	first := open + 1
	for i := first; i <= end; i++ {
		switch {
		case i == end || u.At(i) == ",":
			if i > first && !(i == first+1 && u.At(first) == "void") {
				out = append(out, u.parameter(first, i))
			}
			first = i + 1
		case u.At(i) == "<":
			if e := u.angle(i); e > 0 && e <= end {
				i = e - 1
			}
		case u.match[i] > i:
			i = u.match[i]
		}
	}
	return out
}

func (u *unit) parameter(first, end int) parameter {
	p := parameter{first: first, end: end, nameTok: -1}
	for i := first; i < end; i++ {
		switch t := u.At(i); {
		case u.attribute(i):
			p.attrs = append(p.attrs, u.attributes(i)...)
			i = u.match[i]
		case t == "=": // a default value
			i = end
		case spaces[t]:
			p.space = t
			p.constant = p.constant || t == "constant"
		case t == "const":
			// A const after * makes the pointer constant, not what it points to.
			p.constant = p.constant || p.shape == byValue
		case t == "volatile":
		case t == "*":
			p.shape = pointer
		case t == "&" || t == "&&":
			p.shape = reference
		case t == "[":
			p.shape = array
			p.count = u.Text(i+1, u.match[i])
			i = u.match[i]
		case t == "<":
			e := u.angle(i)
			if e < 0 || e > end {
				e = i + 1
			}
			for ; i < e; i++ {
				p.typ = append(p.typ, i)
			}
			i--
		default:
			p.typ = append(p.typ, i)
		}
	}
	// The last identifier is the name, if what remains is a type.
	if n := len(p.typ); n > 1 && u.Tok[p.typ[n-1]].Kind == Ident && u.At(p.typ[n-2]) != "::" && !builtinWord[u.At(p.typ[n-1])] {
		p.nameTok = p.typ[n-1]
		p.name = u.At(p.nameTok)
		p.typ = p.typ[:n-1]
	}
	return p
}

// builtinWord lists the words of types that consist of several words.
var builtinWord = map[string]bool{"int": true, "char": true, "short": true, "long": true, "unsigned": true, "signed": true, "float": true}

// instance reads an explicit instantiation.
func (u *unit) instance(first, end int) int {
	stop := u.statementEnd(first, end)
	in := &instance{first: first, end: stop}
	kernel := false
	last := -1
	for i := first + 1; i < stop-1; i++ {
		switch t := u.At(i); {
		case u.attribute(i):
			for _, a := range u.attributes(i) {
				switch a.name {
				case "host_name":
					in.host = literal(a.arg)
				case "kernel":
					kernel = true
				}
			}
			i = u.match[i]
		case t == "kernel":
			kernel = true
		case t == "decltype" && u.At(i+1) == "(":
			in.decltype = [2]int{i + 2, u.match[i+1]}
			i = u.match[i+1]
		case u.Tok[i].Kind == Ident && u.At(i+1) == "<":
			e := u.angle(i + 1)
			if e < 0 {
				break
			}
			last, in.argsEnd = i, e
			i = e - 1
		case u.match[i] > i:
			i = u.match[i]
		}
	}
	if last >= 0 && (kernel || in.host != "") {
		in.name, in.nameTok = u.At(last), last
		in.args = u.arguments(last+1, in.argsEnd-1)
		u.instances = append(u.instances, in)
	}
	return stop
}

// arguments returns the template arguments between "<" at a and ">" at b.
func (u *unit) arguments(a, b int) []string {
	var out []string
	first := a + 1
	for i := first; i <= b; i++ {
		switch {
		case i == b || u.At(i) == ",":
			out = append(out, u.Text(first, i))
			first = i + 1
		case u.At(i) == "<":
			if e := u.angle(i); e > 0 && e <= b {
				i = e - 1
			}
		case u.match[i] > i:
			i = u.match[i]
		}
	}
	return out
}

// literal joins adjacent string literals.
func literal(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return b.String()
		}
		t, _ := strconv.Unquote(q)
		b.WriteString(t)
		s = strings.TrimLeft(s[len(q):], " ")
	}
	return b.String()
}

// variable reads a variable at namespace scope. Token stop ends its declarator.
func (u *unit) variable(first, stop, end int, attrs []attribute) int {
	v := &variable{first: first, attrs: attrs, init: u.At(stop) == "=" || u.At(stop) == "{"}
	for i := first; i < stop; i++ {
		switch {
		case u.attribute(i):
			i = u.match[i]
		case spaces[u.At(i)]:
			v.space = u.At(i)
		case u.Tok[i].Kind == Ident:
			v.name = u.At(i)
		}
	}
	for i := stop; u.At(i) == "["; i = u.match[i] + 1 {
		v.init = u.At(u.match[i]+1) == "=" || u.At(u.match[i]+1) == "{"
	}
	v.end = u.statementEnd(stop, end)
	u.variables = append(u.variables, v)
	return v.end
}
