package mslcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Types maps Metal's names of the element types to ours.
var Types = map[string]ir.DType{
	"bool": ir.Bool, "uchar": ir.U8, "char": ir.I8, "ushort": ir.U16, "short": ir.I16, "uint": ir.U32, "int": ir.I32,
	"ulong": ir.U64, "long": ir.I64, "half": ir.F16, "bfloat": ir.BF16, "float": ir.F32,
}

// argument is an argument as both source and declaration describe it.
type argument struct {
	slot   int
	name   string
	space  string
	dtype  ir.DType
	count  int64 // of a constant argument
	access string
}

func (a argument) String() string {
	s := fmt.Sprintf("%d %s %s %s", a.slot, a.name, a.space, a.dtype)
	if a.count > 1 {
		s += fmt.Sprintf("[%d]", a.count)
	}
	return s + " " + a.access
}

// pragma keeps the compiler from contracting a*b + c to an fma, which would round only
// once.
const pragma = "#pragma clang fp contract(off)"

// Compare returns every difference between the declarations ds of a source that [Check]
// has accepted and its kernels.
func (l *Library) Compare(file, source string, ds []*decl.Decl) (errs []error) {
	differ := func(line int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...)))
	}
	off := lineOf(source, file, pragma)
	kernels := map[string]Kernel{}
	declared := map[string]int{} // the line of the declaration
	for _, d := range ds {
		declared[d.Name] = d.Line
	}
	for _, k := range l.Kernels {
		kernels[k.Host] = k
		if off == 0 || off > k.Line {
			differ(k.Line, "kernel %s stands before %s, or without it: the compiler may contract what the term rounds", k.Host, pragma)
		}
		if declared[k.Host] == 0 {
			differ(k.Line, "kernel %s has no declaration: write // @kernel %s and what follows above it (docs/kernels.md)", k.Host, k.Host)
		}
	}
	for _, d := range ds {
		k, ok := kernels[d.Name]
		if !ok {
			differ(d.Line, "@kernel %s: the source has no kernel of this host name", d.Name)
			continue
		}
		ours, theirs := fromDeclaration(d), fromSource(k, d)
		for i := range max(len(ours), len(theirs)) {
			switch {
			case i >= len(ours):
				differ(k.Line, "kernel %s has the argument %q, which its declaration lacks", d.Name, theirs[i])
			case i >= len(theirs):
				differ(d.Line, "@kernel %s declares the argument %q, which the source lacks", d.Name, ours[i])
			case ours[i] != theirs[i]:
				differ(d.Line, "@kernel %s declares the argument %q, which is %q in the source", d.Name, ours[i], theirs[i])
			}
		}
		for _, c := range d.Constants {
			i := slices.IndexFunc(l.Constants, func(x FunctionConstant) bool { return x.Index == c.Index })
			if i < 0 {
				differ(d.Line, "@kernel %s: the source has no function constant %d", d.Name, c.Index)
			} else if x := l.Constants[i]; x.Name != c.Name || Types[x.Type] != c.Type {
				differ(d.Line, "@kernel %s declares the function constant %d %s %s, which is %s %s in the source", d.Name, c.Index, c.Name, c.Type, x.Name, x.Type)
			}
		}
		if d.Line >= k.Line {
			differ(d.Line, "the declaration of %s stands behind its kernel, which is in line %d: put it above", d.Name, k.Line)
		}
		for _, other := range l.Kernels {
			if other.Line > d.Line && other.Line < k.Line && declared[other.Host] != d.Line {
				differ(d.Line, "kernel %s stands between %s and its declaration", other.Function, d.Name)
			}
		}
	}
	return errs
}

// lineOf is the line of a file that has a text, or by which a header is included that has it; 0 if there is none.
func lineOf(source, file, text string) int {
	at, in := 0, file
	for _, l := range strings.Split(source, "\n") {
		var n int
		var name string
		if _, err := fmt.Sscanf(l, "#line %d %q", &n, &name); err == nil {
			if in = name; in == file {
				at = n - 1
			}
			continue
		}
		if in == file {
			at++
		}
		if l == text {
			return max(at, 1)
		}
	}
	return 0
}

func fromSource(k Kernel, d *decl.Decl) []argument {
	var out []argument
	for _, p := range k.Params {
		if p.If != "" && lacks(d, p) {
			continue
		}
		a := argument{slot: p.Slot, name: p.Name, space: p.Space, dtype: Types[p.Type], access: "written"}
		switch {
		case !p.Used:
			a.access = "unused"
		case p.Const:
			a.access = "read"
		}
		if p.Space == "constant" {
			a.count = p.Count
			if x, ok := d.ArgNamed(p.Name); ok && p.Count == 0 {
				a.count = int64(x.Count) // a pointer does not say how many elements there are
			}
		}
		out = append(out, a)
	}
	return out
}

// lacks reports whether d is for dispatches without a parameter that is there for some function constants alone: it has no
// such argument, and does not allow the constant to be true.
func lacks(d *decl.Decl, p Param) bool {
	if _, ok := d.ArgNamed(p.Name); ok {
		return false
	}
	i := slices.IndexFunc(d.Constants, func(c decl.Constant) bool { return c.Name == p.If })
	if i < 0 {
		return false
	}
	c := d.Constants[i]
	may, err := d.Allows([]ir.FunctionConstant{{Index: c.Index, Name: c.Name, Type: c.Type, Bits: 1}})
	return err == nil && !may
}

func fromDeclaration(d *decl.Decl) []argument {
	var out []argument
	for _, x := range d.Args {
		a := argument{slot: int(x.Slot), name: x.Name, space: x.Kind.String(), dtype: x.Type, access: "written"}
		switch x.Mode {
		case decl.Unused:
			a.access = "unused"
		case decl.Read:
			a.access = "read"
		}
		if x.Kind == ir.ConstantArg {
			a.count = int64(x.Count)
		}
		out = append(out, a)
	}
	return out
}
