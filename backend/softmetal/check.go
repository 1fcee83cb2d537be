//go:build unix

package softmetal

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// check is the configuration of a device's checker, and what it has observed.
type check struct {
	seed     uint64
	only     []string
	observed []Observed // since the last call of Device.Observed
}

// covers reports whether dispatches of a kernel function are checked. A nil check covers none.
func (c *check) covers(function string) bool {
	if c == nil {
		return false
	}
	for _, p := range c.only {
		if ok, err := path.Match(p, function); ok && err == nil {
			return true
		}
	}
	return len(c.only) == 0
}

// Bits of the state of a byte, as in host/check.h.
const (
	stateDefined  = 1
	stateMayRead  = 2
	stateMayWrite = 4
	stateRead     = 8
	stateWritten  = 16
)

// Observed returns what each checked dispatch since the last call has touched and done wrong, in the order of
// execution.
func (d *Device) Observed() []Observed {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.check == nil {
		return nil
	}
	out := d.check.observed
	d.check.observed = nil
	return out
}

// stateBytes returns the states of n bytes at a place, one byte for each.
func stateBytes(p backend.Place, n int64) []byte {
	b := p.Buffer.(*buffer)
	return b.states.bytes()[p.Offset : p.Offset+n]
}

// define marks n bytes at a place as written.
func define(p backend.Place, n int64) {
	eachState(stateBytes(p, n), func(w uint64) uint64 { return w | stateDefined*everyByte })
}

// everyByte times a byte is a word of such bytes.
const everyByte = 0x0101_0101_0101_0101

// eachState replaces states, eight at a time: memories have millions.
func eachState(s []byte, f func(uint64) uint64) {
	for ; len(s) >= 8; s = s[8:] {
		binary.LittleEndian.PutUint64(s, f(binary.LittleEndian.Uint64(s)))
	}
	for i := range s {
		s[i] = byte(f(uint64(s[i])))
	}
}

// forget marks as undefined the memories that have no contents when a replay begins: scratch and outputs.
func forget(g *ir.Graph, places []backend.Place) {
	for i := range g.Memories {
		m := &g.Memories[i]
		if p := places[i]; p.Buffer != nil && m.Alias == ir.NoMem && (m.Kind == ir.Scratch || m.Kind == ir.Output) {
			clear(stateBytes(p, m.Size))
		}
	}
}

