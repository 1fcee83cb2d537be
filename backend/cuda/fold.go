//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/ptx"
)

// folded folds constants in the entry of a text: integers that known parameters determine become constants, and
// divisions by constants become multiplications and shifts. NVIDIA's compiler does neither across the table of
// additions, and divides by a constant as by anything else: a chain of conversions and a reciprocal, some 130 cycles,
// one for each dimension of a kernel's threadgroups.
//
// Bounds of block and thread indices decide whether a block lies behind the end of what a grid covers, and low bits
// of addresses how wide loads may be. Code behind branches that are never taken is removed, and what is left does
// not stand behind branches that the assembler must take for divergent.
//
// A register becomes a constant only if all reachable instructions that set it are without a guard and give the same
// constant. Results of instructions that are not in the tables here are unknown, and left as they are.
func folded(m *ptx.Module, known facts) {
	f := fold(m, known)
	if f == nil {
		return
	}
	entry := m.Entry
	m.Replace(func(i int) ([]ptx.Line, bool) {
		if i < entry {
			return nil, false
		}
		return f.written(&f.lines[i-entry])
	})
}

// fold analyses the entry of a text; nil if functions follow it.
func fold(m *ptx.Module, known facts) *folder {
	if m.Behind {
		return nil
	}
	f := &folder{registers: map[string]*register{}, labels: map[string]int{}, facts: known}
	for name, i := range m.Labels() {
		if i >= m.Entry {
			f.labels[name] = i - m.Entry
		}
	}
	for i := range m.Lines[m.Entry:] {
		f.lines = append(f.lines, f.read(&m.Lines[m.Entry+i]))
	}
	// What is known decides branches, and as unreachable code sets no registers, more may be known then.
	for again := true; again; again = f.reach() {
		for changed := true; changed; {
			changed = false
			for i := range f.lines {
				l := &f.lines[i]
				if l.sets == nil || l.sets.state == varies || l.never {
					continue
				}
				if r := f.result(l.in); r != l.result {
					changed, l.result = true, r
					l.sets.settle(f.lines)
				}
			}
		}
	}
	return f
}

// folder is an entry, line by line, with what is known of its registers.
type folder struct {
	lines     []folding
	registers map[string]*register
	labels    map[string]int // the lines that have them
	facts
}

// facts are what is known of all launches of an entry, beside values of parameters.
type facts struct {
	threads uint64    // of a block; 0: unknown
	blocks  [3]uint64 // of a grid; 0: unknown
	aligned uint64    // by bit: the parameters that are addresses aligned to wideBytes
}

// wideBytes is how many bytes the widest loads move.
const wideBytes = 16

// register is what is known of the values of a PTX register.
type register struct {
	state  registerState
	value  uint64 // if state is number
	most   uint64 // maximum, as an unsigned number
	bounds bool   // most is valid
	zeros  int    // how many of its lowest bits are known to be 0
	sites  []int  // indices of the lines that set it
}

type registerState uint8

const (
	open   registerState = iota // not known to be a constant
	number                      // a constant: the same in every thread, always
	varies
)

// folding is a line of an entry, with what is known of it.
type folding struct {
	*ptx.Line
	in     *ptx.Statement // nil: it is not a single instruction, and only its text is used
	sets   *register
	result result
	never  bool // it is unreachable
}

// op is the instruction of a line, or "".
func (l *folding) op() string {
	if l.in == nil {
		return ""
	}
	return l.in.Op
}

// result is what is known of the value that an instruction computes.
type result struct {
	number bool
	value  uint64
	bounds bool
	most   uint64
	zeros  int
}

func (f *folder) register(name string) *register {
	r := f.registers[name]
	if r == nil {
		r = &register{}
		f.registers[name] = r
	}
	return r
}

// settle combines the results of the reachable lines that set a register.
func (r *register) settle(lines []folding) {
	var all result
	first := true
	for _, s := range r.sites {
		x := lines[s].result
		if lines[s].never {
			continue
		}
		if first {
			all, first = x, false
			continue
		}
		all.number = all.number && x.number && x.value == all.value
		all.bounds = all.bounds && x.bounds
		all.most = max(all.most, x.most)
		all.zeros = min(all.zeros, x.zeros)
	}
	if r.state = open; all.number {
		r.state, r.value = number, all.value
	}
	r.bounds, r.most, r.zeros = all.bounds, all.most, all.zeros
}

