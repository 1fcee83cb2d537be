package ptxwrite

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

var (
	typeNames = map[ir.DType]string{ir.F32: "float", ir.F16: "half", ir.BF16: "bfloat"}
	sizes     = map[ir.DType]int{ir.F32: 4, ir.F16: 2, ir.BF16: 2}
)

// Describe returns the description of a generated kernel, whose declaration [decl.Elementwise] made: the same as
// compiling its Metal source gives.
func Describe(d *decl.Decl) *air.Kernel {
	p := elementwise.Compile(d)
	k := &air.Kernel{
		Name: elementwise.Function, AIR: air.Version{Major: 2, Minor: 6}, Metal: air.Version{Major: 3, Minor: 1},
		Options: []string{"denorms_disable", "fast_math_disable", "framebuffer_fetch_enable"},
	}
	memory := func(name string, slot uint8, t ir.DType, space air.Space, access air.Access, size int64) {
		n := int64(sizes[t])
		k.Args = append(k.Args, air.Arg{Name: name, Type: typeNames[t], Index: int(slot), Space: space, Access: access, Size: size, TypeSize: n, TypeAlign: n})
	}
	for _, o := range p.Operands {
		memory(decl.ElementwiseOperand(int(o.Slot), o.Type), o.Slot, o.Type, air.Device, air.Read, 0)
	}
	for i, s := range p.Out {
		memory(fmt.Sprint("out", i), s, p.OutTypes[i], air.Device, air.ReadWrite, 0)
	}
	for i, s := range p.Constants {
		memory(fmt.Sprint("s", i), s, ir.F32, air.Constant, air.Read, 4)
	}
	if p.Flat {
		k.Args = append(k.Args, air.Arg{Name: "at", Type: "uint", Attribute: "thread_position_in_grid"})
	} else {
		k.Args = append(k.Args, air.Arg{Name: "position", Type: "uint2", Attribute: "thread_position_in_grid"}, air.Arg{Name: "grid", Type: "uint2", Attribute: "threads_per_grid"})
	}
	return k
}

// Emit returns the PTX of a generated kernel's entry, for a way to launch it.
func Emit(d *decl.Decl, launch nvptx.Launch) []byte {
	e := &emitter{Program: elementwise.Compile(d), launch: launch}
	e.thread()
	e.steps()
	e.results()
	return e.text()
}

// emitter writes one entry.
type emitter struct {
	*elementwise.Program
	Text
	launch nvptx.Launch

	memory []string // registers of the addresses of operands, results and constants
	// Registers with the position of the thread: its index in the results (at if they are flat, else wide), its
	// column and row.
	at, wide, column, row string
	bytes                 map[string]string // registers of byte offsets, by index and type
	values, halves        []string          // of steps
}

// parameters is how many parameters an entry has, without those for the table of additions.
func (e *emitter) parameters() int { return e.arguments() + 6 }

// arguments is how many of the parameters are addresses.
func (e *emitter) arguments() int { return len(e.Operands) + len(e.Out) + len(e.Constants) }

