package host

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// Values that nothing has defined, followed through a checked kernel: beside each value that may come of
// one stands its shadow, an integer of as many bits, of which those are 1 that are undefined. Such values
// are harmless until they are stored, or decide where to go or what to touch: there the executor is told
// (mlxc_used and mlxc_stored of host/check.c).
//
// They come from variables that nothing has set (mslc marks them, by UnsetValue and UnsetMemory; what Apple's
// compiler leaves is an undef where values meet), and from functions of simdgroups that read the value of a
// thread that is not there. What a freeze gives is taken for defined: LLVM puts one where it moves a branch
// to where the value need not have been asked for.

// Where a value may be undefined from.
const (
	fromUnset    = 1 // a variable
	fromExchange = 2 // a thread that is not there
	isUnset      = 4 // of a place: it is what nothing has set itself
)

// undefined says of the values in a kernel whether they may be undefined.
type undefined struct {
	m        *hostModule
	declared map[string]llvm.Declaration
	steps    map[string]*llvm.Instruction // by line; lines that make values are all different
	shadow   map[string]string
	from     map[string]int
	origin   map[string]int  // a line of the source where it comes from
	unset    map[string]bool // read of what nothing has set
	names    int
}

// shadowType is the integer type, or vector of them, of a value's shadow; "" of a type that is not followed.
func shadowType(typ string) string {
	n, elem := llvm.Elements(typ)
	switch {
	case elem == "float":
		elem = "i32"
	case elem == "half", elem == "bfloat":
		elem = "i16"
	case strings.HasPrefix(elem, "ptr"):
		elem = "i64"
	case !llvm.IsScalar(elem) || elem[0] != 'i':
		return ""
	}
	if strings.HasPrefix(typ, "<") {
		return fmt.Sprintf("<%d x %s>", n, elem)
	}
	return elem
}

// ones is the value of a shadow type all of whose bits are 1.
func ones(shadow string) string {
	n, elem := llvm.Elements(shadow)
	one := "-1"
	if elem == "i1" {
		one = "true"
	}
	if !strings.HasPrefix(shadow, "<") {
		return one
	}
	return "<" + strings.TrimSuffix(strings.Repeat(elem+" "+one+", ", n), ", ") + ">"
}

// plainCall is the name of a function of LLVM's whose result does not follow from its arguments element by element.
var plainCall = regexp.MustCompile(`^llvm\.(?:dbg|lifetime|mem|assume|experimental|annotation|prefetch|stack)`)

