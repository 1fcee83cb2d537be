package ptxmatrix

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/backend/internal/ptxwrite"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// entry is an entry that is written.
type entry struct {
	ptxwrite.Text
	kernel *air.Kernel
	launch nvptx.Launch
	typ    ir.DType          // of numbers of 16 bits
	args   map[string]string // registers of addresses, and of numbers, by the names of arguments
	// Registers with the address of what is added to parameters, and with the bits of those to which something is.
	table, moves string
	early        []int  // arguments that are read before the wait, by their numbers in the kernel
	target       string // of the assembler; "": sm_90a
	cluster      int    // how many blocks side by side are a cluster; 0: they are none
	resident     int    // how many blocks are to share a multiprocessor, 0 if any number may: an assembler that is not told saves registers, or takes too many
}

// elder is the target of code for compute capability 8.0, which newer GPUs run too. Only these begin launches early.
func elder(launch nvptx.Launch) string {
	if launch.Programmatic {
		return "sm_90"
	}
	return "sm_80"
}

// wait waits for the launches before, if it may begin before they have ended.
func (e *entry) wait() {
	if e.launch.Programmatic {
		e.Line("griddepcontrol.wait") // in all threads, so that what waits for this grid waits for those before it
		e.Line("griddepcontrol.launch_dependents")
	}
}

// parameters waits, and reads the arguments.
func (e *entry) parameters() {
	e.wait()
	e.arguments()
}

// arguments reads the arguments.
func (e *entry) arguments() {
	e.read(func(string) bool { return true }, e.launch.Moving)
}

// read reads some arguments. Where they may move, the table says how far.
func (e *entry) read(some func(name string) bool, moving bool) {
	params := e.list()
	if moving && e.table == "" {
		e.table = e.Make("rd", "ld.param.b64", "%s", ptxwrite.Parameter(len(params)+6))
		e.moves = e.Make("rd", "ld.param.b64", "%s", ptxwrite.Parameter(len(params)+7))
	}
	if e.args == nil {
		e.args = map[string]string{}
	}
	for i, a := range params {
		if !some(a.Name) {
			continue
		}
		v := e.Make("rd", "ld.param.b64", "%s", ptxwrite.Parameter(i))
		if moving {
			v = e.Make("rd", "add.s64", "%s, %s", v, e.addition(i))
		}
		switch {
		case !a.ByValue():
		case e.launch.Values && a.Size == 4:
			v = e.r("cvt.u32.u64", "%s", v)
		case e.launch.Values:
		case a.Size == 4:
			v = e.r("ld.global.b32", "[%s]", v)
		default:
			v = e.Make("rd", "ld.global.b64", "[%s]", v)
		}
		e.args[cmp.Or(common[a.Name], a.Name)] = v
	}
}

// addition is what the table adds to a parameter.
func (e *entry) addition(i int) string {
	there := e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, %d", e.moves, uint64(1)<<i))
	v := e.Make("rd", "mov.b64", "0")
	e.Line("@%s ld.global.b64 \t%s, [%s+%d]", there, v, e.table, 8*i)
	return v
}

// threads is how many threads the grid has in a dimension.
func (e *entry) threads(dimension int) string {
	i := len(e.list()) + dimension
	v := e.r("ld.param.b32", "%s", ptxwrite.Parameter(i))
	if e.launch.Moving {
		v = e.r("add.s32", "%s, %s", v, e.r("cvt.u32.u64", "%s", e.addition(i)))
	}
	return v
}

// list is the arguments that are parameters.
func (e *entry) list() (out []*air.Arg) {
	for i := range e.kernel.Args {
		if a := &e.kernel.Args[i]; a.Attribute == "" {
			out = append(out, a)
		}
	}
	return out
}

func (e *entry) wide(a, b string) string { return e.Make("rd", "mul.wide.u32", "%s, %s", a, b) }
func (e *entry) r(instruction, format string, args ...any) string {
	return e.Make("r", instruction, format, args...)
}