// reach marks lines that have become unreachable, and reports whether one of them sets a register.
func (f *folder) reach() (news bool) {
	reached := f.until(func(*folding) bool { return false })
	if reached == nil {
		return false
	}
	for i := range f.lines {
		l := &f.lines[i]
		if reached[i] || l.never {
			continue
		}
		if l.never = true; l.sets != nil && l.sets.state != varies {
			l.sets.settle(f.lines)
			news = true
		}
	}
	return news
}

// until returns which lines are reachable without passing a line for which enough is true, and those lines
// themselves; nil if the target of a jump is unknown.
func (f *folder) until(enough func(*folding) bool) []bool {
	reached := make([]bool, len(f.lines))
	ways := []int{0}
	for len(ways) > 0 {
		i := ways[len(ways)-1]
		ways = ways[:len(ways)-1]
		for i < len(f.lines) && !reached[i] {
			reached[i] = true
			to, passed, ok := f.ways(i)
			if !ok {
				return nil
			}
			if enough(&f.lines[i]) {
				break
			}
			if to >= 0 {
				ways = append(ways, to)
			}
			if !passed {
				break
			}
			i++
		}
	}
	return reached
}

// ways returns the successors of a line: where it may jump, or −1, and whether control may pass on to the next line.
// ok is false if its target is unknown.
func (f *folder) ways(i int) (to int, passed, ok bool) {
	op, in := f.lines[i].op(), f.lines[i].in
	jumps := op == "bra" || op == "bra.uni"
	if strings.HasPrefix(op, "br") && !jumps && !strings.HasPrefix(op, "brev") {
		return -1, false, false // a jump by a table
	}
	taken, passed := jumps, !jumps && op != "ret" && op != "exit" || in.Guard != ""
	if jumps && in.Guard != "" {
		if truth, known := f.decided(in); known {
			taken, passed = truth, !truth
		}
	}
	if !taken {
		return -1, passed, true
	}
	if len(in.Args) != 1 {
		return -1, false, false
	}
	to, ok = f.labels[in.Args[0].Name]
	return to, passed, ok
}

// straight reports whether control flow has no cycle, and all jumps have known targets.
func (f *folder) straight() bool {
	const open, closed = 1, 2 // on the path that is followed; all its successors are closed
	state := make([]uint8, len(f.lines))
	type visit struct{ line, next int }
	visits := []visit{{0, 0}}
	for len(visits) > 0 {
		v := &visits[len(visits)-1]
		state[v.line] = open
		to, passed, ok := f.ways(v.line)
		if !ok {
			return false
		}
		v.next++
		switch at := v.line + 1; {
		case v.next > 2:
			state[v.line] = closed
			visits = visits[:len(visits)-1]
		case v.next == 1 && to < 0, v.next == 2 && (!passed || at == len(f.lines)):
		default:
			if v.next == 1 {
				at = to
			}
			if state[at] == open {
				return false
			}
			if state[at] != closed {
				visits = append(visits, visit{at, 0})
			}
		}
	}
	return true
}

// decided returns whether the guard of an instruction holds, if that is known.
func (f *folder) decided(in *ptx.Statement) (truth, known bool) {
	r := f.registers[in.Guard]
	if r == nil || r.state != number {
		return false, false
	}
	return (r.value == 1) != in.Unless, true
}

// read records which register a line sets.
func (f *folder) read(line *ptx.Line) folding {
	l := folding{Line: line, in: line.Instruction()}
	if l.in == nil {
		if line.Executes() {
			f.lose(line.Text)
		}
		return l
	}
	op, args := l.in.Op, l.in.Args
	has := func(of string) bool {
		return slices.ContainsFunc(args, func(a ptx.Operand) bool { return strings.ContainsAny(a.Text, of) })
	}
	switch {
	case len(args) == 0 || strings.HasPrefix(args[0].Text, "[") || strings.HasPrefix(op, "bra"):
	case args[0].Kind != ptx.Register || has("|"):
		for _, a := range args {
			f.lose(a.Text)
		}
	case l.in.Guard != "" || has("{[") && !strings.HasPrefix(op, "ld.param."):
		f.register(args[0].Name).state = varies
	default:
		l.sets = f.register(args[0].Name)
		l.sets.sites = append(l.sets.sites, len(f.lines))
	}
	return l
}

// lose marks all registers that a text names as varying.
func (f *folder) lose(text string) {
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			continue
		}
		end := i + 1
		for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] >= 'a' && text[end] <= 'z' || text[end] == '_') {
			end++
		}
		f.register(text[i:end]).state = varies
		i = end - 1
	}
}

// exactly is the result that is known to be the constant v, cut to the bits of mask.
func exactly(v, mask uint64) result {
	v &= mask
	return result{number: true, value: v, bounds: true, most: v, zeros: min(bits.TrailingZeros64(v), bits.Len64(mask))}
}

