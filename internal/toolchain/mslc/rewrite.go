package mslc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// rewriter turns a source into C++ for mslshim/metal.h.
type rewriter struct {
	*msltree.Unit
	constants []functionConstant
}

// functionConstant is a variable with the attribute function_constant.
type functionConstant struct {
	name, typ string
	index     int
	symbol    string
}

// mangled are the letters of the Itanium C++ ABI for the types that a function constant may have.
var mangled = map[string]string{
	"bool": "b", "char": "c", "uchar": "h", "short": "s", "ushort": "t", "int": "i", "uint": "j", "long": "l", "ulong": "m",
	"half": "Dh", "float": "f", "int8_t": "c", "uint8_t": "h", "int16_t": "s", "uint16_t": "t", "int32_t": "i", "uint32_t": "j",
	"int64_t": "l", "uint64_t": "m",
}

// rewrite returns the C++ of u with wrappers for the kernels.
func rewrite(u *msltree.Unit, kernels []msltree.Entry) (string, []functionConstant, error) {
	r := &rewriter{Unit: u}
	r.Literals()
	r.pragmas()
	for i := range r.Tok {
		if r.Attribute(i) {
			r.Drop(i, r.Match[i]+1)
		}
	}
	if err := r.twins(); err != nil {
		return "", nil, err
	}
	computed := map[string]bool{}
	for _, v := range r.Variables {
		if err := r.variable(v); err != nil {
			return "", nil, err
		}
		r.computed(v, computed)
	}
	for _, f := range r.Functions {
		r.function(f)
	}
	for _, in := range r.Instances {
		r.Drop(in.First, in.End)
	}
	for i, t := range r.Tok {
		if t.Kind != msltree.Ident || !r.Unedited(i) {
			continue
		}
		switch {
		case t.Text == "constant":
			r.Replace(i, "const")
		case msltree.Spaces[t.Text]:
			r.Replace(i, "")
		case t.Text == "static_cast":
			// clang has no cast between half and bfloat.
			r.Replace(i, "::msl::cast")
		case t.Text == "coherent" && r.At(i+1) == "(":
			r.Drop(i, r.Match[i+1]+1)
		case t.Text == "is_function_constant_defined" && r.At(i+1) == "(":
			// Every function constant has a value when the pipeline is made.
			r.Drop(i, r.Match[i+1]+1)
			r.Replace(i, "true")
		}
	}
	var b strings.Builder
	b.WriteString(r.swizzles())
	b.WriteString("#include \"metal.h\"\n")
	b.WriteString(r.String())
	b.WriteString("\n")
	for n, k := range kernels {
		if err := r.wrapper(&b, n, k); err != nil {
			return "", nil, err
		}
	}
	return b.String(), r.constants, nil
}

func (r *rewriter) errorf(tok int, format string, args ...any) error {
	t := r.Tok[tok]
	return fmt.Errorf("%s:%d: error: %s", t.File, t.Line, fmt.Sprintf(format, args...))
}

// unroll matches the pragma whose argument is an expression. Preprocessing leaves macros in pragmas,
// so that clang might not know the names in it: without it, the loop is unrolled wholly.
var unroll = regexp.MustCompile(`(?m)^([ \t]*#[ \t]*pragma[ \t]+unroll)[ \t]*\(.*[a-zA-Z_].*\)`)

func (r *rewriter) pragmas() {
	for i := range r.Tok {
		if t := &r.Tok[i]; strings.Contains(t.Lead, "#") {
			t.Lead = unroll.ReplaceAllString(t.Lead, "$1")
		}
	}
}

// sized are the scalar types by their names with a size, as a source may spell those of function constants.
var sized = map[string]string{
	"int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int", "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong",
}