// sum is an address and an offset of 32 bits.
func (e *entry) plus(address, offset string) string {
	return e.Make("rd", "add.s64", "%s, %s", address, e.Make("rd", "cvt.u64.u32", "%s", offset))
}

// either is a where a predicate holds, else b.
func (e *entry) either(p, kind, a, b string) string {
	return e.Make(kind, map[string]string{"r": "selp.b32", "rd": "selp.b64"}[kind], "%s, %s, %s", a, b, p)
}

// single brings 16 bytes that may lie anywhere.
func (e *entry) single(to string, offset int, from, there string) {
	var words [4]string
	for i := range words {
		var halves [2]string
		for j := range halves {
			halves[j] = e.Make("rs", "mov.b16", "0")
			e.Line("@%s ld.global.b16 \t%s, [%s+%d]", there, halves[j], from, 4*i+2*j)
		}
		words[i] = e.r("mov.b32", "{%s, %s}", halves[0], halves[1])
	}
	e.Line("st.shared.v4.b32 \t[%s+%d], {%s}", to, offset, strings.Join(words[:], ", "))
}

// widened is a number of the type as f32.
func (e *entry) widened(h string) string {
	switch e.typ {
	case ir.F32:
		return h
	case ir.BF16:
		return e.r("mov.b32", "{%s, %s}", e.Make("rs", "mov.b16", "0"), h)
	}
	return e.r("cvt.f32.f16", "%s", h)
}

// rounded is an f32 rounded to the type.
func (e *entry) rounded(v string) string {
	if e.typ == ir.F32 {
		return v
	}
	return e.Make("rs", "cvt.rn."+e.typ.String()+".f32", "%s", v)
}

// stored is the same, with the one NaN of the type.
func (e *entry) stored(v string) string {
	isNaN := e.Make("p", "setp.nan.f32", "%s, %s", v, v)
	nan := "0x7E00"
	switch e.typ {
	case ir.F32:
		return e.either(isNaN, "r", "0x7FC00000", v)
	case ir.BF16:
		nan = "0x7FC0"
	}
	return e.Make("rs", "selp.b16", "%s, %s, %s", nan, e.rounded(v), isNaN)
}

// text is the whole entry.
func (e *entry) text(threads int) []byte {
	var b strings.Builder
	params := e.list()
	fmt.Fprintf(&b, "%s\n//\n// %s by package ptxmatrix\n//\n\n.version 8.0\n.target %s\n.address_size 64\n\n", nvptx.EarlyLine(e.early), e.kernel.Name, cmp.Or(e.target, "sm_90a"))
	fmt.Fprintf(&b, ".extern .shared .align 16 .b8 mlxc_shared[];\n\n.visible .entry %s(\n", nvptx.Entry)
	var lines []string
	for i, a := range params {
		kind := ".u64 .ptr .global .align 1"
		if e.launch.Values && a.ByValue() {
			kind = ".u64"
		}
		lines = append(lines, fmt.Sprintf("\t.param %s %s_param_%d", kind, nvptx.Entry, i))
	}
	for i := range 6 {
		lines = append(lines, fmt.Sprintf("\t.param .u32 %s_param_%d", nvptx.Entry, len(params)+i))
	}
	if e.launch.Moving {
		lines = append(lines, fmt.Sprintf("\t.param .u64 .ptr .global .align 1 %s_param_%d", nvptx.Entry, len(params)+6), fmt.Sprintf("\t.param .u64 %s_param_%d", nvptx.Entry, len(params)+7))
	}
	fmt.Fprintf(&b, "%s\n)\n.maxntid %d\n", strings.Join(lines, ",\n"), threads)
	if e.resident > 0 {
		fmt.Fprintf(&b, ".minnctapersm %d\n", e.resident)
	}
	if e.cluster > 0 {
		// How large a cluster is stands here, so that a launch need not say it.
		fmt.Fprintf(&b, ".explicitcluster\n.reqnctapercluster %d, 1, 1\n", e.cluster)
	}
	b.WriteString("{\n")
	b.WriteString(e.Body())
	b.WriteString("}\n")
	return []byte(b.String())
}