// operand is what is known of an operand (a literal or a register) as an integer of width bits.
func (f *folder) operand(a ptx.Operand, width int) result {
	mask := ^uint64(0) >> (64 - width)
	if a.Kind == ptx.Integer {
		return exactly(a.Number, mask)
	}
	below := func(n uint64) result {
		if n == 1 {
			return exactly(0, mask)
		}
		return result{bounds: n > 0, most: n - 1}
	}
	switch a.Name {
	case "%tid.x":
		return below(f.threads)
	case "%ctaid.x", "%ctaid.y", "%ctaid.z":
		return below(f.blocks[a.Name[len(a.Name)-1]-'x'])
	}
	r := f.registers[a.Name]
	switch {
	case r == nil || r.state == varies || len(r.sites) == 0:
		return result{}
	case r.state == number:
		return exactly(r.value, mask)
	}
	return result{bounds: r.bounds && r.most <= mask, most: r.most, zeros: min(r.zeros, width)}
}

// result derives what is known of an instruction's value from what is known of its operands.
func (f *folder) result(in *ptx.Statement) result {
	mods := strings.Split(in.Op, ".")
	last := mods[len(mods)-1]
	width := map[string]int{"b16": 16, "u16": 16, "s16": 16, "b32": 32, "u32": 32, "s32": 32, "b64": 64, "u64": 64, "s64": 64, "pred": 1}[last]
	if width == 0 {
		return result{}
	}
	mask := ^uint64(0) >> (64 - width)
	is := func(v uint64) result { return exactly(v, mask) }
	least := func(v uint64) result { return result{bounds: v <= mask, most: v} }
	zeros := func(r result, n int) result { // r, with at least n low bits that are 0
		if n = min(n, width); !r.number {
			r.zeros = max(r.zeros, n)
		}
		return r
	}
	var x [3]result
	if len(in.Args) > 4 || len(in.Args) < 2 {
		return result{}
	}
	from := width
	if mods[0] == "cvt" && len(mods) == 3 { // cvt.to.from
		to := map[string]int{"u32": 32, "s32": 32, "u64": 64, "s64": 64}[mods[1]]
		if to == 0 || width < 32 {
			return result{}
		}
		a := f.operand(in.Args[1], width)
		mask = ^uint64(0) >> (64 - to)
		switch {
		case a.number && last[0] == 's' && to > width:
			return is(uint64(int64(a.value<<(64-width)) >> (64 - width)))
		case a.number:
			return is(a.value)
		case a.bounds && (last[0] != 's' || a.most < 1<<(width-1)):
			return zeros(least(a.most), a.zeros)
		}
		return result{zeros: min(a.zeros, to)}
	}
	if in.Op == "ld.param.b64" || in.Op == "ld.param.u64" {
		if n := parameterNumber(in.Args[1]); n >= 0 && f.aligned>>n&1 != 0 {
			return result{zeros: bits.TrailingZeros(wideBytes)}
		}
		return result{}
	}
	for i, a := range in.Args[1:] {
		x[i] = f.operand(a, from)
	}
	a, b, c := x[0], x[1], x[2]
	signed := func(r result) int64 { return int64(r.value<<(64-width)) >> (64 - width) }
	both := a.number && b.number
	switch strings.Join(mods[:len(mods)-1], ".") {
	case "mov", "cvta.global", "cvta.to.global": // an address has the same bits in both spaces
		return a
	case "and":
		switch {
		case both:
			return is(a.value & b.value)
		case a.bounds && bits.Len64(a.most) <= b.zeros || b.bounds && bits.Len64(b.most) <= a.zeros:
			return is(0)
		case width > 1 && a.bounds && b.bounds:
			return zeros(least(min(a.most, b.most)), max(a.zeros, b.zeros))
		case width > 1 && a.bounds:
			return zeros(least(a.most), max(a.zeros, b.zeros))
		case width > 1 && b.bounds:
			return zeros(least(b.most), max(a.zeros, b.zeros))
		}
		return result{zeros: max(a.zeros, b.zeros)}
	case "or":
		switch {
		case both:
			return is(a.value | b.value)
		case width == 1 && (a.number && a.value == 1 || b.number && b.value == 1):
			return is(1)
		case width > 1 && a.bounds && b.bounds:
			most := uint64(1)<<bits.Len64(a.most|b.most) - 1
			if bits.Len64(a.most) <= b.zeros || bits.Len64(b.most) <= a.zeros { // no bit can be set in both
				most = a.most + b.most
			}
			return zeros(least(most), min(a.zeros, b.zeros))
		}
		return result{zeros: min(a.zeros, b.zeros)}
	case "xor":
		if both {
			return is(a.value ^ b.value)
		}
	case "not":
		if a.number {
			return is(^a.value)
		}
	case "neg":
		if a.number {
			return is(-a.value)
		}
	case "add":
		if both {
			return is(a.value + b.value)
		}
		if sum, carry := bits.Add64(a.most, b.most, 0); a.bounds && b.bounds && carry == 0 && sum <= mask {
			return zeros(least(sum), min(a.zeros, b.zeros))
		}
		return result{zeros: min(a.zeros, b.zeros)}
	case "sub":
		if both {
			return is(a.value - b.value)
		}
		return result{zeros: min(a.zeros, b.zeros)}
	case "mul.lo":
		if both {
			return is(a.value * b.value)
		}
		if a.number && a.value == 0 || b.number && b.value == 0 {
			return is(0)
		}
		if high, low := bits.Mul64(a.most, b.most); a.bounds && b.bounds && high == 0 && low <= mask {
			return zeros(least(low), a.zeros+b.zeros)
		}
		return result{zeros: min(a.zeros+b.zeros, width)}
	case "mul.wide":
		both32 := a.bounds && b.bounds && (last == "u32" || a.most|b.most < 1<<31)
		if width == 32 {
			mask, width = ^uint64(0), 64
			switch {
			case both && both32:
				return is(a.value * b.value)
			case both32:
				return zeros(least(a.most*b.most), a.zeros+b.zeros)
			}
			return result{zeros: a.zeros + b.zeros}
		}
	case "mad.lo":
		if both && c.number {
			return is(a.value*b.value + c.value)
		}
		return result{zeros: min(a.zeros+b.zeros, c.zeros, width)}
	case "shl":
		if n := f.operand(in.Args[2], 32); n.number && n.value < uint64(width) {
			switch {
			case a.number:
				return is(a.value << n.value)
			case a.bounds && a.most <= mask>>n.value:
				return zeros(least(a.most<<n.value), a.zeros+int(n.value))
			}
			return result{zeros: min(a.zeros+int(n.value), width)}
		}
		return result{zeros: a.zeros}
	case "shr":
		n := f.operand(in.Args[2], 32)
		switch {
		case !n.number || n.value >= uint64(width):
		case last[0] == 's' && !(a.bounds && a.most <= mask>>1): // its sign may be set
		case a.number:
			return is(a.value >> n.value)
		case a.bounds:
			return least(a.most >> n.value)
		default:
			return least(mask >> n.value)
		}
	case "bfe":
		at, n := f.operand(in.Args[2], 32), f.operand(in.Args[3], 32)
		if a.number && at.number && n.number && n.value > 0 && at.value+n.value <= uint64(width) {
			v := a.value >> at.value & (1<<n.value - 1)
			if last[0] == 's' {
				v = uint64(int64(v<<(64-n.value)) >> (64 - n.value))
			}
			return is(v)
		}
	case "min", "max":
		switch {
		case last[0] != 'u':
		case both && mods[0] == "min":
			return is(min(a.value, b.value))
		case both:
			return is(max(a.value, b.value))
		case mods[0] == "max":
			if a.bounds && b.bounds {
				return least(max(a.most, b.most))
			}
		case a.bounds && b.bounds:
			return least(min(a.most, b.most))
		case a.bounds:
			return least(a.most)
		case b.bounds:
			return least(b.most)
		}
	case "div", "rem":
		if last[0] != 'u' || !b.number || b.value == 0 {
			return result{}
		}
		switch {
		case mods[0] == "div" && a.bounds:
			return result{number: a.number || a.most < b.value, value: a.value / b.value, bounds: true, most: a.most / b.value}
		case mods[0] == "rem" && a.number:
			return is(a.value % b.value)
		case mods[0] == "rem" && b.value == 1:
			return is(0)
		case mods[0] == "rem":
			return least(b.value - 1)
		}
	case "selp":
		switch p := f.operand(in.Args[3], 1); {
		case p.number && p.value == 1:
			return a
		case p.number:
			return b
		case both && a.value == b.value:
			return a
		case a.bounds && b.bounds:
			return least(max(a.most, b.most))
		}
	default:
		if mods[0] == "setp" && len(mods) == 3 {
			return compared(mods[1], last[0] == 's', a, b, signed(a), signed(b))
		}
	}
	return result{}
}