// checked runs steps one by one, dispatches of the kernels that the checker covers under the checker.
func (x *queueExecutor) checked(ctx context.Context, g *ir.Graph, list []step, with *bindings, b *batch) error {
	for i := range list {
		s := &list[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.reset()
		if err := b.encode(s, with); err != nil {
			return fmt.Errorf("softmetal: %w", err)
		}
		d, ok := s.node.(*ir.Dispatch)
		if b.count == 0 { // an empty grid, or no bytes
			if ok && x.Device.check.covers(g.Kernels[d.Kernel].Function) {
				x.checkEmpty(g, s.kernel, d, with)
			}
			continue
		}
		if !ok {
			if _, err := x.process.run(ctx, b, false); err != nil {
				return err
			}
			switch n := s.node.(type) {
			case *ir.Copy:
				dst, size := with.view(&n.Dst)
				src, _ := with.view(&n.Src)
				copyStates(dst, src, size)
			case *ir.Carry:
				dst, size := with.view(&n.Dst)
				src, _ := with.view(&n.Src)
				copyStates(dst, src, size)
			case *ir.Fill:
				dst, size := with.view(&n.Dst)
				define(dst, size)
			}
			continue
		}
		if !x.Device.check.covers(g.Kernels[d.Kernel].Function) {
			if _, err := x.process.run(ctx, b, false); err != nil {
				return err
			}
			// Its accesses were not observed: whatever it may write counts as written.
			for k := range d.Bindings {
				if v := &d.Bindings[k]; v.Kind == ir.BindView {
					if a := s.kernel.argument(int(v.Slot)); a != nil && a.Access != air.Read {
						p, size := with.view(&v.View)
						define(p, size)
					}
				}
			}
			continue
		}
		o, err := x.checkDispatch(ctx, g, s.kernel, d, with, b)
		if err != nil {
			return err
		}
		x.mu.Lock()
		x.Device.check.observed = append(x.Device.check.observed, *o)
		x.mu.Unlock()
	}
	return nil
}

// checkEmpty checks a dispatch whose grid is empty, so that it writes nothing.
func (x *queueExecutor) checkEmpty(g *ir.Graph, k *kernel, d *ir.Dispatch, with *bindings) {
	effects, err := effectsOf(g, d)
	if err != nil {
		return // its declaration does not describe it, and it touches nothing
	}
	o := &Observed{Command: d.ID, Effects: ir.Effects{Complete: true}}
	if o.unwritten(k, d, effects, with, k.views(d, with), false); len(o.Findings) == 0 {
		return
	}
	x.mu.Lock()
	x.Device.check.observed = append(x.Device.check.observed, *o)
	x.mu.Unlock()
}

// copyStates copies whether bytes are defined, as a copy command copies the bytes.
func copyStates(dst, src backend.Place, n int64) {
	to, from := stateBytes(dst, n), slices.Clone(stateBytes(src, n))
	for i := range to {
		to[i] = to[i]&^stateDefined | from[i]&stateDefined
	}
}

// boundView is a buffer argument of a dispatch, with its offset and size evaluated.
type boundView struct {
	binding *ir.Binding
	arg     *air.Arg
	place   backend.Place
	size    int64
}

// views returns the buffer arguments of a dispatch.
func (k *kernel) views(d *ir.Dispatch, with *bindings) (out []boundView) {
	for i := range d.Bindings {
		a := &d.Bindings[i]
		if a.Kind != ir.BindView {
			continue
		}
		p, size := with.view(&a.View)
		out = append(out, boundView{a, k.argument(int(a.Slot)), p, size})
	}
	return out
}

// effectsOf returns the effects that a dispatch lists, or else those that its kernel's declaration gives; nil without
// either.
func effectsOf(g *ir.Graph, d *ir.Dispatch) (*ir.Effects, error) {
	if d.Effects.Known() || !msl.Declared(&g.Kernels[d.Kernel]) {
		return d.Effects, nil
	}
	return msl.Describe(g, d)
}

// unwritten adds a finding for each region that must be written according to the effects, and was not. ran is false
// for an empty grid, which writes nothing.
func (o *Observed) unwritten(k *kernel, d *ir.Dispatch, effects *ir.Effects, with *bindings, views []boundView, ran bool) {
	if !effects.Known() {
		return
	}
	for _, w := range effects.Writes {
		p := with.places[w.Mem]
		if !w.Must || p.Buffer == nil {
			continue
		}
		states := p.Buffer.(*buffer).states.bytes()
		first, missing := int64(-1), int64(0)
		w.Runs(with.params, func(lo, hi int64) bool {
			for i := p.Offset + lo; i < p.Offset+hi; i++ {
				if !ran || states[i]&stateWritten == 0 {
					if missing++; first < 0 {
						first = i
					}
				}
			}
			return true
		})
		if first < 0 {
			continue
		}
		f := Finding{Kind: Unwritten, Command: d.ID, Kernel: k.Name, Argument: unbound, Slot: -1, Offset: first - p.Offset, Bytes: -1, Missing: missing, Times: 1}
		for _, v := range views {
			if at := first - v.place.Offset; v.place.Buffer == p.Buffer && at >= 0 && at < v.size && (f.Slot < 0 || v.arg != nil && v.arg.Access != air.Read) {
				f.Argument, f.Slot, f.Offset, f.Bytes = fmt.Sprint("argument ", v.binding.Slot), int(v.binding.Slot), at, v.size
				if v.arg != nil {
					f.Argument = v.arg.Name
				}
			}
		}
		o.Findings = append(o.Findings, f)
	}
}

func (x *queueExecutor) checkDispatch(ctx context.Context, g *ir.Graph, k *kernel, d *ir.Dispatch, with *bindings, b *batch) (*Observed, error) {
	o := &Observed{Command: d.ID, Effects: ir.Effects{Complete: true}}
	limit := func(format string, args ...any) {
		o.Findings = append(o.Findings, Finding{Kind: Limit, Command: d.ID, Kernel: k.Name, Slot: -1, Text: fmt.Sprintf(format, args...), Times: 1})
	}
	if !k.limits(d, limit) {
		return o, nil // it cannot run
	}
	effects, err := effectsOf(g, d)
	if err != nil {
		limit("the dispatch is not what a declaration of its kernel describes: %v", err)
	}
	views := k.views(d, with)
	for _, v := range views {
		eachState(stateBytes(v.place, v.size), func(w uint64) uint64 { return w & (stateDefined * everyByte) })
	}
	if effects.Known() {
		mark := func(r ir.Region, bit uint64) {
			p := with.places[r.Mem]
			if p.Buffer == nil {
				return
			}
			all := p.Buffer.(*buffer).states.bytes()
			r.Runs(with.params, func(lo, hi int64) bool {
				eachState(all[p.Offset+lo:p.Offset+hi], func(w uint64) uint64 { return w&^(stateWritten*everyByte) | bit*everyByte })
				return true
			})
		}
		for _, r := range effects.Reads {
			mark(r, stateMayRead)
		}
		for _, w := range effects.Writes {
			mark(w.Region, stateMayWrite)
			if !w.Must { // its old bytes may matter
				mark(w.Region, stateMayRead)
			}
		}
		for _, v := range views { // arguments, which no effects list
			if v.binding.Kind == ir.BindView && g.Memories[v.binding.View.Mem].Kind == ir.Argument {
				mark(v.binding.View.Contiguous(), stateMayRead)
			}
		}
	}
	finite := allFinite(views)
	written := map[*buffer]bool{}
	for _, v := range views {
		if v.arg != nil && v.arg.Access != air.Read {
			written[v.place.Buffer.(*buffer)] = true
		}
	}
	var request []byte
	request = binary.LittleEndian.AppendUint64(request, x.Device.check.seed)
	slotsOf := [slots]boundView{}
	for _, v := range views {
		slotsOf[v.binding.Slot] = v
	}
	for slot := range slots {
		v := slotsOf[slot]
		if v.binding == nil {
			request = append(request, make([]byte, 20)...)
			continue
		}
		flags := uint32(8)
		if v.arg != nil && (v.arg.Access == air.Read || v.arg.Space == air.Constant) {
			flags |= 1
		}
		if effects.Known() {
			flags |= 2
		}
		if written[v.place.Buffer.(*buffer)] {
			flags |= 4
		}
		request = binary.LittleEndian.AppendUint64(request, v.place.Buffer.(*buffer).states.id)
		request = binary.LittleEndian.AppendUint64(request, uint64(v.place.Offset))
		request = binary.LittleEndian.AppendUint32(request, flags)
	}
	// The dispatch follows the 8 bytes of the batch's head and the 4 bytes of the command's kind.
	request = append(request, b.data[12:]...)
	answer, err := x.process.check(ctx, request)
	if err != nil {
		return nil, err
	}
	o.Dropped = binary.LittleEndian.Uint64(answer[8:])
	for at := 16; at < len(answer); at += findingBytes {
		if kind := binary.LittleEndian.Uint32(answer[at:]); kind == 0 || kind > uint32(lastFound) {
			return nil, fmt.Errorf("softmetal: %w: a finding is of kind %d", errBelief, kind)
		}
		o.Findings = append(o.Findings, k.finding(answer[at:at+findingBytes], d, with, views))
	}
	for _, v := range views {
		o.observe(with, v)
	}
	o.unwritten(k, d, effects, with, views, true)
	if finite {
		for _, v := range views {
			if at := nonFinite(v, stateWritten); at >= 0 {
				o.Findings = append(o.Findings, Finding{Kind: NonFinite, Command: d.ID, Kernel: k.Name, Argument: v.arg.Name, Slot: int(v.binding.Slot), Offset: at, Bytes: v.size, Times: 1})
			}
		}
	}
	slices.SortStableFunc(o.Findings, func(a, b Finding) int { return cmp.Compare(a.Kind, b.Kind) })
	return o, nil
}

// observe adds the bytes of a view that a dispatch has read or written to the observed effects.
func (o *Observed) observe(with *bindings, v boundView) {
	s := stateBytes(v.place, v.size)
	base := v.place.Offset - with.places[v.binding.View.Mem].Offset
	runs := func(bit byte, add func(r ir.Region)) {
		for i := 0; i < len(s); {
			if i+8 <= len(s) && binary.LittleEndian.Uint64(s[i:])&(uint64(bit)*everyByte) == 0 {
				i += 8
				continue
			}
			if s[i]&bit == 0 {
				i++
				continue
			}
			lo := i
			for i < len(s) && s[i]&bit != 0 {
				i++
			}
			add(ir.Region{Mem: v.binding.View.Mem, Off: ir.Const(base + int64(lo)), Run: ir.Const(int64(i - lo))})
		}
	}
	runs(stateRead, func(r ir.Region) { o.Effects.Reads = append(o.Effects.Reads, r) })
	runs(stateWritten, func(r ir.Region) { o.Effects.Writes = append(o.Effects.Writes, ir.Write{Region: r, Must: true}) })
}

// limits reports where a dispatch exceeds the limits of Metal. It returns whether the executor can run it all the
// same.
func (k *kernel) limits(d *ir.Dispatch, report func(format string, args ...any)) bool {
	threads := uint64(1)
	for _, n := range d.Threadgroup {
		threads *= uint64(n)
	}
	if threads > 1024 {
		report("threadgroups of %d threads: no Apple GPU has more than 1024", threads)
	}
	if most := k.MaxThreadgroup; most > 0 && threads > uint64(most) {
		report("threadgroups of %d threads: the kernel promises at most %d", threads, most)
	}
	memory := k.threadgroupBytes(d)
	for _, m := range d.ThreadgroupMemory {
		if m.Bytes%16 != 0 {
			report("threadgroup argument %d has %d bytes, which is no multiple of 16", m.Slot, m.Bytes)
		}
	}
	if memory > maxThreadgroupBytes {
		report("%d bytes of threadgroup memory: Apple's GPUs have %d", memory, maxThreadgroupBytes)
	}
	for i := range d.Bindings {
		if b := &d.Bindings[i]; b.Kind == ir.BindBytes && len(b.Bytes) > 4096 {
			report("%d inline bytes for argument %d: setBytes takes at most 4096", len(b.Bytes), b.Slot)
		}
	}
	for i := range k.Args {
		a := &k.Args[i]
		if a.Attribute != "" || a.Space != air.Threadgroup || a.Unused {
			continue
		}
		if !slices.ContainsFunc(d.ThreadgroupMemory, func(m ir.ThreadgroupMemory) bool { return int(m.Slot) == a.Index }) {
			report("threadgroup argument %d (%s) is given no length", a.Index, a.Name)
		}
	}
	return threads <= 1024 && memory <= maxThreadgroupBytes
}

// threadgroupBytes returns how many bytes of threadgroup memory a dispatch takes.
func (k *kernel) threadgroupBytes(d *ir.Dispatch) int64 {
	memory := int64(0)
	for _, v := range k.Threadgroup {
		memory += (v.Size + 15) &^ 15
	}
	for _, m := range d.ThreadgroupMemory {
		memory += int64(m.Bytes)
	}
	return memory
}

// findingBytes is the size of struct finding (host/check.h), and maxFindings how many of them the executor keeps.
const (
	findingBytes = 64
	maxFindings  = 256
)

// finding decodes a struct finding of the executor.
func (k *kernel) finding(raw []byte, d *ir.Dispatch, with *bindings, views []boundView) Finding {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(raw[at:]) }
	f := Finding{Kind: FindingKind(u32(0)), Command: d.ID, Kernel: k.Name, Slot: -1, Bytes: -1, Times: binary.LittleEndian.Uint64(raw[40:])}
	f.Offset = int64(binary.LittleEndian.Uint64(raw[16:]))
	var group, grid [3]uint32
	for i, e := range d.Grid {
		group[i] = d.Threadgroup[i]
		if grid[i] = uint32(e.Eval(with.params)); d.GridKind == ir.Threads {
			grid[i] = (grid[i] + group[i] - 1) / max(1, group[i])
		}
	}
	thread := func(g, t uint32) Thread {
		out := Thread{Threadgroup: [3]uint32{g % max(1, grid[0]), g / max(1, grid[0]) % max(1, grid[1]), g / max(1, grid[0]) / max(1, grid[1])}}
		size := [3]uint32{}
		for i := range size { // threadgroups at the edge of the grid are smaller
			size[i] = group[i]
			if d.GridKind == ir.Threads {
				size[i] = min(group[i], uint32(d.Grid[i].Eval(with.params))-out.Threadgroup[i]*group[i])
			}
			size[i] = max(1, size[i])
		}
		out.Thread = [3]uint32{t % size[0], t / size[0] % size[1], t / size[0] / size[1]}
		return out
	}
	f.Thread = thread(u32(24), u32(28))
	f.Line, f.OtherLine, f.Access = int(u32(48)), int(u32(52)), int(u32(56))
	switch f.Kind {
	case DivergentBarrier, DifferentBarriers, PartialBarrier, PartialMatrix, PartialAccess:
		t := thread(u32(32), u32(36))
		f.Other = &t
		return f
	}
	switch f.Kind {
	case UndefinedValue, InactiveLane:
		f.Use, f.Access, f.Lane = ValueUse(f.Access), 0, int(int32(u32(60)))
		if int32(u32(12)) < 0 {
			return f
		}
	case Misaligned:
		f.Align = int(u32(60))
	}
	race := f.Kind == ReadAfterWrite || f.Kind == WriteAfterWrite || f.Kind == WriteAfterRead
	if u32(8) != 0xffff || race {
		t := thread(u32(32), u32(36))
		f.Other = &t
	}
	switch n := int32(u32(12)); {
	case n == -2:
		f.Argument = unowned
	case n < 0:
		f.Argument = unbound
	case n < slots:
		f.Argument, f.Slot = fmt.Sprint("argument ", n), int(n)
		if a := k.argument(int(n)); a != nil {
			f.Argument = a.Name
			f.Bytes = a.Size
		}
		for _, v := range views {
			if int32(v.binding.Slot) == n {
				f.Bytes = v.size
			}
		}
	case n < 2000:
		f.Argument, f.Bytes = fmt.Sprint("threadgroup argument ", n-1000), 0
		for i := range k.Args {
			if a := &k.Args[i]; a.Space == air.Threadgroup && a.Attribute == "" && a.Index == int(n-1000) && a.Name != "" {
				f.Argument += " (" + a.Name + ")"
			}
		}
		for _, m := range d.ThreadgroupMemory {
			if int32(m.Slot) == n-1000 {
				f.Bytes = int64(m.Bytes)
			}
		}
	case n < 3000:
		f.Argument = "threadgroup memory"
		if i := int(n - 2000); i < len(k.Threadgroup) {
			f.Argument, f.Bytes = "threadgroup "+sourceName(k.Threadgroup[i].Name), k.Threadgroup[i].Size
		}
	case n < 4000:
		f.Argument = fmt.Sprint("private array ", n-3000)
	default:
		f.Argument = "a constant array"
	}
	return f
}