// variable turns a function constant into a variable that is defined elsewhere, with the name
// that AIR gives its initial value.
func (r *rewriter) variable(v *msltree.Variable) error {
	for _, a := range v.Attrs {
		if a.Name != "function_constant" {
			continue
		}
		typ := ""
		for i := v.First; i < v.End && r.At(i) != v.Name; i++ {
			if t := r.At(i); mangled[t] != "" {
				typ = t
			}
		}
		index, err := strconv.ParseUint(r.number(a), 10, 16)
		if err != nil || typ == "" {
			return r.errorf(v.First, "function constant %s has the index %q and the type %q: an index from 0 to 65535 and a scalar type are wanted", v.Name, a.Arg, typ)
		}
		name := typ
		if s, ok := sized[typ]; ok {
			name = s
		}
		c := functionConstant{name: v.Name, typ: name, index: int(index)}
		c.symbol = fmt.Sprintf("_Z%d%s.MTL_FC_INIT_%d_%s", len(v.Name), v.Name, c.index, mangled[typ])
		r.constants = append(r.constants, c)
		r.Drop(v.First, v.End)
		r.Replace(v.First, fmt.Sprintf(`extern "C" const __attribute__((address_space(2))) %s %s __asm__(%q);`, typ, v.Name, c.symbol))
	}
	return nil
}

// computed turns a constant whose value depends on function constants into an object that computes
// it where it is used: nothing runs before a kernel. names are the constants seen so far on which
// others may depend.
func (r *rewriter) computed(v *msltree.Variable, names map[string]bool) {
	equal, depends := -1, false
	for i := v.First; i < v.End; i++ {
		switch {
		case equal < 0 && r.Attribute(i):
			names[v.Name] = names[v.Name] || r.At(i+2) == "function_constant"
			i = r.Match[i]
		case equal < 0 && r.At(i) == "=":
			equal = i
		case equal >= 0 && names[r.At(i)] && r.Tok[i].Kind == msltree.Ident:
			depends = true
		}
	}
	if !depends || r.At(equal-1) != v.Name {
		return
	}
	names[v.Name] = true
	var typ []string
	for i := v.First; i < equal-1; i++ {
		if t := r.At(i); !msltree.Spaces[t] && t != "const" && t != "constexpr" && t != "static" && t != "inline" {
			typ = append(typ, t)
		}
	}
	t, value := strings.Join(typ, " "), r.Text(equal+1, v.End-1)
	r.Drop(v.First, v.End)
	r.Replace(v.First, fmt.Sprintf("static const struct { METAL_FUNC operator %s() const { return (%[1]s)(%s); } } %s{};", t, value, v.Name))
}

// number is the value of an attribute that is a sum of numbers, else its text.
func (r *rewriter) number(a msltree.Attribute) string {
	sum := 0
	for i, w := range strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(a.Arg)) {
		n, err := strconv.Atoi(w)
		if i%2 == 1 && w == "+" {
			continue
		}
		if i%2 == 1 || err != nil {
			return a.Arg
		}
		sum += n
	}
	return strconv.Itoa(sum)
}

// function makes kernels functions that are always inlined into their wrappers, and threadgroup
// variables bytes in address space 3.
func (r *rewriter) function(f *msltree.Function) {
	for i := f.First; i < f.Tok; i++ {
		if r.At(i) == "kernel" {
			r.Drop(i, i+1)
		}
	}
	if most := mostThreads(f); f.Kernel && most != "" && f.Body >= 0 {
		// A template beside the kernel's, so that clang evaluates the attribute for each instance.
		r.Before(f.Start, fmt.Sprintf("%s struct msl_most_%d { static constexpr unsigned long value = (%s); }; ", r.Text(f.Start, f.First), f.Tok, most))
	}
	if f.Kernel {
		r.Before(f.First, "static inline __attribute__((always_inline)) ")
	}
	for _, v := range r.ThreadgroupLocals(f) {
		r.threadgroup(v)
	}
}

// mostThreads is the expression in [[max_total_threads_per_threadgroup]], or "".
func mostThreads(f *msltree.Function) string {
	for _, a := range f.Attrs {
		if a.Name == "max_total_threads_per_threadgroup" {
			return a.Arg
		}
	}
	return ""
}

