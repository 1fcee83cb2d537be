package msltree

import (
	"fmt"
	"strconv"
	"strings"
)

// Spaces are MSL's address-space keywords.
var Spaces = map[string]bool{"device": true, "constant": true, "threadgroup": true, "thread": true}

// Attribute is one entry of [[…]], with its name and the tokens of its argument.
type Attribute struct {
	Name string
	Arg  string
	Tok  int
}

// Function is the declaration or definition of a function.
type Function struct {
	Name     string
	Tok      int // the token of the name
	First    int // the first token after template<…>
	Kernel   bool
	Template []string // the names of its template parameters; nil if it is no template
	Required int      // how many of these have no default
	Attrs    []Attribute
	Params   []Parameter
	Open     int // "(" of the parameters
	Body     int // "{"; −1 for a declaration

	Scope      Scope
	Start, End int // all its tokens, template<…> and body included
}

// Scope is where something is declared.
type Scope struct {
	Path  string // a namespace's names, or what tells a class from all others; "" outside all
	Class string // the name of the class, if it is one
}

// Class is the definition of a class.
type Class struct {
	Name       string
	Scope      Scope
	Start, End int // all its tokens, template<…> and ";" included
	Open       int // "{"
}

// Parameter is a function's parameter.
type Parameter struct {
	First, End int // its tokens
	Name       string
	NameTok    int
	Attrs      []Attribute
	Space      string // "" if none is written
	Constant   bool   // const, or in the constant space
	Type       []int  // tokens of the type without const and address space
	Shape      Shape
	Count      string // of an array, as written
}

// Shape says how a parameter is passed.
type Shape uint8

// The shapes.
const (
	ByValue Shape = iota
	Pointer
	Reference
	Array
)

// Instance is template [[host_name("…")]] [[kernel]] … f<…>;
type Instance struct {
	First, End int // its tokens, ";" included
	Host       string
	Name       string
	Args       []string
	NameTok    int
	ArgsEnd    int
	Decltype   [2]int // the tokens inside decltype(…); 0, 0 if there is none
}

// Variable is a variable at namespace scope, or a static one of a class.
type Variable struct {
	First, End int
	Name       string
	Space      string
	Attrs      []Attribute
	Init       bool
}

// Unit is what the rewriter knows about a source.
type Unit struct {
	*Stream
	Functions []*Function
	Instances []*Instance
	Variables []*Variable
	Classes   []*Class

	scope Scope // of what is being read
	start int   // its first token

	defaults int // of its template parameters

	byName    map[string][]*Function        // kernels with bodies, once they were asked for
	mentioned map[*Function]map[string]bool // names in bodies, likewise
}

// Parse reads the declarations of a source.
func Parse(s *Stream) *Unit {
	u := &Unit{Stream: s}
	u.declarations(0, len(s.Tok), Scope{})
	return u
}

// declarations reads those of a namespace or class body [i, end).
func (u *Unit) declarations(i, end int, scope Scope) {
	outer := u.scope
	u.scope = scope
	defer func() { u.scope = outer }()
	for i < end {
		u.start = i
		i = u.declaration(i, end)
	}
}

// declaration reads one declaration and returns the index after it.
func (u *Unit) declaration(i, end int) int {
	switch t := u.At(i); {
	case t == ";":
		return i + 1
	case (t == "public" || t == "private" || t == "protected") && u.At(i+1) == ":":
		return i + 2
	case t == "namespace" || t == "inline" && u.At(i+1) == "namespace" || t == "extern" && u.At(i+2) == "{":
		first := i
		for i < end && u.At(i) != "{" && u.At(i) != ";" {
			i++
		}
		if u.At(i) != "{" { // namespace a = b;
			return i + 1
		}
		u.declarations(i+1, u.Match[i], Scope{Path: u.scope.Path + u.Text(first, i) + ";"})
		return u.Match[i] + 1
	case t == "using" || t == "typedef" || t == "static_assert":
		return u.statementEnd(i, end)
	case t == "template" && u.At(i+1) != "<":
		return u.instance(i, end)
	}
	var template []string
	u.defaults = 0
	for u.At(i) == "template" && u.At(i+1) == "<" {
		e := u.Angle(i + 1)
		if e < 0 {
			return u.statementEnd(i, end)
		}
		names, defaults := u.templateParams(i+1, e-1)
		template, u.defaults = append(template, names...), u.defaults+defaults
		if template == nil {
			template = []string{}
		}
		i = e
	}
	return u.entity(i, end, template)
}

