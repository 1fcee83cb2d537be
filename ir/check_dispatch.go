package ir

import (
	"fmt"
	"math"
	"math/bits"
)

func (nc *nodeChecker) dispatch(d *Dispatch) {
	g := nc.g
	if d.Kernel < 0 || int(d.Kernel) >= len(g.Kernels) {
		nc.add(fmt.Sprintf("runs kernel %d of %d", d.Kernel, len(g.Kernels)), "")
		return
	}
	takes, before := &nc.slots[d.Kernel], len(nc.c.defects)
	last := -1
	bound := uint32(0)
	for j := range d.Bindings {
		b := &d.Bindings[j]
		at := int(b.Slot)
		bound |= 1 << (at & 31)
		if at <= last || at >= len(takes) || !takes[at].taken || !nc.plain(&takes[at], b) {
			nc.binding(&g.Kernels[d.Kernel], d, j)
		}
		last = at
	}
	runs := nc.grid(d)
	total := int64(0)
	for j, t := range d.ThreadgroupMemory {
		if j > 0 && t.Slot <= d.ThreadgroupMemory[j-1].Slot || t.Slot >= maxBufferSlots {
			nc.add(fmt.Sprintf("threadgroup memory %d is out of order or past slot %d", t.Slot, maxBufferSlots-1), "")
		}
		if t.Bytes == 0 || t.Bytes%16 != 0 {
			nc.add(fmt.Sprintf("threadgroup memory %d has %d bytes", t.Slot, t.Bytes), "Metal wants a positive multiple of 16")
		}
		total += int64(t.Bytes)
	}
	if total > maxThreadgroupMem {
		nc.add(fmt.Sprintf("threadgroup memory of %d bytes is more than %d", total, maxThreadgroupMem), "")
	}
	if d.Op != "" && d.Op != nc.ops[d.Kernel] {
		if validName(d.Op) {
			nc.ops[d.Kernel] = d.Op
		} else {
			nc.add("op kind is too long or not printable", "")
		}
	}
	nc.label(d.Label)
	nc.effects(d)
	if len(nc.c.defects) > before {
		return // this defect may be the cause of those that would follow
	}
	if d.Indirect != nil {
		nc.indirect(d)
	}
	nc.promises(d, runs)
	if n := &nc.needs[d.Kernel]; nc.c.tables && (n.buffers&^bound != 0 || len(d.ThreadgroupMemory) > 0) {
		nc.given(d, bound)
	}
}

// binding checks binding j of d.
func (nc *nodeChecker) binding(k *Kernel, d *Dispatch, j int) {
	b := &d.Bindings[j]
	at := k.index(b.Slot)
	if j > 0 && b.Slot <= d.Bindings[j-1].Slot {
		nc.add(fmt.Sprintf("binding %d stands after binding %d", b.Slot, d.Bindings[j-1].Slot), "bindings stand in ascending order of their slots")
	}
	if at < 0 {
		nc.add(fmt.Sprintf("binds slot %d, which kernel @%s does not have", b.Slot, QuoteName(k.Name)), "")
		return
	}
	arg := &k.Args[at]
	switch b.Kind {
	case BindView:
		if b.Bytes != nil {
			nc.add(fmt.Sprintf("binding %s is a view and has inline bytes", arg.Name), "")
		}
		nc.view("binding ", arg.Name, b.View, writes(arg))
	case BindBytes:
		n := int64(len(b.Bytes))
		if !inlineable(arg) {
			nc.add(fmt.Sprintf("binding %s has inline bytes, the argument is %s %s memory", arg.Name, arg.Kind, arg.Access), "only constants and device memory that is read can be inline")
		}
		if n == 0 || n > maxInlineBytes {
			nc.add(fmt.Sprintf("binding %s has %d inline bytes", arg.Name, n), "Metal's setBytes takes 1 to 4096")
		}
		if want := int64(arg.Count) * arg.Type.Size(); want > 0 && n != want {
			nc.add(fmt.Sprintf("binding %s has %d inline bytes, the argument has %d", arg.Name, n, want), "")
		}
	case BindScalar:
		nc.scalar(arg, b)
	default:
		nc.add(fmt.Sprintf("binding %s is of no known sort", arg.Name), "")
	}
}

// inlineable reports whether inline bytes may be bound to a. Metal's setBytes fills a buffer slot
// in any address space with memory that the kernel must not write.
func inlineable(a *Arg) bool {
	return a.Kind == ConstantArg || a.Kind == DeviceArg && a.Access == ReadArg
}

func (nc *nodeChecker) scalar(arg *Arg, b *Binding) {
	g := nc.g
	if !inlineable(arg) || arg.Kind == ConstantArg && arg.Count != 1 || b.Type != arg.Type {
		nc.add(fmt.Sprintf("binding %s is a param expression of type %s, the argument is %s %s[%d]", arg.Name, b.Type, arg.Kind, arg.Type, arg.Count), "")
		return
	}
	place, accepted := nc.memo.extent(Extent{b.Expr, 1}, b.Type)
	if accepted {
		return
	}
	if what, hint := scalarDefect(nc.c, g, b.Type, b.Expr); what != "" {
		nc.add(fmt.Sprintf("binding %s%s", arg.Name, what), hint)
		return
	}
	*place = acceptedExtent{Extent{b.Expr, 1}, b.Type, true}
}