// follow finds out which values of a kernel may be undefined. o says where addresses come from.
func (m *hostModule) follow(blocks []*llvm.Block, declared map[string]llvm.Declaration, o *origins) *undefined {
	u := &undefined{m: m, declared: declared, steps: map[string]*llvm.Instruction{}, shadow: map[string]string{}, from: map[string]int{}, origin: map[string]int{}, unset: map[string]bool{}}
	var all []*llvm.Instruction
	users := map[string][]*llvm.Instruction{}
	for _, b := range blocks {
		for _, l := range b.Lines {
			s := llvm.Read(l)
			if s == nil || s.Op == "freeze" {
				continue
			}
			u.steps[l] = s
			all = append(all, s)
			for _, v := range s.Values() {
				if strings.HasPrefix(v, "%") {
					users[v] = append(users[v], s)
				}
			}
		}
	}
	var changed []string
	learn := func(s *llvm.Instruction, from, line int) {
		if s.Result == "" || from&^u.from[s.Result] == 0 || shadowType(s.Type) == "" {
			return
		}
		if u.from[s.Result] == 0 {
			u.shadow[s.Result] = fmt.Sprintf("%%mlxc.shadow%d", len(u.shadow))
		}
		if u.origin[s.Result] == 0 {
			u.origin[s.Result] = line
		}
		u.from[s.Result] |= from
		changed = append(changed, s.Result)
	}
	spread := func() {
		for len(changed) > 0 {
			v := changed[len(changed)-1]
			changed = changed[:len(changed)-1]
			for _, s := range users[v] {
				if s.Op != "load" && s.Op != "atomicrmw" && s.Op != "cmpxchg" {
					learn(s, u.from[v], u.origin[v])
				}
			}
		}
	}
	for _, s := range all {
		line := m.Line(s.Place)
		switch {
		case s.Op == "load" && o.unset(s.Operands[0]):
			u.unset[s.Result] = true
			learn(s, fromUnset, line)
		case s.Op == "load" && o.setInParts(s.Type, s.Operands[0]):
			learn(s, fromUnset, line)
		case s.Op == "phi" || s.Op == "select":
			if slices.Contains(s.Values(), "undef") || slices.Contains(s.Values(), "poison") {
				learn(s, fromUnset, line)
			}
		case strings.HasPrefix(s.Callee, air.UnsetCall):
			u.unset[s.Result] = true
			learn(s, fromUnset, line)
		case s.Op == "call":
			if _, d, ok := llvm.CallOf(s.Line, declared); ok && !air.Alone(d) {
				if site, err := air.SiteOf(d); err == nil && site.Operation >= air.OpShuffle && site.Operation <= air.OpShuffleAndFillDown {
					learn(s, fromExchange, line)
				}
			}
		}
	}
	spread()
	stored := func(s *llvm.Instruction) bool {
		return s.Op == "store" && u.from[s.Operands[0].Value] != 0 && (o.of[s.Operands[1].Value].kind == fromPrivate || o.of[s.Operands[1].Value].kind == fromNowhere)
	}
	if at := slices.IndexFunc(all, stored); at >= 0 {
		v := all[at].Operands[0].Value
		for _, s := range all {
			if s.Op != "load" || !strings.HasPrefix(s.Operands[0].Value, "%") {
				continue
			}
			if k := o.of[s.Operands[0].Value].kind; k == fromPrivate || k == fromNowhere {
				learn(s, u.from[v], u.origin[v])
			}
		}
		spread()
	}
	return u
}

// name is one for a value that is made.
func (u *undefined) name() string {
	u.names++
	return fmt.Sprintf("%%mlxc.u%d", u.names)
}

// of is the shadow of a value.
func (u *undefined) of(v string) string {
	if s, ok := u.shadow[v]; ok {
		return s
	}
	return "zeroinitializer"
}

// is reports whether a value may be undefined.
func (u *undefined) is(v string) bool { return u.from[v] != 0 }

// masked emits a mask of the elements of a value that are undefined.
func (u *undefined) masked(typ, v string, emit func(string, ...any)) string {
	shadow := shadowType(typ)
	n, _ := llvm.Elements(typ)
	some, mask := u.name(), u.name()
	emit("%s = icmp ne %s %s, zeroinitializer", some, shadow, u.of(v))
	if !strings.HasPrefix(shadow, "<") {
		emit("%s = zext i1 %s to i64", mask, some)
		return mask
	}
	if n > 64 {
		return "0"
	}
	bits := u.name()
	emit("%s = bitcast <%d x i1> %s to i%d", bits, n, some, n)
	if n == 64 {
		return bits
	}
	emit("%s = zext i%d %s to i64", mask, n, bits)
	return mask
}

// unmasked emits the shadow of a value of whose elements a mask says which are undefined.
func (u *undefined) unmasked(typ, mask, to string, emit func(string, ...any)) {
	shadow := shadowType(typ)
	n, elem := llvm.Elements(shadow)
	widen := func(from, bools string) {
		if elem == "i1" {
			emit("%s = or %s %s, zeroinitializer", to, bools, from)
			return
		}
		emit("%s = sext %s %s to %s", to, bools, from, shadow)
	}
	if !strings.HasPrefix(shadow, "<") {
		some := u.name()
		emit("%s = icmp ne i64 %s, 0", some, mask)
		widen(some, "i1")
		return
	}
	if n > 64 {
		emit("%s = or %s zeroinitializer, zeroinitializer", to, shadow)
		return
	}
	bits := mask
	if n < 64 {
		bits = u.name()
		emit("%s = trunc i64 %s to i%d", bits, mask, n)
	}
	bools := u.name()
	emit("%s = bitcast i%d %s to <%d x i1>", bools, n, bits, n)
	widen(bools, fmt.Sprintf("<%d x i1>", n))
}

