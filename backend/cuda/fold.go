//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"math/bits"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
)

// folded returns PTX with constants folded: integers that known parameters determine become constants, and divisions
// by constants become multiplications and shifts. NVIDIA's compiler does neither across the table of additions, and
// divides by a constant as by anything else: a chain of conversions and a reciprocal, some 130 cycles, one for each
// dimension of a kernel's threadgroups.
//
// Bounds of block and thread indices decide whether a block lies behind the end of what a grid covers, and low bits
// of addresses how wide loads may be. Code behind branches that are never taken is removed, and what is left does
// not stand behind branches that the assembler must take for divergent.
//
// A register becomes a constant only if all reachable instructions that set it are without a guard and give the same
// constant. Results of instructions that are not in the tables here are unknown, and left as they are.
func folded(text []byte, known facts) []byte {
	before, f := fold(text, known)
	if f == nil {
		return text
	}
	out := bytes.NewBuffer(append([]byte(nil), before...))
	for i := range f.lines {
		f.write(out, &f.lines[i])
	}
	return out.Bytes()
}

// fold analyses the entry of a PTX text, and returns the text before it; f is nil if there is no entry, or if
// functions follow it.
func fold(text []byte, known facts) (before []byte, f *folder) {
	begin := bytes.Index(text, []byte(".visible .entry"))
	if begin < 0 || bytes.Contains(text[begin+1:], []byte(".func")) {
		return text, nil
	}
	f = &folder{registers: map[string]*register{}, facts: known}
	for line := range strings.SplitAfterSeq(string(text[begin:]), "\n") {
		f.lines = append(f.lines, f.parse(line))
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
				if r := f.result(l); r != l.result {
					changed, l.result = true, r
					l.sets.settle(f.lines)
				}
			}
		}
	}
	return text[:begin], f
}

