package passes

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

type constantsOptions struct{ align int64 }

var constantsPass = New(Pass{Name: "constants", Summary: "move inline bytes and params into argument memory, so that a replay changes bytes and no command", KeepsList: true, KeepsCommands: true}, constants,
	Parsed("align", "32", "bytes between places, a power of two; 256 under some validation layers", func(s string) (int64, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 16 || n > 4096 || n&(n-1) != 0 {
			return 0, errors.New("want a power of two from 16 to 4096")
		}
		return n, nil
	}, func(o *constantsOptions) *int64 { return &o.align }))

// constants moves inline bytes and scalars of params into one argument memory, which every replay
// fills before it begins. Then a replay changes bytes and not commands, and commands can stand in
// an indirect command buffer, which has no inline bytes. Equal values share a place. Unless the
// option says otherwise, places are aligned to 32 bytes, as Metal demands of buffers in the
// constant address space.
//
// Commands with an offset or a grid that depends on params remain variable, and each gets a remark.
// An executor must rewrite such a command at each replay, or run a variant of its kernel that reads
// the number from argument memory. (The length of a view is not part of an encoded command.)
func constants(ctx context.Context, s *State, o constantsOptions) error {
	g := s.Graph
	a := argumentTable{mem: ir.MemID(len(g.Memories)), align: o.align, at: map[string]ir.View{}}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			if c, ok := n.(ir.Command); ok {
				if varies := variableCopy(g, c); varies != "" {
					s.Not(c, "a variable command: %s (to be rewritten for each replay)", varies)
				}
			}
			continue
		}
		k := &g.Kernels[d.Kernel]
		moved := false
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Kind != ir.BindView {
				arg, _ := k.Arg(b.Slot)
				*b = ir.BufferArg(b.Slot, a.place(b, arg.Type))
				moved = true
			}
		}
		if moved {
			s.Changed(1)
		}
		if text := variable(g, d); text != "" {
			s.Not(d, "%s", text)
		}
	}
	if len(a.values) > 0 {
		g.Memories = append(g.Memories, a.memory(g))
	}
	return nil
}

// argumentTable collects the values of argument memory and their places.
type argumentTable struct {
	mem    ir.MemID
	align  int64
	end    int64
	at     map[string]ir.View // by value
	key    []byte
	values []ir.Value
}

// place returns the place of an inline binding's value, and adds the value if it is new. t is the
// type of the argument; it only helps people who read the memory.
func (a *argumentTable) place(b *ir.Binding, t ir.DType) ir.View {
	v := ir.Value{Type: t, Bytes: b.Bytes}
	if b.Kind == ir.BindScalar {
		v.Type, v.Bytes, v.Expr = b.Type, nil, b.Expr
	}
	a.key = a.key[:0]
	if v.Bytes != nil {
		a.key = append(append(a.key, 'b'), v.Bytes...)
	} else {
		a.key = append(a.key, 's', byte(v.Type))
		a.key = binary.AppendVarint(a.key, v.Expr.Const)
		for _, t := range v.Expr.Terms() {
			a.key = binary.AppendVarint(binary.AppendVarint(a.key, int64(t.Param)), t.Coeff)
		}
	}
	if view, ok := a.at[string(a.key)]; ok {
		return view
	}
	v.Off = (a.end + a.align - 1) / a.align * a.align
	a.end = v.Off + v.Size()
	a.values = append(a.values, v)
	view := ir.ViewOf(a.mem, v.Off, v.Size())
	a.at[string(a.key)] = view
	return view
}

// memory returns the argument memory. Its size is a multiple of the alignment, because Metal
// demands that a buffer bound to the constant address space is mapped up to the size of the
// argument.
func (a *argumentTable) memory(g *ir.Graph) ir.Memory {
	return ir.Memory{
		Name: unusedName(g, "arguments"), Kind: ir.Argument, Size: (a.end + a.align - 1) / a.align * a.align, Align: a.align, Alias: ir.NoMem,
		Init: ir.Init{Kind: ir.InitValues, Values: a.values},
	}
}

// variable returns the remark that says which parts of d depend on params, or "".
func variable(g *ir.Graph, d *ir.Dispatch) string {
	var offsets, grid, how []string
	for i := range d.Bindings {
		if b := &d.Bindings[i]; b.Kind == ir.BindView && !b.View.Off.IsConst() {
			arg, _ := g.Kernels[d.Kernel].Arg(b.Slot)
			offsets = append(offsets, fmt.Sprintf("%s begins at %s", ir.QuoteName(arg.Name), g.FormatAffine(b.View.Off)))
		}
	}
	for i, e := range d.Grid {
		if !e.IsConst() {
			s := g.FormatAffine(e.Num)
			if e.Div != 1 {
				s = fmt.Sprintf("ceil((%s) / %d)", s, e.Div)
			}
			grid = append(grid, fmt.Sprintf("%s[%d] is %s", d.GridKind, i, s))
		}
	}
	if offsets != nil {
		how = append(how, strings.Join(offsets, ", ")+" (or a kernel variant that adds the offset from argument memory)")
	}
	if grid != nil {
		how = append(how, strings.Join(grid, ", ")+" (or indirect dispatch arguments, or the greatest grid and a bound in argument memory)")
	}
	if how == nil {
		return ""
	}
	return "a variable command, to be rewritten for each replay: " + strings.Join(how, "; ")
}

// variableCopy says which parts of a copy or fill depend on params.
func variableCopy(g *ir.Graph, c ir.Command) string {
	var views []ir.View
	c.EachView(func(v *ir.View) { views = append(views, *v) })
	var out []string
	for _, v := range views {
		if !v.Off.IsConst() || !v.Len.IsConst() {
			out = append(out, g.FormatView(v))
		}
	}
	return strings.Join(out, ", ")
}