// any emits whether any bit of a value is undefined.
func (u *undefined) any(typ, v string, emit func(string, ...any)) string {
	mask := u.masked(typ, v, emit)
	some := u.name()
	emit("%s = icmp ne i64 %s, 0", some, mask)
	return some
}

// lines are what stands before and behind a line of the kernel: uses of undefined values are told, and the
// shadow of what it makes is made. guarded says that the access in it has been asked about; places grow
// by those of uses.
func (u *undefined) lines(l string, guarded bool, places *[]access) (before, after []string) {
	s := u.steps[l]
	if s == nil {
		return nil, nil
	}
	dbg := s.Place
	front := func(format string, a ...any) { before = append(before, "  "+fmt.Sprintf(format, a...)+dbg) }
	back := func(format string, a ...any) { after = append(after, "  "+fmt.Sprintf(format, a...)+dbg) }
	place := func(kind int, v string) int {
		*places = append(*places, access{kind: kind, origin: origin{index: u.from[v]}, bytes: u.origin[v], line: u.m.Line(dbg)})
		return len(*places) - 1
	}
	use := func(kind int, typ, v string) {
		if u.is(v) {
			front("call void @mlxc_used(ptr %%mlxc.lane, i64 %s, i32 %d)", u.masked(typ, v, front), place(kind, v))
		}
	}
	switch s.Op {
	case "br", "switch":
		for _, o := range s.Operands {
			use(accessBranch, o.Type, o.Value)
		}
		return before, nil
	case "load":
		use(accessAddress, s.Operands[0].Type, s.Operands[0].Value)
		if to := u.shadow[s.Result]; to != "" {
			switch {
			case u.unset[s.Result]:
				back("%s = or %s %s, zeroinitializer", to, shadowType(s.Type), ones(shadowType(s.Type)))
			case !guarded:
				back("%s = or %s zeroinitializer, zeroinitializer", to, shadowType(s.Type))
			default:
				_, elem := llvm.Elements(s.Type)
				mask := u.name()
				back("%s = call i64 @mlxc_loaded(ptr %%mlxc.lane, i64 %s)", mask, sizeOf(elem))
				u.unmasked(s.Type, mask, to, back)
			}
		}
		return before, after
	case "store":
		use(accessAddress, s.Operands[1].Type, s.Operands[1].Value)
		if u.is(s.Operands[0].Value) && guarded {
			_, elem := llvm.Elements(s.Type)
			mask := u.masked(s.Type, s.Operands[0].Value, back)
			at := place(accessValue, s.Operands[0].Value)
			if u.unset[s.Operands[0].Value] {
				(*places)[at].origin.index |= isUnset
			}
			back("call void @mlxc_stored(ptr %%mlxc.lane, i64 %s, i64 %s, i32 %d)", mask, sizeOf(elem), at)
		}
		return before, after
	case "atomicrmw", "cmpxchg":
		for i, v := range s.Values() {
			kind := accessValue
			if i == 0 {
				kind = accessAddress
			}
			use(kind, s.Operands[i].Type, v)
		}
		return before, nil
	case "call":
		return u.call(s, front, back, use, &before, &after)
	}
	to := u.shadow[s.Result]
	if to == "" {
		return nil, nil
	}
	shadow := shadowType(s.Type)
	u.value(s, to, shadow, back)
	return nil, after
}