// statementEnd returns the index after the next ";" at this level.
func (u *Unit) statementEnd(i, end int) int {
	for i < end && u.At(i) != ";" {
		if m := u.Match[i]; m > i {
			i = m
		}
		i++
	}
	return i + 1
}

// templateParams returns the names in template<…>, whose "<" is token a and whose ">"
// is token b, and how many of them have a default.
func (u *Unit) templateParams(a, b int) (names []string, defaults int) {
	last, skip := "", false
	depth := 0
	for i := a + 1; i <= b; i++ {
		switch t := u.At(i); {
		case i == b || t == "," && depth == 0:
			names = append(names, last)
			if skip {
				defaults++
			}
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
	return names, defaults
}

// entity reads a class, function or variable.
func (u *Unit) entity(first, end int, template []string) int {
	class, className := false, ""
	var attrs []Attribute
	for i := first; i < end; i++ {
		switch t := u.At(i); {
		case u.Attribute(i):
			attrs = append(attrs, u.attributes(i)...)
			i = u.Match[i]
		case t == "struct" || t == "class" || t == "union" || t == "enum":
			class = true
			if u.At(i+1) != "{" {
				className = u.At(i + 1)
			}
			if t == "enum" {
				return u.statementEnd(i, end)
			}
		case t == "decltype" || t == "alignas" || t == "__attribute__":
			if u.At(i+1) == "(" {
				i = u.Match[i+1]
			}
		case t == "<":
			if e := u.Angle(i); e > 0 {
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
			i = u.Match[i] // no function can contain this
		case t == "(" && !class:
			return u.function(first, i-1, end, template, attrs)
		case t == "{" && class:
			c := &Class{Name: className, Scope: u.scope, Start: u.start, Open: i}
			u.Classes = append(u.Classes, c)
			u.declarations(i+1, u.Match[i], Scope{Path: fmt.Sprintf("%s%d", u.scope.Path, i), Class: className})
			c.End = min(u.statementEnd(u.Match[i], end), len(u.Tok))
			return u.statementEnd(u.Match[i], end)
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
func (u *Unit) function(first, name, end int, template []string, attrs []Attribute) int {
	f := &Function{Name: u.At(name), Tok: name, First: first, Template: template, Attrs: attrs, Open: name + 1, Body: -1, Required: len(template) - u.defaults, Scope: u.scope, Start: u.start, End: end}
	for i := first; i < name; i++ {
		if u.At(i) == "kernel" && !u.inAttribute(i, first) {
			f.Kernel = true
		}
	}
	for _, a := range attrs {
		f.Kernel = f.Kernel || a.Name == "kernel"
	}
	f.Params = u.parameters(f.Open)
	u.Functions = append(u.Functions, f)
	for i := u.Match[f.Open] + 1; i < end; i++ {
		switch u.At(i) {
		case "{":
			f.Body, f.End = i, u.Match[i]+1
			return f.End
		case ";":
			f.End = min(i+1, len(u.Tok))
			return f.End
		case "(", "[":
			i = u.Match[i]
		}
	}
	return end
}

// inAttribute reports whether token i stands inside [[…]] opened at or after first.
func (u *Unit) inAttribute(i, first int) bool {
	for j := first; j < i; j++ {
		if u.Attribute(j) {
			if u.Match[j] > i {
				return true
			}
			j = u.Match[j]
		}
	}
	return false
}

// attributes reads the entries of the [[…]] that begins at token i.
func (u *Unit) attributes(i int) []Attribute {
	var out []Attribute
	for j := i + 2; j < u.Match[i+1]; j++ {
		a := Attribute{Name: u.At(j), Tok: j}
		for u.At(j+1) == "::" {
			a.Name += "::" + u.At(j+2)
			j += 2
		}
		if u.At(j+1) == "(" {
			a.Arg = u.Text(j+2, u.Match[j+1])
			j = u.Match[j+1]
		}
		out = append(out, a)
		if u.At(j+1) == "," {
			j++
		}
	}
	return out
}

// parameters reads the parameter list whose "(" is token open.
func (u *Unit) parameters(open int) []Parameter {
	var out []Parameter
	end := u.Match[open]
	first := open + 1
	for i := first; i <= end; i++ {
		switch {
		case i == end || u.At(i) == ",":
			if i > first && !(i == first+1 && u.At(first) == "void") {
				out = append(out, u.parameter(first, i))
			}
			first = i + 1
		case u.At(i) == "<":
			if e := u.Angle(i); e > 0 && e <= end {
				i = e - 1
			}
		case u.Match[i] > i:
			i = u.Match[i]
		}
	}
	return out
}

func (u *Unit) parameter(first, end int) Parameter {
	p := Parameter{First: first, End: end, NameTok: -1}
	for i := first; i < end; i++ {
		switch t := u.At(i); {
		case u.Attribute(i):
			p.Attrs = append(p.Attrs, u.attributes(i)...)
			i = u.Match[i]
		case t == "=": // a default value
			i = end
		case Spaces[t]:
			p.Space = t
			p.Constant = p.Constant || t == "constant"
		case t == "const":
			// A const after * makes the pointer constant, not what it points to.
			p.Constant = p.Constant || p.Shape == ByValue
		case t == "volatile":
		case t == "*":
			p.Shape = Pointer
		case t == "&" || t == "&&":
			p.Shape = Reference
		case t == "[":
			p.Shape = Array
			p.Count = u.Text(i+1, u.Match[i])
			i = u.Match[i]
		case t == "<":
			e := u.Angle(i)
			if e < 0 || e > end {
				e = i + 1
			}
			for ; i < e; i++ {
				p.Type = append(p.Type, i)
			}
			i--
		default:
			p.Type = append(p.Type, i)
		}
	}
	// The last identifier is the name, if what remains is a type.
	if n := len(p.Type); n > 1 && u.Tok[p.Type[n-1]].Kind == Ident && u.At(p.Type[n-2]) != "::" && !builtinWord[u.At(p.Type[n-1])] {
		p.NameTok = p.Type[n-1]
		p.Name = u.At(p.NameTok)
		p.Type = p.Type[:n-1]
	}
	return p
}

// builtinWord lists the words of types that consist of several words.
var builtinWord = map[string]bool{"int": true, "char": true, "short": true, "long": true, "unsigned": true, "signed": true, "float": true}

// instance reads an explicit instantiation.
func (u *Unit) instance(first, end int) int {
	stop := u.statementEnd(first, end)
	in := &Instance{First: first, End: stop}
	kernel := false
	last := -1
	for i := first + 1; i < stop-1; i++ {
		switch t := u.At(i); {
		case u.Attribute(i):
			for _, a := range u.attributes(i) {
				switch a.Name {
				case "host_name":
					in.Host = Literal(a.Arg)
				case "kernel":
					kernel = true
				}
			}
			i = u.Match[i]
		case t == "kernel":
			kernel = true
		case t == "decltype" && u.At(i+1) == "(":
			in.Decltype = [2]int{i + 2, u.Match[i+1]}
			i = u.Match[i+1]
		case u.Tok[i].Kind == Ident && u.At(i+1) == "<":
			e := u.Angle(i + 1)
			if e < 0 {
				break
			}
			last, in.ArgsEnd = i, e
			i = e - 1
		case u.Match[i] > i:
			i = u.Match[i]
		}
	}
	if last >= 0 && (kernel || in.Host != "") {
		in.Name, in.NameTok = u.At(last), last
		in.Args = u.arguments(last+1, in.ArgsEnd-1)
		u.Instances = append(u.Instances, in)
	}
	return stop
}

// arguments returns the template arguments between "<" at a and ">" at b.
func (u *Unit) arguments(a, b int) []string {
	var out []string
	first := a + 1
	for i := first; i <= b; i++ {
		switch {
		case i == b || u.At(i) == ",":
			out = append(out, u.Text(first, i))
			first = i + 1
		case u.At(i) == "<":
			if e := u.Angle(i); e > 0 && e <= b {
				i = e - 1
			}
		case u.Match[i] > i:
			i = u.Match[i]
		}
	}
	return out
}

// Literal joins adjacent string literals.
func Literal(s string) string {
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
func (u *Unit) variable(first, stop, end int, attrs []Attribute) int {
	v, static := &Variable{First: first, Attrs: attrs, Init: u.At(stop) == "=" || u.At(stop) == "{"}, false
	for i := first; i < stop; i++ {
		switch {
		case u.Attribute(i):
			i = u.Match[i]
		case Spaces[u.At(i)]:
			v.Space = u.At(i)
		case u.At(i) == "static":
			static = true
		case u.Tok[i].Kind == Ident:
			v.Name = u.At(i)
		}
	}
	for i := stop; u.At(i) == "["; i = u.Match[i] + 1 {
		v.Init = u.At(u.Match[i]+1) == "=" || u.At(u.Match[i]+1) == "{"
	}
	v.End = u.statementEnd(stop, end)
	if u.scope.Class == "" || static {
		u.Variables = append(u.Variables, v)
	}
	return v.End
}