// parameterNumber is the index of the parameter that an operand is the place of; −1: of none, or of one above 63.
func parameterNumber(place ptx.Operand) int {
	if n := entryParameter(place.Name); place.Kind == ptx.Memory && place.Number == 0 && n < 64 {
		return n
	}
	return -1
}

// entryParameter is the index of the parameter with a name; −1: there is none.
func entryParameter(name string) int {
	if number, ok := strings.CutPrefix(name, nvptx.Entry+"_param_"); ok {
		if n, err := strconv.Atoi(number); err == nil {
			return n
		}
	}
	return -1
}

// compared is the result of setp; x and y are a and b as signed numbers, the same below the sign bit.
func compared(how string, isSigned bool, a, b result, x, y int64) result {
	truth := func(p bool) result {
		if p {
			return result{number: true, value: 1, bounds: true, most: 1}
		}
		return result{number: true, bounds: true}
	}
	if !a.number || !b.number {
		if a.bounds && b.number && a.most < b.value && (!isSigned || y >= 0) {
			switch how {
			case "lt", "le", "ne":
				return truth(true)
			case "ge", "gt", "eq":
				return truth(false)
			}
		}
		return result{}
	}
	less := a.value < b.value
	if isSigned {
		less = x < y
	}
	equal := a.value == b.value
	switch how {
	case "eq":
		return truth(equal)
	case "ne":
		return truth(!equal)
	case "lt", "lo":
		return truth(less)
	case "le", "ls":
		return truth(less || equal)
	case "gt", "hi":
		return truth(!less && !equal)
	case "ge", "hs":
		return truth(!less)
	}
	return result{}
}