// call follows values into a function and out of it.
func (u *undefined) call(s *llvm.Instruction, front, back func(string, ...any), use func(kind int, typ, v string), before, after *[]string) (_, _ []string) {
	to := u.shadow[s.Result]
	if to != "" && u.unset[s.Result] {
		back("%s = or %s %s, zeroinitializer", to, shadowType(s.Type), ones(shadowType(s.Type)))
		return *before, *after
	}
	c, d, exchange := llvm.CallOf(s.Line, u.declared)
	switch {
	case exchange && air.Alone(d):
		return *before, *after // INVARIANT: expandAlone has put its body there
	case exchange:
		site, err := air.SiteOf(d)
		if err != nil || site.Operation <= air.SimdgroupBarrier || site.Operation == air.OpTogether {
			return *before, *after
		}
		operands := 1
		switch site.Operation {
		case air.OpMultiplyAccumulate:
			operands = 3
		case air.OpShuffleAndFillUp, air.OpShuffleAndFillDown:
			operands = 2
		}
		for i, v := range c.Values() {
			switch {
			case !u.is(v):
			case i < operands:
				front("call void @mlxc_leave(ptr %%mlxc.lane, i32 %d, i64 %s)", i, u.masked(d.Params[i], v, front))
			default: // which thread to read
				use(accessAddress, d.Params[i], v)
			}
		}
		if to != "" {
			mask := u.name()
			back("%s = call i64 @mlxc_taken(ptr %%mlxc.lane)", mask)
			u.unmasked(s.Type, mask, to, back)
		}
		return *before, *after
	case strings.HasPrefix(s.Callee, "air.atomic."):
		for i, v := range s.Values() {
			kind := accessValue
			if i == 0 {
				kind = accessAddress
			}
			use(kind, s.Operands[i].Type, v)
		}
		return *before, *after
	case to == "" || plainCall.MatchString(s.Callee):
		return *before, *after
	}
	// Of a function element by element, each element follows from those of the arguments.
	shadow := shadowType(s.Type)
	var same []string
	var others []string
	for i, v := range s.Values() {
		if !u.is(v) {
			continue
		}
		if shadowType(s.Operands[i].Type) == shadow {
			same = append(same, u.of(v))
		} else {
			others = append(others, u.any(s.Operands[i].Type, v, back))
		}
	}
	u.mix(to, shadow, same, others, back)
	return *before, *after
}

// mix emits a shadow each element of which is undefined wholly, if that of one of some shadows is in part; or all
// of it, if one of some conditions holds.
func (u *undefined) mix(to, shadow string, same, conditions []string, emit func(string, ...any)) {
	n, elem := llvm.Elements(shadow)
	bools := "i1"
	if strings.HasPrefix(shadow, "<") {
		bools = fmt.Sprintf("<%d x i1>", n)
	}
	all := "zeroinitializer"
	for _, s := range same {
		next := u.name()
		emit("%s = or %s %s, %s", next, shadow, all, s)
		all = next
	}
	wide := all
	if elem != "i1" {
		some := u.name()
		wide = u.name()
		emit("%s = icmp ne %s %s, zeroinitializer", some, shadow, all)
		emit("%s = sext %s %s to %s", wide, bools, some, shadow)
	}
	for _, c := range conditions {
		next := u.name()
		emit("%s = select i1 %s, %s %s, %s %s", next, c, shadow, ones(shadow), shadow, wide)
		wide = next
	}
	emit("%s = or %s %s, zeroinitializer", to, shadow, wide)
}

