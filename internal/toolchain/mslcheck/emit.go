package mslcheck

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// spaceMacros are the names of the address spaces in mslshim/check.h. They mean nothing, or
// real address spaces if MSL_SPACES is defined.
var spaceMacros = map[string]string{
	"device": "MSL_DEVICE", "constant": "MSL_CONSTANT", "threadgroup": "MSL_THREADGROUP", "thread": "MSL_THREAD",
}

// vectors are the names of the vector types. "float4(…)" is not C++ for the builtin
// vectors that the shim uses.
var vectors = func() map[string]bool {
	m := map[string]bool{}
	for _, t := range []string{"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat"} {
		for n := 2; n <= 4; n++ {
			m[fmt.Sprint(t, n)] = true
		}
	}
	return m
}()

// kernelSymbol is the name of the object's symbol that holds the address of kernel n.
func kernelSymbol(n int) string { return fmt.Sprintf("msl_kernel_%d", n) }

// unit is a source that is rewritten for the checks.
type unit struct{ *msltree.Unit }

// emit rewrites u into C++ that includes mslshim/check.h. For kernel n of unit.all, the
// symbol kernelSymbol(n) holds its address, which also instantiates it.
func (u *unit) emit() string {
	u.casts()
	u.constructors()
	u.Literals()
	for _, f := range u.Functions {
		u.emitFunction(f)
	}
	for _, v := range u.Variables {
		u.emitVariable(v)
	}
	for i, t := range u.Tok {
		if m, ok := spaceMacros[t.Text]; ok && t.Kind == msltree.Ident && u.Unedited(i) {
			u.Replace(i, m)
		}
	}
	for i := range u.Tok {
		if u.Attribute(i) {
			u.Drop(i, u.Match[i]+1)
		}
	}
	for _, in := range u.Instances {
		u.emitInstance(in)
	}
	out := "#include \"check.h\"\n" + u.String() + "\n"
	for n, k := range u.Entries() {
		// Messages of clang about this instance should name the instance's line.
		out += fmt.Sprintf("# %d %q\n", k.Line, k.File)
		out += fmt.Sprintf("extern \"C\" { extern const void* const %s; const void* const %[1]s = reinterpret_cast<const void*>(&%s); }\n", kernelSymbol(n), k.Expr)
	}
	return out
}

func (u *unit) emitFunction(f *msltree.Function) {
	for i := f.First; i < f.Tok; i++ {
		if u.At(i) == "kernel" {
			u.Drop(i, i+1)
		}
	}
	for _, p := range f.Params {
		// An array in an address space is a pointer into that address space.
		if p.Shape == msltree.Array && p.Space != "" && p.NameTok >= 0 {
			u.Before(p.NameTok, "*")
			for i := p.NameTok + 1; i < p.End; i++ {
				if u.At(i) == "[" && !u.Attribute(i) {
					u.Drop(i, u.Match[i]+1)
				}
				if u.Match[i] > i {
					i = u.Match[i]
				}
			}
		}
	}
	for _, v := range u.ThreadgroupLocals(f) {
		if u.At(v.Tok-1) != "static" {
			u.Before(v.Tok, "static ")
		}
	}
}

func (u *unit) emitVariable(v *msltree.Variable) {
	for _, a := range v.Attrs {
		if a.Name == "function_constant" {
			u.Before(v.First, "extern ")
		}
	}
}

// emitInstance removes an explicit instantiation, because taking the kernel's address
// instantiates it. What it leaves checks that the two spellings of the kernel agree.
func (u *unit) emitInstance(in *msltree.Instance) {
	a := ""
	if in.Decltype[1] > 0 {
		a = fmt.Sprintf(`static_assert(__is_same(decltype(%s), decltype(%s)), "the instance is of another type than its function");`,
			u.Text(in.Decltype[0], in.Decltype[1]), u.Text(in.NameTok, in.ArgsEnd))
	}
	u.Drop(in.First, in.End)
	u.Replace(in.First, a)
}

// casts turns C casts to pointers into reinterpret_cast, which keeps address spaces and
// const, where a C cast would drop them.
func (u *unit) casts() {
	for i := len(u.Tok) - 1; i >= 0; i-- {
		if u.At(i) != "(" || u.At(u.Match[i]-1) != "*" || u.Match[i] == i+1 {
			continue
		}
		spaced := false
		for j := i + 1; j < u.Match[i]; j++ {
			spaced = spaced || msltree.Spaces[u.At(j)]
		}
		end := u.operand(u.Match[i] + 1)
		if !spaced || end < 0 || u.Tok[i+1].Kind != msltree.Ident {
			continue
		}
		u.Replace(i, "reinterpret_cast<")
		u.Replace(u.Match[i], ">(")
		u.After(end, ")")
	}
}

// operand returns the last token of the operand of a cast, or −1 if no operand begins
// at i.
func (u *unit) operand(i int) int {
	for strings.Contains("* & - + ! ~ ++ --", u.At(i)) && u.At(i) != "" && u.Tok[i].Kind == msltree.Punct {
		i++
	}
	switch {
	case u.At(i) == "(":
		i = u.Match[i]
		if u.At(i-1) == "*" { // another cast
			return u.operand(i + 1)
		}
	case i < len(u.Tok) && u.Tok[i].Kind != msltree.Punct:
	default:
		return -1
	}
	for {
		switch n := u.At(i + 1); {
		case n == "[" || n == "(":
			i = u.Match[i+1]
		case n == "." || n == "->" || n == "::":
			i += 2
		case n == "++" || n == "--":
			i++
		case n == "<" && strings.HasSuffix(u.At(i), "_cast"):
			i = u.Angle(i+1) - 1
		default:
			return i
		}
	}
}

// constructors turns T(…) of vector types into a call.
func (u *unit) constructors() {
	for i, t := range u.Tok {
		switch {
		case t.Kind != msltree.Ident || u.At(i-1) == "operator":
		case vectors[t.Text] && u.At(i+1) == "(":
			u.Replace(i, "::msl::make<"+t.Text+">")
		case t.Text == "vec" && u.At(i+1) == "<":
			if e := u.Angle(i + 1); e > 0 && u.At(e) == "(" {
				u.Before(i, "::msl::make<")
				u.After(e-1, ">")
			}
		}
	}
}