// thread computes the position of the thread, and has it return if that is not in the grid.
func (e *emitter) thread() {
	n := e.arguments()
	var numbers []string
	for i := range e.parameters() {
		kind := "rd"
		if i >= n {
			kind = "r"
		}
		r := e.Make(kind, "ld.param.b"+map[string]string{"rd": "64", "r": "32"}[kind], "%s", Parameter(i))
		if kind == "rd" {
			e.memory = append(e.memory, r)
		} else {
			numbers = append(numbers, r)
		}
	}
	if e.launch.Moving {
		table := e.Make("rd", "ld.param.b64", "%s", Parameter(n+6))
		moves := e.Make("rd", "ld.param.b64", "%s", Parameter(n+7))
		for i := range e.parameters() - 3 {
			bit := e.Make("rd", "and.b64", "%s, %d", moves, uint64(1)<<i)
			there := e.Make("p", "setp.ne.b64", "%s, 0", bit)
			addition := e.Make("rd", "mov.b64", "0")
			e.Line("@%s ld.global.b64 \t%s, [%s+%d]", there, addition, table, 8*i)
			if i < n {
				e.memory[i] = e.Make("rd", "add.s64", "%s, %s", e.memory[i], addition)
				continue
			}
			low := e.Make("r", "cvt.u32.u64", "%s", addition)
			numbers[i-n] = e.Make("r", "add.s32", "%s, %s", numbers[i-n], low)
		}
	}
	numbers[5] = e.Make("r", "and.b32", "%s, %d", numbers[5], nvptx.WholeThreadgroups-1)
	lane := e.Make("r", "mov.u32", "%%tid.x")
	var begin, here [3]string
	out := ""
	leave := func(p string) {
		if out != "" {
			p = e.Make("p", "or.pred", "%s, %s", out, p)
		}
		out = p
	}
	for i, x := range "xyz" {
		grid, group := numbers[i], numbers[3+i]
		block := e.Make("r", "mov.u32", "%%ctaid.%c", x)
		begin[i] = e.Make("r", "mul.lo.s32", "%s, %s", block, group)
		if e.launch.Moving {
			// The launched grid may be larger, with more threads than 32 bits can count.
			first := e.Make("rd", "mul.wide.u32", "%s, %s", block, group)
			leave(e.Make("p", "setp.ge.u64", "%s, %s", first, e.Make("rd", "cvt.u64.u32", "%s", grid)))
		}
		rest := e.Make("r", "sub.s32", "%s, %s", grid, begin[i])
		here[i] = e.Make("r", "min.u32", "%s, %s", rest, group)
	}
	area := e.Make("r", "mul.lo.s32", "%s, %s", here[0], here[1])
	volume := e.Make("r", "mul.lo.s32", "%s, %s", area, here[2])
	leave(e.Make("p", "setp.ge.u32", "%s, %s", lane, volume))
	e.place(lane, begin, here, numbers[0])
	if e.launch.Programmatic {
		e.Line("griddepcontrol.wait") // in all threads, so that what waits for this grid waits for those before it
		e.Line("griddepcontrol.launch_dependents")
	}
	e.Line("@%s bra \t$L__BB0_0", out)
}

// place computes the thread's index in the results, which means nothing if the thread is not in the grid.
func (e *emitter) place(lane string, begin, here [3]string, columns string) {
	if e.Flat {
		// The grid of a flat kernel has one thread in y and in z: the lane is the place in x.
		e.at = e.Make("r", "add.s32", "%s, %s", begin[0], lane)
		return
	}
	px := e.Make("r", "rem.u32", "%s, %s", lane, here[0])
	rest := e.Make("r", "div.u32", "%s, %s", lane, here[0])
	py := e.Make("r", "rem.u32", "%s, %s", rest, here[1])
	e.column = e.Make("r", "add.s32", "%s, %s", begin[0], px)
	e.row = e.Make("r", "add.s32", "%s, %s", begin[1], py)
	above := e.Make("rd", "mul.wide.u32", "%s, %s", e.row, columns)
	e.wide = e.Make("rd", "add.s64", "%s, %s", above, e.Make("rd", "cvt.u64.u32", "%s", e.column))
}

// offset returns the byte offset of the thread's element of a type.
func (e *emitter) offset(index elementwise.Index, t ir.DType) string {
	key := fmt.Sprint(index, t)
	if e.bytes[key] != "" {
		return e.bytes[key]
	}
	at := e.at
	switch {
	case index == elementwise.Row && !e.Flat:
		at = e.column
	case index == elementwise.Column:
		at = e.row
	}
	v := ""
	if index == elementwise.Full && !e.Flat {
		v = e.Make("rd", "shl.b64", "%s, %d", e.wide, sizes[t]/2)
	} else {
		v = e.Make("rd", "mul.wide.u32", "%s, %d", at, sizes[t])
	}
	if e.bytes == nil {
		e.bytes = map[string]string{}
	}
	e.bytes[key] = v
	return v
}

// address returns the address of the thread's element of an argument.
func (e *emitter) address(argument int, index elementwise.Index, t ir.DType) string {
	if index == elementwise.One {
		return e.memory[argument]
	}
	return e.Make("rd", "add.s64", "%s, %s", e.memory[argument], e.offset(index, t))
}