// folder is an entry, line by line, with what is known of its registers.
type folder struct {
	lines     []ptxLine
	registers map[string]*register
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

// ptxLine is a line of PTX. If it is not a single instruction, only its text is used.
type ptxLine struct {
	text   string
	head   string // the white space before the instruction
	guard  string // "@%p1", "@!%p1"
	op     string
	args   []string
	sets   *register
	result result
	never  bool // it is unreachable
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
func (r *register) settle(lines []ptxLine) {
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

// labels returns the line of each label.
func (f *folder) labels() map[string]int {
	labels := map[string]int{}
	for i := range f.lines {
		if name, ok := strings.CutSuffix(strings.TrimSpace(f.lines[i].text), ":"); ok {
			labels[name] = i
		} else if name, _, ok := strings.Cut(strings.TrimSpace(f.lines[i].text), ":"); ok && strings.HasPrefix(name, "$") {
			labels[name] = i // followed by a comment
		}
	}
	return labels
}

// reach marks lines that have become unreachable, and reports whether one of them sets a register.
func (f *folder) reach() (news bool) {
	reached := f.until(func(*ptxLine) bool { return false })
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
func (f *folder) until(enough func(*ptxLine) bool) []bool {
	labels := f.labels()
	reached := make([]bool, len(f.lines))
	ways := []int{0}
	for len(ways) > 0 {
		i := ways[len(ways)-1]
		ways = ways[:len(ways)-1]
		for i < len(f.lines) && !reached[i] {
			reached[i] = true
			to, passed, ok := f.ways(i, labels)
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
func (f *folder) ways(i int, labels map[string]int) (to int, passed, ok bool) {
	l := &f.lines[i]
	jumps := l.op == "bra" || l.op == "bra.uni"
	if strings.HasPrefix(l.op, "br") && !jumps && !strings.HasPrefix(l.op, "brev") {
		return -1, false, false // a jump by a table
	}
	taken, passed := jumps, !jumps && l.op != "ret" && l.op != "exit" || l.guard != ""
	if jumps && l.guard != "" {
		if truth, known := f.decided(l.guard); known {
			taken, passed = truth, !truth
		}
	}
	if !taken {
		return -1, passed, true
	}
	to, ok = labels[l.args[0]]
	return to, passed, ok
}

// straight reports whether control flow has no cycle, and all jumps have known targets.
func (f *folder) straight() bool {
	labels := f.labels()
	const open, closed = 1, 2 // on the path that is followed; all its successors are closed
	state := make([]uint8, len(f.lines))
	type visit struct{ line, next int }
	visits := []visit{{0, 0}}
	for len(visits) > 0 {
		v := &visits[len(visits)-1]
		state[v.line] = open
		to, passed, ok := f.ways(v.line, labels)
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

// decided returns whether a guard holds, if that is known.
func (f *folder) decided(guard string) (truth, known bool) {
	name, isNot := strings.CutPrefix(strings.TrimPrefix(guard, "@"), "!")
	r := f.registers[name]
	if r == nil || r.state != number {
		return false, false
	}
	return (r.value == 1) != isNot, true
}

// parse splits a line into its parts, and records which registers it sets.
func (f *folder) parse(line string) ptxLine {
	l := ptxLine{text: line}
	code, _, _ := strings.Cut(line, "//")
	trimmed := strings.TrimSpace(code)
	if trimmed == "" || trimmed[0] == '.' || strings.HasSuffix(trimmed, ":") {
		return l
	}
	body, simple := strings.CutSuffix(trimmed, ";")
	if !simple || strings.ContainsAny(body, ";:(") {
		f.lose(trimmed)
		return l
	}
	if body[0] == '@' {
		var found bool
		if l.guard, body, found = strings.Cut(body, " "); !found {
			f.lose(trimmed)
			return l
		}
		body = strings.TrimSpace(body)
	}
	op, rest, _ := strings.Cut(strings.ReplaceAll(body, "\t", " "), " ")
	rest = strings.TrimSpace(rest)
	l.head, l.op = code[:strings.IndexByte(code, trimmed[0])], op
	if rest == "" || strings.HasPrefix(rest, "[") || strings.HasPrefix(op, "bra") {
		l.args = []string{rest}
		return l
	}
	if strings.HasPrefix(rest, "{") || strings.Contains(rest, "|") {
		f.lose(rest)
		return l
	}
	for a := range strings.SplitSeq(rest, ",") {
		l.args = append(l.args, strings.TrimSpace(a))
	}
	if !strings.HasPrefix(l.args[0], "%") {
		f.lose(rest)
		return l
	}
	r := f.register(l.args[0])
	if l.guard != "" || strings.ContainsAny(rest, "{[") && !strings.HasPrefix(op, "ld.param.") {
		r.state = varies
		return l
	}
	r.sites = append(r.sites, len(f.lines))
	l.sets = r
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
func (f *folder) operand(a string, width int) result {
	mask := ^uint64(0) >> (64 - width)
	if !strings.HasPrefix(a, "%") {
		v, err := strconv.ParseInt(a, 0, 64)
		if err != nil {
			return result{}
		}
		return exactly(uint64(v), mask)
	}
	below := func(n uint64) result {
		if n == 1 {
			return exactly(0, mask)
		}
		return result{bounds: n > 0, most: n - 1}
	}
	switch a {
	case "%tid.x":
		return below(f.threads)
	case "%ctaid.x", "%ctaid.y", "%ctaid.z":
		return below(f.blocks[a[len(a)-1]-'x'])
	}
	r := f.registers[a]
	switch {
	case r == nil || r.state == varies || len(r.sites) == 0:
		return result{}
	case r.state == number:
		return exactly(r.value, mask)
	}
	return result{bounds: r.bounds && r.most <= mask, most: r.most, zeros: min(r.zeros, width)}
}

// result derives what is known of an instruction's value from what is known of its operands.
func (f *folder) result(l *ptxLine) result {
	mods := strings.Split(l.op, ".")
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
	if len(l.args) > 4 || len(l.args) < 2 {
		return result{}
	}
	from := width
	if mods[0] == "cvt" && len(mods) == 3 { // cvt.to.from
		to := map[string]int{"u32": 32, "s32": 32, "u64": 64, "s64": 64}[mods[1]]
		if to == 0 || width < 32 {
			return result{}
		}
		a := f.operand(l.args[1], width)
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
	if l.op == "ld.param.b64" || l.op == "ld.param.u64" {
		if n := parameterNumber(l.args[1]); n >= 0 && f.aligned>>n&1 != 0 {
			return result{zeros: bits.TrailingZeros(wideBytes)}
		}
		return result{}
	}
	for i, a := range l.args[1:] {
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
		if n := f.operand(l.args[2], 32); n.number && n.value < uint64(width) {
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
		n := f.operand(l.args[2], 32)
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
		at, n := f.operand(l.args[2], 32), f.operand(l.args[3], 32)
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
		switch p := f.operand(l.args[3], 1); {
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

// parameterNumber is the index of the parameter that is read; −1: none, or one above 63.
func parameterNumber(place string) int {
	if number, ok := strings.CutPrefix(place, "["+air.PTXEntry+"_param_"); ok {
		if n, err := strconv.Atoi(strings.TrimSuffix(number, "]")); err == nil && n < 64 {
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

// write writes a line, folded.
func (f *folder) write(out *bytes.Buffer, l *ptxLine) {
	line := func(parts ...string) {
		out.WriteString(l.head)
		for _, p := range parts {
			out.WriteString(p)
		}
		out.WriteString(";\n")
	}
	decimal := func(v uint64) string { return strconv.FormatUint(v, 10) }
	switch {
	case strings.HasPrefix(l.op, "bra") && l.guard != "":
		if truth, known := f.decided(l.guard); known {
			if truth {
				line("bra.uni ", l.args[0])
			}
			return
		}
	case l.sets == nil:
	case l.sets.state == number && l.result.number && strings.HasSuffix(l.op, ".pred") || strings.HasPrefix(l.op, "setp.") && l.sets.state == number:
		line("setp.ne.u32 ", l.args[0], ", ", decimal(l.sets.value), ", 0")
		return
	case l.sets.state == number:
		if kind := strings.TrimRight(l.args[0], "0123456789"); kind == "%r" || kind == "%rs" || kind == "%rd" {
			line("mov.", map[string]string{"%rs": "b16", "%r": "b32", "%rd": "b64"}[kind], " ", l.args[0], ", ", decimal(l.sets.value))
			return
		}
	case l.op == "div.u32" || l.op == "rem.u32":
		if f.divided(l, line) {
			return
		}
	}
	out.WriteString(l.text)
}

// divided writes a quotient or remainder by a constant without a division, and reports whether it could.
func (f *folder) divided(l *ptxLine, line func(...string)) bool {
	a, b := f.operand(l.args[1], 32), f.operand(l.args[2], 32)
	if !b.number || b.value == 0 {
		return false
	}
	dst, x := l.args[0], l.args[1]
	decimal := func(v uint64) string { return strconv.FormatUint(v, 10) }
	shift := bits.TrailingZeros64(b.value)
	if b.value>>shift == 1 {
		if l.op == "rem.u32" {
			line("and.b32 ", dst, ", ", x, ", ", decimal(b.value-1))
		} else {
			line("shr.u32 ", dst, ", ", x, ", ", decimal(uint64(shift)))
		}
		return true
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
			return false
		}
		if high, low := bits.Mul64(most, m*b.value-power); high > 0 || low >= power {
			continue
		}
		if dst == x {
			return false
		}
		line("mul.hi.u32 ", dst, ", ", x, ", ", decimal(m))
		if s > 0 {
			line("shr.u32 ", dst, ", ", dst, ", ", decimal(uint64(s)))
		}
		if l.op == "rem.u32" {
			line("mul.lo.s32 ", dst, ", ", dst, ", ", decimal(b.value))
			line("sub.s32 ", dst, ", ", x, ", ", dst)
		}
		return true
	}
	return false
}