// threadgroup rewrites the declaration of threadgroup variables. Bytes of their size are a static
// variable in address space 3, and the variables are references to them.
func (r *rewriter) threadgroup(v msltree.ThreadgroupLocal) {
	first := v.Tok
	var align string
	for {
		switch p := r.At(first - 1); {
		case p == "const" || p == "static" || p == "volatile":
			first--
			continue
		case p == ")" && r.At(r.Match[first-1]-1) == "alignas":
			open := r.Match[first-1]
			align = "alignas(" + r.Text(open+1, first-1) + ") "
			first = open - 1
			continue
		}
		break
	}
	end := v.Tok
	for r.At(end) != ";" {
		if end >= len(r.Tok) || r.At(end) == "}" {
			return // clang will say what is wrong
		}
		end = max(end, r.Match[end]) + 1
	}
	var b strings.Builder
	base := ""
	for i := v.Tok + 1; i < end; {
		// One declarator: its type if it is the first, its name and its dimensions.
		stop, depth := i, 0
		for stop < end && (depth > 0 || r.At(stop) != ",") {
			switch t := r.At(stop); {
			case t == "<":
				depth++
			case t == ">":
				depth--
			case r.Match[stop] > stop:
				stop = r.Match[stop]
			}
			stop++
		}
		// A threadgroup variable has no initial value, whatever is written.
		name := i
		for name < stop && r.At(name) != "=" && r.At(name) != "{" {
			name++
		}
		declared := name
		for name > i && r.At(name-1) == "]" {
			name = r.Match[name-1]
		}
		name--
		if base == "" {
			base = strings.ReplaceAll(r.Text(i, name), "threadgroup", "")
		}
		id, dims := r.At(name), r.Text(name+1, declared)
		fmt.Fprintf(&b, "typedef %s msl_%s_t%s; %salignas(msl_%[2]s_t) static __attribute__((address_space(3), loader_uninitialized)) unsigned char msl_%[2]s[sizeof(msl_%[2]s_t)]; msl_%[2]s_t& %[2]s = *(msl_%[2]s_t*)&msl_%[2]s;", base, id, dims, align)
		i = stop + 1
	}
	r.Drop(first, end)
	r.Replace(end, b.String())
}

// wrapper writes the function that AIR has for a kernel, and the description of its arguments.
func (r *rewriter) wrapper(b *strings.Builder, n int, k msltree.Entry) error {
	f := k.Function
	typ := fmt.Sprintf("msl_type_%d", n)
	var params, args, described []string
	bound, err := bind(r.Unit, f)
	if err != nil {
		return err
	}
	for i, a := range bound {
		t := fmt.Sprintf("typename ::msl::pass<%s, %d>::%s", typ, i, a.kind)
		params = append(params, fmt.Sprintf("%s p%d", strings.TrimPrefix(t, "typename "), i))
		args = append(args, fmt.Sprintf("::msl::pass<%s, %d>::take(p%d)", typ, i, i))
		memory := "memory"
		if a.kind == "value" {
			memory = "value"
		}
		described = append(described, fmt.Sprintf("::msl::%s<%s, %d>()", memory, typ, i))
	}
	// Messages of clang about this kernel should name the line of its instance.
	fmt.Fprintf(b, "# %d %q\n", k.Line, k.File)
	fmt.Fprintf(b, "typedef decltype(%s) %s; ", k.Expr, typ)
	list := strings.Join(params, ", ")
	fmt.Fprintf(b, "extern \"C\" void msl_kernel_%d(%s) __asm__(%q); ", n, list, k.Host)
	fmt.Fprintf(b, "void msl_kernel_%d(%s) { %s(%s); } ", n, list, k.Expr, strings.Join(args, ", "))
	if mostThreads(f) != "" {
		fmt.Fprintf(b, "extern \"C\" { extern const unsigned long msl_most_of_%d; constexpr unsigned long msl_most_of_%[1]d = msl_most_%d%s::value; } ", n, f.Tok, strings.TrimPrefix(k.Expr, f.Name))
	}
	described = append(described, "::msl::argument{}") // an array is never empty
	fmt.Fprintf(b, "extern \"C\" { extern const ::msl::argument msl_arguments_%d[%d]; constexpr ::msl::argument msl_arguments_%[1]d[%d] = {%s}; }\n", n, len(described), strings.Join(described, ", "))
	return nil
}
