package mslc

import (
	"strings"

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// Metal tells functions, methods and specialisations of classes apart by address spaces, which the
// rewritten source does not have. Of those that are alike without them, twins, the first stays.
// That is sound only if they do the same: else it is an error.

// twins removes all but one of each set of twins.
func (r *rewriter) twins() error {
	type first struct {
		start, end int // what has to be alike: the body
		tok        int // for messages
	}
	seen := map[string]first{}
	keep := func(key string, start, end, bodyStart, bodyEnd, tok int) error {
		old, ok := seen[key]
		if !ok {
			seen[key] = first{bodyStart, bodyEnd, tok}
			return nil
		}
		if a, b := r.plain(old.start, old.end), r.plain(bodyStart, bodyEnd); a != b {
			return r.errorf(tok, "%s differs by address spaces alone from the one in line %d, and does something else: this cannot be compiled here", r.At(tok), r.Tok[old.tok].Line)
		}
		r.Drop(start, end)
		return nil
	}
	for _, c := range r.Classes {
		key := "class " + c.Scope.Path + r.plain(c.Start, c.Open)
		if !strings.Contains(key, "<") { // only specialisations can be twins
			continue
		}
		if err := keep(key, c.Start, c.End, c.Open, r.Match[c.Open], c.Open-1); err != nil {
			return err
		}
	}
	for _, f := range r.Functions {
		if r.Dropped(f.Start) && !r.Attribute(f.Start) { // its class was a twin
			continue
		}
		r.qualifiers(f)
		if f.Body < 0 {
			continue // declaring a function twice is no mistake
		}
		if err := keep(r.signature(f), f.Start, f.End, r.Match[f.Open]+1+len(r.after(f)), f.End, f.Tok); err != nil {
			return err
		}
	}
	return nil
}

// signature is what C++ tells functions apart by.
func (r *rewriter) signature(f *msltree.Function) string {
	var b strings.Builder
	b.WriteString(f.Scope.Path)
	b.WriteString(" ")
	b.WriteString(r.plain(f.Start, f.Open))
	for _, p := range f.Params {
		b.WriteString(",")
		if p.Constant && p.Shape != msltree.ByValue {
			b.WriteString("const ")
		}
		b.WriteString(r.TypeText(p))
		for i := p.First; i < p.End; i++ {
			switch t := r.At(i); t {
			case "*", "&", "&&", "[", "...":
				b.WriteString(t)
			case "=":
				i = p.End
			case "<":
				if e := r.Angle(i); e > 0 && e <= p.End {
					i = e - 1
				}
			}
			if i < p.End && r.Match[i] > i {
				i = r.Match[i]
			}
		}
	}
	if r.constMethod(f) {
		b.WriteString(" const")
	}
	return b.String()
}

// plain is the text of tokens without address spaces and attributes.
func (r *rewriter) plain(start, end int) string {
	var b strings.Builder
	last := ""
	for i := start; i < end; i++ {
		t := r.At(i)
		switch {
		case r.Attribute(i):
			i = r.Match[i]
			continue
		case t == "constant":
			t = "const"
		case msltree.Spaces[t], t == "static", t == "inline":
			continue
		}
		if t == "const" && last == "const" {
			continue
		}
		last = t
		b.WriteString(t)
		b.WriteString(" ")
	}
	return b.String()
}

// after returns the qualifiers behind the parameters of a method, as tokens.
func (r *rewriter) after(f *msltree.Function) []int {
	var out []int
	for i := r.Match[f.Open] + 1; ; i++ {
		switch t := r.At(i); {
		case t == "const" || t == "volatile" || msltree.Spaces[t]:
			out = append(out, i)
		default:
			return out
		}
	}
}

// constMethod reports whether a method is one of constant objects, which all objects in the
// constant address space are.
func (r *rewriter) constMethod(f *msltree.Function) bool {
	for _, i := range r.after(f) {
		if t := r.At(i); t == "const" || t == "constant" && f.Name != f.Scope.Class {
			return true
		}
	}
	return false
}

// qualifiers drops the address spaces behind a method's parameters.
func (r *rewriter) qualifiers(f *msltree.Function) {
	is := false
	for _, i := range r.after(f) {
		switch t := r.At(i); {
		case t == "const":
			is = true
		case msltree.Spaces[t]:
			r.Drop(i, i+1)
			if t == "constant" && !is && f.Name != f.Scope.Class {
				r.Replace(i, "const")
				is = true
			}
		}
	}
}