// written are the lines that stand in place of one that folding changes.
func (f *folder) written(l *folding) (_ []ptx.Line, changed bool) {
	decimal := func(v uint64) string { return strconv.FormatUint(v, 10) }
	switch op := l.op(); {
	case strings.HasPrefix(op, "bra") && l.in.Guard != "":
		if truth, known := f.decided(l.in); truth {
			return l.With("bra.uni " + l.in.Args[0].Text), true
		} else if known {
			return nil, true
		}
	case l.sets == nil:
	case l.sets.state == number && l.result.number && strings.HasSuffix(op, ".pred") || strings.HasPrefix(op, "setp.") && l.sets.state == number:
		return l.With("setp.ne.u32 " + l.in.Args[0].Name + ", " + decimal(l.sets.value) + ", 0"), true
	case l.sets.state == number:
		kind := strings.TrimRight(l.in.Args[0].Name, "0123456789")
		if t := map[string]string{"%rs": "b16", "%r": "b32", "%rd": "b64"}[kind]; t != "" {
			return l.With("mov." + t + " " + l.in.Args[0].Name + ", " + decimal(l.sets.value)), true
		}
	case op == "div.u32" || op == "rem.u32":
		instructions := f.divided(l.in)
		return l.With(instructions...), instructions != nil
	}
	return nil, false
}

// divided are the instructions of a quotient or remainder by a constant without a division; nil: there are none.
func (f *folder) divided(in *ptx.Statement) []string {
	a, b := f.operand(in.Args[1], 32), f.operand(in.Args[2], 32)
	if !b.number || b.value == 0 {
		return nil
	}
	dst, x := in.Args[0].Text, in.Args[1].Text
	do := func(op, x string, by uint64) string { return fmt.Sprintf("%s %s, %s, %d", op, dst, x, by) }
	shift := bits.TrailingZeros64(b.value)
	if b.value>>shift == 1 {
		if in.Op == "rem.u32" {
			return []string{do("and.b32", x, b.value-1)}
		}
		return []string{do("shr.u32", x, uint64(shift))}
	}
	// With m = ⌈2^(32+s) / b⌉, ⌊x·m / 2^(32+s)⌋ is ⌊x / b⌋ for all x with x·(m·b − 2^(32+s)) < 2^(32+s).
	most := uint64(1<<32 - 1)
	if a.bounds {
		most = min(most, a.most)
	}
	for s := range 31 {
		power := uint64(1) << (32 + s)
		m := (power + b.value - 1) / b.value
		if m >= 1<<32 {
			return nil
		}
		if high, low := bits.Mul64(most, m*b.value-power); high > 0 || low >= power {
			continue
		}
		if dst == x {
			return nil
		}
		out := []string{do("mul.hi.u32", x, m)}
		if s > 0 {
			out = append(out, do("shr.u32", dst, uint64(s)))
		}
		if in.Op == "rem.u32" {
			out = append(out, do("mul.lo.s32", dst, b.value), fmt.Sprintf("sub.s32 %s, %s, %[1]s", dst, x))
		}
		return out
	}
	return nil
}