// steps computes the values of all steps. One of 16 bits has two: as it is stored, and widened.
func (e *emitter) steps() {
	e.values, e.halves = make([]string, len(e.Steps)), make([]string, len(e.Steps))
	widened := e.Widened()
	for i, s := range e.Steps {
		var args []string
		for _, a := range s.Args {
			args = append(args, e.values[a])
		}
		list := strings.Join(args, ", ")
		half := ""
		switch {
		case s.Op == term.Load:
			o := e.Operands[s.Operand]
			at := e.address(s.Operand, o.Index, o.Type)
			if o.Type != ir.F32 {
				half = e.Make("rs", "ld.global.b16", "[%s]", at)
			} else {
				e.values[i] = e.Make("r", "ld.global.b32", "[%s]", at)
			}
		case s.Op == term.Round:
			half = e.Make("rs", fmt.Sprintf("cvt.rn.%s.f32", s.Type), "%s", list)
		case s.Op == term.Symbol:
			constant := e.memory[len(e.Operands)+len(e.Out)+s.Operand]
			if e.launch.Values {
				e.values[i] = e.Make("r", "cvt.u32.u64", "%s", constant)
			} else {
				e.values[i] = e.Make("r", "ld.global.b32", "[%s]", constant)
			}
		case s.Op == term.Real:
			e.values[i] = e.Make("r", "mov.b32", "%s", Number(s.Val))
		case s.Op == term.Select:
			e.values[i] = e.Make("r", "selp.f32", "%s, %s, %s", args[1], args[2], args[0])
		case s.Op.Condition():
			e.values[i] = e.Make("p", s.Op.PTX(), "%s", list)
		case s.Op.PTX() != "":
			e.values[i] = e.Make("r", s.Op.PTX(), "%s", list)
		default:
			e.values[i] = e.Call(s.Op.String(), args[0])
		}
		if e.halves[i] = half; half == "" || !widened[i] {
			continue
		}
		if e.Narrow(s) == ir.BF16 { // the upper half of an f32
			e.values[i] = e.Make("r", "shl.b32", "%s, 16", e.Make("r", "cvt.u32.u16", "%s", half))
		} else {
			e.values[i] = e.Make("r", "cvt.f32.f16", "%s", half)
		}
	}
}

// results stores the results. A NaN is stored as the canonical one, except where bits are copied.
func (e *emitter) results() {
	for i, r := range e.Results {
		t := e.OutTypes[i]
		v, store := e.values[r], "st.global.b32"
		if t != ir.F32 { // the value has the type: it was loaded as such, or rounded to it
			v, store = e.halves[r], "st.global.b16"
		}
		switch {
		case e.Copies[i]:
		case t != ir.F32:
			infinity, want := 0x7C00, "0x7E00"
			if t == ir.BF16 {
				infinity, want = 0x7F80, "0x7FC0"
			}
			nan := e.Make("p", "setp.gt.u16", "%s, %d", e.Make("rs", "and.b16", "%s, 32767", v), infinity)
			v = e.Make("rs", "selp.b16", "%s, %s, %s", want, v, nan)
		default:
			nan := e.Make("p", "setp.gt.u32", "%s, 2139095040", e.Make("r", "and.b32", "%s, 2147483647", v))
			v = e.Make("r", "selp.f32", "0f7FC00000, %s, %s", v, nan)
		}
		e.Line("%s \t[%s], %s", store, e.address(len(e.Operands)+i, elementwise.Full, t), v)
	}
	e.Mark("$L__BB0_0")
	e.Line("ret")
}

// text is the whole entry.
func (e *emitter) text() []byte {
	var b strings.Builder
	target := "sm_80"
	if e.launch.Programmatic {
		target = "sm_90"
	}
	fmt.Fprintf(&b, "// mlxc early arguments:\n//\n// %s\n//\n\n.version 8.0\n.target %s\n.address_size 64\n\n.visible .entry %s(\n", e.Decl.Name, target, nvptx.Entry)
	n := e.parameters()
	if e.launch.Moving {
		n += 2
	}
	for i := range n {
		kind, comma := ".u32", ","
		switch {
		case e.launch.Values && i >= len(e.Operands)+len(e.Out) && i < e.arguments(), i >= e.parameters():
			kind = ".u64"
		case i < e.arguments():
			kind = ".u64 .ptr .global .align 1"
		case i == e.parameters():
			kind = ".u64"
		}
		if i == n-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "\t.param %s %s_param_%d%s\n", kind, nvptx.Entry, i, comma)
	}
	b.WriteString(")\n.maxntid 1024\n{\n" + e.Body() + "}\n")
	return []byte(b.String())
}
