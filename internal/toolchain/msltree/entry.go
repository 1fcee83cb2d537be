package msltree

import (
	"fmt"
	"strconv"
	"strings"
)

// Entry is a kernel that a host can ask for.
type Entry struct {
	Host     string
	Function *Function
	Args     []string // template arguments
	Expr     string   // the kernel as a C++ expression
	File     string   // the file of the instance, or of a kernel that is no template
	Line     int
}

// Entries returns the kernels of u that a host can ask for.
func (u *Unit) Entries() []Entry {
	var out []Entry
	for _, f := range u.Functions {
		if f.Kernel && f.Template == nil && f.Body >= 0 {
			out = append(out, Entry{Host: HostOf(f), Function: f, Expr: f.Name, File: u.Tok[f.Tok].File, Line: u.Tok[f.Tok].Line})
		}
	}
	for _, in := range u.Instances {
		if f := u.instantiated(in); f != nil {
			out = append(out, Entry{Host: in.Host, Function: f, Args: in.Args, Expr: u.Text(in.NameTok, in.ArgsEnd), File: u.Tok[in.First].File, Line: u.Tok[in.First].Line})
		}
	}
	return out
}

// HostOf returns the name by which a host asks for f, which is no template.
func HostOf(f *Function) string {
	for _, a := range f.Attrs {
		if a.Name == "host_name" {
			return Literal(a.Arg)
		}
	}
	return f.Name
}

// instantiated returns the kernel template that an instance means: of overloads, the first that takes
// so many template arguments.
func (u *Unit) instantiated(in *Instance) *Function {
	for _, f := range u.kernels(in.Name) {
		if f.Required <= len(in.Args) && len(in.Args) <= len(f.Template) {
			return f
		}
	}
	return u.Kernel(in.Name)
}

// kernels returns the kernels of a name that have bodies.
func (u *Unit) kernels(name string) []*Function {
	if u.byName == nil {
		u.byName = map[string][]*Function{}
		for _, f := range u.Functions {
			if f.Kernel && f.Body >= 0 {
				u.byName[f.Name] = append(u.byName[f.Name], f)
			}
		}
	}
	return u.byName[name]
}

// Kernel returns the kernel of that name that has a body, or nil.
func (u *Unit) Kernel(name string) *Function {
	if all := u.kernels(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// TypeText returns the type of p without const and address space.
func (u *Unit) TypeText(p Parameter) string {
	var w []string
	for _, i := range p.Type {
		w = append(w, u.At(i))
	}
	return strings.Join(w, " ")
}

// Mentions reports whether f's body mentions the parameter.
func (u *Unit) Mentions(f *Function, name string) bool {
	names := u.mentioned[f]
	if names == nil {
		names = map[string]bool{}
		for i := f.Body; i < u.Match[f.Body]; i++ {
			if u.Tok[i].Kind == Ident && u.At(i-1) != "." && u.At(i-1) != "->" {
				names[u.At(i)] = true
			}
		}
		if u.mentioned == nil {
			u.mentioned = map[*Function]map[string]bool{}
		}
		u.mentioned[f] = names
	}
	return names[name]
}

// Substitute fills the template arguments of e into text, which is a sequence of
// tokens.
func (e Entry) Substitute(text string) string {
	w := strings.Fields(text)
	for i := range w {
		for j, n := range e.Function.Template {
			if w[i] == n && j < len(e.Args) {
				w[i] = e.Args[j]
			}
		}
	}
	return strings.Join(w, " ")
}

// Product evaluates a product of integer literals, as attributes and array lengths
// contain.
func Product(text string) (int64, error) {
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