// value emits the shadow of what an instruction computes.
func (u *undefined) value(s *llvm.Instruction, to, shadow string, emit func(string, ...any)) {
	of := func(i int) string { return u.of(s.Operands[i].Value) }
	all := ones(shadow)
	switch s.Op {
	case "phi":
		list := make([]string, len(s.Operands))
		for i, o := range s.Operands {
			v := of(i)
			if o.Value == "undef" || o.Value == "poison" {
				v = all
			}
			list[i] = fmt.Sprintf("[ %s, %%%s ]", v, o.From)
		}
		emit("%s = phi %s %s", to, shadow, strings.Join(list, ", "))
	case "select":
		sides := [2]string{}
		for i := range sides {
			if sides[i] = of(1 + i); s.Operands[1+i].Value == "undef" || s.Operands[1+i].Value == "poison" {
				sides[i] = all
			}
		}
		chosen := to
		if u.is(s.Operands[0].Value) {
			chosen = u.name()
		}
		emit("%s = select %s %s, %s %s, %s %s", chosen, s.Operands[0].Type, s.Operands[0].Value, shadow, sides[0], shadow, sides[1])
		if chosen != to {
			emit("%s = select %s %s, %s %s, %s %s", to, s.Operands[0].Type, of(0), shadow, all, shadow, chosen)
		}
	case "and", "or":
		// A bit that is 0 on one side, or 1 for `or`, is defined whatever the other is.
		var known [2]string
		for i := range known {
			if known[i] = s.Operands[i].Value; s.Op == "or" {
				known[i] = u.name()
				emit("%s = xor %s %s, %s", known[i], s.Type, s.Operands[i].Value, all)
			}
		}
		a, b, c, ab := u.name(), u.name(), u.name(), u.name()
		emit("%s = and %s %s, %s", a, shadow, of(0), of(1))
		emit("%s = and %s %s, %s", b, shadow, of(0), known[1])
		emit("%s = and %s %s, %s", c, shadow, known[0], of(1))
		emit("%s = or %s %s, %s", ab, shadow, a, b)
		emit("%s = or %s %s, %s", to, shadow, ab, c)
	case "xor", "add", "sub":
		if s.Op == "xor" {
			emit("%s = or %s %s, %s", to, shadow, of(0), of(1))
			break
		}
		// What is added carries into higher bits.
		both, minus := u.name(), u.name()
		emit("%s = or %s %s, %s", both, shadow, of(0), of(1))
		emit("%s = sub %s zeroinitializer, %s", minus, shadow, both)
		emit("%s = or %s %s, %s", to, shadow, both, minus)
	case "shl", "lshr", "ashr":
		if !u.is(s.Operands[1].Value) {
			emit("%s = %s %s %s, %s", to, s.Op, shadow, of(0), s.Operands[1].Value)
			break
		}
		u.mix(to, shadow, []string{of(0), of(1)}, nil, emit)
	case "trunc", "zext", "sext", "bitcast":
		from := shadowType(s.Operands[0].Type)
		if from == shadow {
			emit("%s = or %s %s, zeroinitializer", to, shadow, of(0))
			break
		}
		emit("%s = %s %s %s to %s", to, s.Op, from, of(0), shadow)
	case "extractelement":
		if u.is(s.Operands[1].Value) {
			u.mix(to, shadow, nil, []string{u.any(s.Operands[1].Type, s.Operands[1].Value, emit)}, emit)
			break
		}
		emit("%s = extractelement %s %s, %s %s", to, shadowType(s.Operands[0].Type), of(0), s.Operands[1].Type, s.Operands[1].Value)
	case "insertelement":
		_, elem := llvm.Elements(shadow)
		if u.is(s.Operands[2].Value) {
			u.mix(to, shadow, []string{of(0)}, []string{u.any(s.Operands[2].Type, s.Operands[2].Value, emit)}, emit)
			break
		}
		emit("%s = insertelement %s %s, %s %s, %s %s", to, shadow, of(0), elem, of(1), s.Operands[2].Type, s.Operands[2].Value)
	case "shufflevector":
		from := shadowType(s.Operands[0].Type)
		mask := strings.NewReplacer("poison", "0", "undef", "0").Replace(s.Operands[2].Value)
		if mask == "0" {
			mask = "zeroinitializer"
		}
		emit("%s = shufflevector %s %s, %s %s, %s %s", to, from, of(0), from, of(1), s.Operands[2].Type, mask)
	case "fadd", "fsub", "fmul", "fdiv", "frem", "mul", "udiv", "sdiv", "urem", "srem", "fneg":
		var same []string
		for i := range s.Operands {
			if u.is(s.Operands[i].Value) {
				same = append(same, of(i))
			}
		}
		u.mix(to, shadow, same, nil, emit)
	case "icmp", "fcmp":
		from := shadowType(s.Operands[0].Type)
		both := u.name()
		emit("%s = or %s %s, %s", both, from, of(0), of(1))
		emit("%s = icmp ne %s %s, zeroinitializer", to, from, both)
	case "getelementptr":
		var conditions []string
		for i, v := range s.Values() {
			if u.is(v) {
				conditions = append(conditions, u.any(s.Operands[i].Type, v, emit))
			}
		}
		u.mix(to, shadow, nil, conditions, emit)
	default: // conversions: element by element
		n, elem := llvm.Elements(shadow)
		bools := "i1"
		if strings.HasPrefix(shadow, "<") {
			bools = fmt.Sprintf("<%d x i1>", n)
		}
		some := u.name()
		emit("%s = icmp ne %s %s, zeroinitializer", some, shadowType(s.Operands[0].Type), of(0))
		if elem == "i1" {
			emit("%s = or %s %s, zeroinitializer", to, bools, some)
			break
		}
		emit("%s = sext %s %s to %s", to, bools, some, shadow)
	}
}