var localName = regexp.MustCompile(`E(\d+)`)

// sourceName returns the name that a variable inside a function has in the source. Its mangled name is _ZZ, the
// function, E, the length of the variable's name, that name, and a suffix _N if several variables have it (Itanium
// C++ ABI, 5.1.6). Other symbols are returned unchanged.
func sourceName(symbol string) string {
	if !strings.HasPrefix(symbol, "_ZZ") {
		return symbol
	}
	for _, m := range localName.FindAllStringSubmatchIndex(symbol, -1) {
		n, err := strconv.Atoi(symbol[m[2]:m[3]])
		if rest := symbol[m[3]:]; err == nil && 0 < n && (n == len(rest) || n < len(rest) && rest[n] == '_') {
			// mslc prefixes the names of variables with msl_.
			return strings.TrimPrefix(rest[:n], "msl_")
		}
	}
	return symbol
}

// allFinite reports whether all floats in the views whose bytes are defined are finite.
func allFinite(views []boundView) bool {
	for _, v := range views {
		if nonFinite(v, stateDefined) >= 0 {
			return false
		}
	}
	return true
}

// nonFinite returns the offset of the first float in a view that is infinite or NaN, among those whose first byte has
// the state bit; −1 if there is none, or the elements are not floats.
func nonFinite(v boundView, bit byte) int64 {
	if v.arg == nil {
		return -1
	}
	width := map[string]int{"float": 4, "half": 2, "bfloat": 2}[v.arg.Type]
	if width == 0 {
		return -1
	}
	data := v.place.Buffer.(*buffer).bytes()[v.place.Offset : v.place.Offset+v.size]
	s := stateBytes(v.place, v.size)
	for i := 0; i+width <= len(data); i += width {
		if s[i]&bit == 0 {
			continue
		}
		odd := false
		switch v.arg.Type {
		case "float":
			odd = binary.LittleEndian.Uint32(data[i:])&0x7f800000 == 0x7f800000
		case "half":
			odd = binary.LittleEndian.Uint16(data[i:])&0x7c00 == 0x7c00
		case "bfloat":
			odd = binary.LittleEndian.Uint16(data[i:])&0x7f80 == 0x7f80
		}
		if odd {
			return int64(i)
		}
	}
	return -1
}
