package mslcheck

import (
	"fmt"
	"regexp"
	"strings"
)

// spaceMacros are the names of the address spaces in shim/msl.h. They mean nothing, or
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

// suffixed matches literals of half and bfloat.
var suffixed = regexp.MustCompile(`^([0-9.]+(?:[eE][+-]?[0-9]+)?)(h|H|bf|BF)$`)

// kernelSymbol is the name of the object's symbol that holds the address of kernel n.
func kernelSymbol(n int) string { return fmt.Sprintf("msl_kernel_%d", n) }

// emit rewrites u into C++ that includes shim/msl.h. For kernel n of unit.all, the
// symbol kernelSymbol(n) holds its address, which also instantiates it.
func (u *unit) emit() string {
	u.casts()
	u.constructors()
	u.literals()
	for _, f := range u.functions {
		u.emitFunction(f)
	}
	for _, v := range u.variables {
		u.emitVariable(v)
	}
	for i, t := range u.Tok {
		if m, ok := spaceMacros[t.Text]; ok && t.Kind == Ident && u.out[i] == t.Text {
			u.Replace(i, m)
		}
	}
	for i := range u.Tok {
		if u.attribute(i) {
			u.Drop(i, u.match[i]+1)
		}
	}
	for _, in := range u.instances {
		u.emitInstance(in)
	}
	out := "#include \"msl.h\"\n" + u.String() + "\n"
	for n, k := range u.all() {
		// Messages of clang about this instance should name the instance's line.
		out += fmt.Sprintf("# %d %q\n", k.line, k.file)
		out += fmt.Sprintf("extern \"C\" { extern const void* const %s; const void* const %[1]s = reinterpret_cast<const void*>(&%s); }\n", kernelSymbol(n), k.expr)
	}
	return out
}

// entry is a kernel that a host can ask for.
type entry struct {
	host string
	f    *function
	args []string // template arguments
	expr string   // the kernel as a C++ expression
	file string   // the file of the instance, or of a kernel that is no template
	line int
}

// all returns the kernels of u that a host can ask for.
func (u *unit) all() []entry {
	var out []entry
	for _, f := range u.functions {
		if f.kernel && f.template == nil && f.body >= 0 {
			out = append(out, entry{host: hostOf(f), f: f, expr: f.name, file: u.Tok[f.tok].File, line: u.Tok[f.tok].Line})
		}
	}
	for _, in := range u.instances {
		if f := u.kernel(in.name); f != nil {
			out = append(out, entry{host: in.host, f: f, args: in.args, expr: u.Text(in.nameTok, in.argsEnd), file: u.Tok[in.first].File, line: u.Tok[in.first].Line})
		}
	}
	return out
}

func (u *unit) emitFunction(f *function) {
	for i := f.first; i < f.tok; i++ {
		if u.At(i) == "kernel" {
			u.Drop(i, i+1)
		}
	}
	for _, p := range f.params {
		// An array in an address space is a pointer into that address space.
		if p.shape == array && p.space != "" && p.nameTok >= 0 {
			u.Before(p.nameTok, "*")
			for i := p.nameTok + 1; i < p.end; i++ {
				if u.At(i) == "[" && !u.attribute(i) {
					u.Drop(i, u.match[i]+1)
				}
				if u.match[i] > i {
					i = u.match[i]
				}
			}
		}
	}
	for _, v := range u.threadgroupLocals(f) {
		if u.At(v.tok-1) != "static" {
			u.Before(v.tok, "static ")
		}
	}
}

func (u *unit) emitVariable(v *variable) {
	for _, a := range v.attrs {
		if a.name == "function_constant" {
			u.Before(v.first, "extern ")
		}
	}
}

// emitInstance removes an explicit instantiation, because taking the kernel's address
// instantiates it. What it leaves checks that the two spellings of the kernel agree.
func (u *unit) emitInstance(in *instance) {
	a := ""
	if in.decltype[1] > 0 {
		a = fmt.Sprintf(`static_assert(__is_same(decltype(%s), decltype(%s)), "the instance is of another type than its function");`,
			u.Text(in.decltype[0], in.decltype[1]), u.Text(in.nameTok, in.argsEnd))
	}
	u.Drop(in.first, in.end)
	u.Replace(in.first, a)
}

// casts turns C casts to pointers into reinterpret_cast, which keeps address spaces and
// const, where a C cast would drop them.
func (u *unit) casts() {
	for i := len(u.Tok) - 1; i >= 0; i-- {
		if u.At(i) != "(" || u.At(u.match[i]-1) != "*" || u.match[i] == i+1 {
			continue
		}
		spaced := false
		for j := i + 1; j < u.match[i]; j++ {
			spaced = spaced || spaces[u.At(j)]
		}
		end := u.operand(u.match[i] + 1)
		if !spaced || end < 0 || u.Tok[i+1].Kind != Ident {
			continue
		}
		u.Replace(i, "reinterpret_cast<")
		u.Replace(u.match[i], ">(")
		u.After(end, ")")
	}
}

// operand returns the last token of the operand of a cast, or −1 if no operand begins
// at i.
func (u *unit) operand(i int) int {
	for strings.Contains("* & - + ! ~ ++ --", u.At(i)) && u.At(i) != "" && u.Tok[i].Kind == Punct {
		i++
	}
	switch {
	case u.At(i) == "(":
		i = u.match[i]
		if u.At(i-1) == "*" { // another cast
			return u.operand(i + 1)
		}
	case i < len(u.Tok) && u.Tok[i].Kind != Punct:
	default:
		return -1
	}
	for {
		switch n := u.At(i + 1); {
		case n == "[" || n == "(":
			i = u.match[i+1]
		case n == "." || n == "->" || n == "::":
			i += 2
		case n == "++" || n == "--":
			i++
		case n == "<" && strings.HasSuffix(u.At(i), "_cast"):
			i = u.angle(i+1) - 1
		default:
			return i
		}
	}
}

// constructors turns T(…) of vector types into a call.
func (u *unit) constructors() {
	for i, t := range u.Tok {
		switch {
		case t.Kind != Ident || u.At(i-1) == "operator":
		case vectors[t.Text] && u.At(i+1) == "(":
			u.Replace(i, "::msl::make<"+t.Text+">")
		case t.Text == "vec" && u.At(i+1) == "<":
			if e := u.angle(i + 1); e > 0 && u.At(e) == "(" {
				u.Before(i, "::msl::make<")
				u.After(e-1, ">")
			}
		}
	}
}

func (u *unit) literals() {
	for i, t := range u.Tok {
		if t.Kind != Number {
			continue
		}
		if m := suffixed.FindStringSubmatch(t.Text); m != nil && !strings.HasPrefix(t.Text, "0x") {
			typ := "half"
			if strings.EqualFold(m[2], "bf") {
				typ = "bfloat"
			}
			digits := m[1]
			if !strings.ContainsAny(digits, ".eE") {
				digits += ".0"
			}
			u.Replace(i, fmt.Sprintf("(%s(%sf))", typ, digits))
		}
	}
}