// scalarDefect says what is wrong with e as a scalar of type t. It returns "" if nothing is.
func scalarDefect(c *checker, g *Graph, t DType, e Affine) (what, hint string) {
	if t == F32 {
		ts := e.Terms()
		if e.Const != 0 || len(ts) != 1 || ts[0].Coeff != 1 || ts[0].Param < 0 || int(ts[0].Param) >= len(g.Params) || g.Params[ts[0].Param].Type != F32 {
			return ": an f32 expression is one f32 param", ""
		}
		return "", ""
	}
	if !c.intParams(g, e) {
		return " names a param that does not exist or is f32", ""
	}
	lo, hi, ok := g.Range(e)
	min, max := int64(0), int64(math.MaxInt64)
	switch t {
	case U32:
		max = math.MaxUint32
	case I32:
		min, max = math.MinInt32, math.MaxInt32
	case I64:
		min = math.MinInt64
	case U64:
	default:
		return fmt.Sprintf(" is a param expression of type %s", t), "expressions are i32, u32, i64, u64 or f32"
	}
	if !ok || lo < min || hi > max {
		return fmt.Sprintf(" = %s can be %d…%d, which is no %s", g.FormatAffine(e), lo, hi, t), "bound the params or add a constraint"
	}
	return "", ""
}

// grid checks the grid and the threadgroups of d. It reports whether the grid is constant and not
// empty.
func (nc *nodeChecker) grid(d *Dispatch) (runs bool) {
	g := nc.g
	runs = true
	if d.GridKind > Threads {
		nc.add("grid is of no known sort", "")
	}
	for i, e := range d.Grid {
		if e.Div == 1 && e.IsConst() && e.Num.Const > 0 && e.Num.Const <= math.MaxUint32 {
			continue
		}
		runs = runs && e.IsConst() && e.Num.Const > 0
		place, accepted := nc.memo.extent(e, Invalid)
		if accepted {
			continue
		}
		if e.Div < 1 {
			nc.add(fmt.Sprintf("grid dimension %d is divided by %d", i, e.Div), "")
			continue
		}
		if !nc.c.intParams(g, e.Num) {
			nc.add(fmt.Sprintf("grid dimension %d names a param that does not exist or is f32", i), "")
			continue
		}
		lo, hi, ok := nc.bounds.Range(e.Num)
		if !ok || lo < 0 || ceilDiv(hi, e.Div) > math.MaxUint32 {
			nc.add(fmt.Sprintf("grid dimension %d can be %d…%d", i, ceilDiv(lo, e.Div), ceilDiv(hi, e.Div)), "a grid is between 0 and 2^32-1; bound the params or add a constraint")
			continue
		}
		*place = acceptedExtent{e, Invalid, true}
	}
	threads := int64(1)
	for _, t := range d.Threadgroup {
		if t == 0 || t > maxThreads {
			threads = maxThreads + 1
			break
		}
		threads *= int64(t)
	}
	if threads > maxThreads {
		nc.add(fmt.Sprintf("threadgroup %v is empty or has more than %d threads", d.Threadgroup, maxThreads), "")
	}
	return runs
}

// needs says which arguments a dispatch of a kernel must bind. Each mask has one bit for each slot.
type needs struct {
	// buffers must be bound. The mask is empty for a kernel with function constants, because an
	// argument may exist only for some values of them.
	buffers uint32
	// groups are the threadgroup arguments.
	groups uint32
	// written are the buffers that the kernel may write.
	written uint32
}

func needsOf(k *Kernel, takes *slots) (n needs) {
	for i := range k.Args {
		a := &k.Args[i]
		switch {
		case a.Slot >= maxBufferSlots:
		case a.Kind == ThreadgroupArg:
			n.groups |= 1 << a.Slot
		case len(k.Constants) == 0:
			n.buffers |= 1 << a.Slot
		}
	}
	for slot := range takes {
		if takes[slot].written {
			n.written |= 1 << slot
		}
	}
	return n
}

// given checks that a dispatch binds every argument that its kernel needs, and sizes no threadgroup
// argument that the kernel lacks. bound is the mask of the slots that it binds.
func (nc *nodeChecker) given(d *Dispatch, bound uint32) {
	k, n := &nc.g.Kernels[d.Kernel], &nc.needs[d.Kernel]
	if missing := n.buffers &^ bound; missing != 0 {
		a, _ := k.Arg(uint8(bits.TrailingZeros32(missing)))
		nc.add(fmt.Sprintf("binds nothing to argument %d (%s)", a.Slot, a.Name), "only a kernel with function constants may have arguments that are absent")
	}
	for _, t := range d.ThreadgroupMemory {
		if t.Slot < maxBufferSlots && n.groups>>t.Slot&1 == 0 {
			nc.add(fmt.Sprintf("sizes threadgroup argument %d, which kernel @%s does not have", t.Slot, QuoteName(k.Name)), "list it in the kernel's table of arguments")
		}
	}
}
