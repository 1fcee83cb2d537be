package mslc

import (
	"fmt"
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
	for i := range r.Tok {
		if r.Attribute(i) {
			r.Drop(i, r.Match[i]+1)
		}
	}
	for _, v := range r.Variables {
		if err := r.variable(v); err != nil {
			return "", nil, err
		}
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
		c := functionConstant{name: v.Name, typ: typ, index: int(index)}
		c.symbol = fmt.Sprintf("_Z%d%s.MTL_FC_INIT_%d_%s", len(v.Name), v.Name, c.index, mangled[typ])
		r.constants = append(r.constants, c)
		r.Drop(v.First, v.End)
		r.Replace(v.First, fmt.Sprintf(`extern "C" const __attribute__((address_space(2))) %s %s __asm__(%q);`, typ, v.Name, c.symbol))
	}
	return nil
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
	if f.Kernel {
		r.Before(f.First, "static inline __attribute__((always_inline)) ")
	}
	for _, v := range r.ThreadgroupLocals(f) {
		r.threadgroup(v)
	}
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
	for r.At(end) != ";" && end < len(r.Tok) {
		if r.Match[end] > end {
			end = r.Match[end]
		}
		end++
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
		name := stop
		for name > i && r.At(name-1) == "]" {
			name = r.Match[name-1]
		}
		name--
		if base == "" {
			base = strings.ReplaceAll(r.Text(i, name), "threadgroup", "")
		}
		id, dims := r.At(name), r.Text(name+1, stop)
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
	for i, p := range f.Params {
		a, err := r.argument(f, p)
		if err != nil {
			return err
		}
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
	described = append(described, "::msl::argument{}") // an array is never empty
	fmt.Fprintf(b, "extern \"C\" { extern const ::msl::argument msl_arguments_%d[%d]; constexpr ::msl::argument msl_arguments_%[1]d[%d] = {%s}; }\n", n, len(described), strings.Join(described, ", "))
	return nil
}

// binding is what a kernel's parameter receives.
type binding struct {
	kind      string // "device", "constant" or "threadgroup"; "value" for a position
	attribute string
	index     int
	condition string // the function constant without which it does not exist
}

func (r *rewriter) argument(f *msltree.Function, p msltree.Parameter) (binding, error) {
	return bind(r.Unit, f, p)
}

// bind reads the attributes of a kernel's parameter.
func bind(u *msltree.Unit, f *msltree.Function, p msltree.Parameter) (binding, error) {
	fail := func(format string, args ...any) (binding, error) {
		t := u.Tok[p.First]
		return binding{}, fmt.Errorf("%s:%d: error: parameter %s of kernel %s %s", t.File, t.Line, p.Name, f.Name, fmt.Sprintf(format, args...))
	}
	var b binding
	found := false
	for _, a := range p.Attrs {
		switch a.Name {
		case "maybe_unused":
		case "function_constant":
			b.condition = a.Arg
		case "buffer", "threadgroup":
			n, err := strconv.Atoi(a.Arg)
			if err != nil || n < 0 || n > 30 {
				return fail("has the attribute [[%s(%s)]], whose index is not one of 0 to 30", a.Name, a.Arg)
			}
			if p.Shape == msltree.ByValue {
				return fail("is [[%s(%s)]], but no pointer, reference or array", a.Name, a.Arg)
			}
			if want := p.Space; want != "device" && want != "constant" && want != "threadgroup" || (want == "threadgroup") != (a.Name == "threadgroup") {
				return fail("is [[%s(%s)]], but in the address space %q", a.Name, a.Arg, p.Space)
			}
			b.kind, b.index = p.Space, n
			found = true
		default:
			if found {
				return fail("has more than one attribute")
			}
			b.kind, b.attribute = "value", a.Name
			found = true
		}
	}
	if !found {
		return fail("has no attribute ([[buffer(n)]], [[threadgroup(n)]] or the position of a thread)")
	}
	return b, nil
}
