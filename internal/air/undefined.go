package air

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// Names of what stands for what nothing has set, up to a number: functions that give a value, and memory from which
// large variables are copied where they begin.
const (
	UnsetValue  = "air.mlxc.unset."
	UnsetMemory = "mlxc.unset.memory."
	unsetCall   = "unset.mlxc." // the function's name here, where others called air.* get bodies
)

var unsetLine = regexp.MustCompile(`^  (%\S+) = (?:tail )?call (.*?) @` + regexp.QuoteMeta(unsetCall) + `[0-9]+\(\)`)

// renameUnset gives the functions of unset values their name here. Of a kernel that is not checked the values
// are some.
func (m *module) renameUnset(checked bool) {
	found := false
	for i := range m.declares {
		if n, ok := strings.CutPrefix(m.declares[i].name, UnsetValue); ok {
			m.declares[i].name, found = unsetCall+n, true
		}
	}
	for _, f := range m.funcs {
		for i := 0; found && i < len(f.lines); i++ {
			f.lines[i] = strings.ReplaceAll(f.lines[i], "@"+UnsetValue, "@"+unsetCall)
			if s := unsetLine.FindStringSubmatch(f.lines[i]); s != nil && !checked {
				f.lines[i] = someValue(s[1], s[2], debugPlace.FindString(f.lines[i]))
			}
		}
	}
	if !checked {
		m.definedUnset()
	}
}

// someValue is a line that makes a value which nothing has set: the same in every run.
func someValue(result, typ, dbg string) string {
	return fmt.Sprintf("  %s = freeze %s zeroinitializer%s", result, typ, dbg)
}

// Where a value may be undefined from.
const (
	fromUnset    = 1 // a variable
	fromExchange = 2 // a thread that is not there
	isUnset      = 4 // of a place: it is what nothing has set itself
)

// step is an instruction: the value that it makes, and those that it is made of.
type step struct {
	line     string
	result   string
	op       string
	pred     string   // of a comparison
	typ      string   // of the first operand, of the value of a phi
	to       string   // what a cast makes
	types    []string // of the operands
	operands []string
}

// undefined says of the values in a kernel whether they may be undefined.
type undefined struct {
	m        *module
	declared map[string]declaration
	steps    map[string]*step // by line; lines that make values are all different
	shadow   map[string]string
	from     map[string]int
	origin   map[string]int  // a line of the source where it comes from
	unset    map[string]bool // read of what nothing has set
	shaded   bool            // values in private memory may be undefined
	names    int
}

var (
	stepLine  = regexp.MustCompile(`^  (?:(%\S+) = )?(?:tail |musttail |notail )?([a-z]+) (.*)$`)
	stepFlags = regexp.MustCompile(`^(?:(?:nuw|nsw|exact|disjoint|nneg|samesign|inbounds|nusw|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|volatile|atomic) |inrange\([^)]*\) )+`)
)

// isUndefined reports whether an address is of what nothing has set.
func isUndefined(operand string) bool { return strings.Contains(operand, "@"+UnsetMemory) }

// twoOperands are the operations of two values of a type.
var twoOperands = []string{"add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor", "fadd", "fsub", "fmul", "fdiv", "frem"}

// castNames are those of conversions.
var castNames = []string{"trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint", "inttoptr", "bitcast", "addrspacecast"}

// stepOf reads a line; nil if it makes no value and uses none in a way that matters.
func (u *undefined) stepOf(l string) *step {
	p := stepLine.FindStringSubmatch(l)
	if p == nil {
		return nil
	}
	rest, _, _ := strings.Cut(p[3], ", !dbg ")
	s := &step{line: l, result: p[1], op: p[2]}
	add := func(typed string) {
		t := typeOf(typed)
		s.types = append(s.types, t)
		s.operands = append(s.operands, valueOf(typed, t))
	}
	same := func(list string) {
		parts := splitTop(list)
		if len(parts) == 0 {
			return
		}
		s.typ = typeOf(parts[0])
		add(parts[0])
		for _, o := range parts[1:] {
			s.types, s.operands = append(s.types, s.typ), append(s.operands, o)
		}
	}
	rest = strings.TrimPrefix(rest, stepFlags.FindString(rest))
	switch {
	case slices.Contains(twoOperands, s.op), s.op == "fneg":
		same(rest)
	case s.op == "icmp", s.op == "fcmp":
		s.pred, rest, _ = strings.Cut(rest, " ")
		same(rest)
	case slices.Contains(castNames, s.op):
		from, to, ok := cutLast(rest, " to ")
		if !ok {
			return nil
		}
		add(from)
		s.typ, s.to = s.types[0], to
	case s.op == "select", s.op == "insertelement", s.op == "extractelement", s.op == "shufflevector":
		for _, o := range splitTop(rest) {
			add(o)
		}
		s.typ = s.firstType()
	case s.op == "phi":
		s.typ = typeOf(rest)
		for _, in := range incoming.FindAllStringSubmatch(rest, -1) {
			s.types, s.operands = append(s.types, s.typ), append(s.operands, in[1])
		}
	case s.op == "getelementptr":
		for i, o := range splitTop(rest) {
			if i > 0 { // behind what is pointed to
				add(o)
			}
		}
		s.typ = "ptr"
	case s.op == "load":
		parts := splitTop(rest)
		if len(parts) < 2 {
			return nil
		}
		s.typ = parts[0]
		add(orderless(parts[1]))
	case s.op == "store":
		parts := splitTop(rest)
		if len(parts) < 2 {
			return nil
		}
		add(parts[0])
		add(orderless(parts[1]))
		s.typ = s.types[0]
	case s.op == "call":
		at := callLine.FindStringSubmatchIndex(l)
		if at == nil {
			return nil
		}
		end := matching(l, at[1]-1)
		if end < 0 {
			return nil
		}
		for _, a := range splitTop(l[at[1]:end]) {
			add(a)
		}
		_, words, _ := strings.Cut(l[:at[4]], "call ")
		s.typ = typeOf(stepFlags.ReplaceAllString(strings.TrimSuffix(words, "@"), ""))
	case s.op == "atomicrmw", s.op == "cmpxchg":
		for _, o := range splitTop(rest) {
			if i := strings.IndexByte(o, ' '); s.op == "atomicrmw" && len(s.types) == 0 {
				o = o[i+1:] // behind what it does
			}
			add(orderless(orderless(o)))
		}
	case s.op == "br" && strings.HasPrefix(rest, "i1 "), s.op == "switch":
		for i, o := range splitTop(rest) {
			if i == 0 {
				add(o)
			}
		}
		s.typ = s.firstType()
	default:
		return nil
	}
	if len(s.operands) < operandCount[s.op] || s.op == "phi" && len(s.operands) != len(incoming.FindAllString(l, -1)) {
		return nil
	}
	return s
}

// operandCount says how many operands instructions have at least.
var operandCount = map[string]int{
	"add": 2, "sub": 2, "mul": 2, "udiv": 2, "sdiv": 2, "urem": 2, "srem": 2, "shl": 2, "lshr": 2, "ashr": 2, "and": 2, "or": 2, "xor": 2,
	"fadd": 2, "fsub": 2, "fmul": 2, "fdiv": 2, "frem": 2, "fneg": 1, "icmp": 2, "fcmp": 2, "select": 3, "insertelement": 3, "extractelement": 2,
	"shufflevector": 3, "getelementptr": 1, "atomicrmw": 2, "cmpxchg": 3, "br": 1, "switch": 1,
}

// firstType is the type of the first operand, or "".
func (s *step) firstType() string {
	if len(s.types) == 0 {
		return ""
	}
	return s.types[0]
}

// cutLast is strings.Cut at the last place.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// shadowType is the integer type, or vector of them, of a value's shadow; "" of a type that is not followed.
func shadowType(typ string) string {
	n, elem := elements(typ)
	switch {
	case elem == "float":
		elem = "i32"
	case elem == "half", elem == "bfloat":
		elem = "i16"
	case strings.HasPrefix(elem, "ptr"):
		elem = "i64"
	case !scalarType(elem) || elem[0] != 'i':
		return ""
	}
	if strings.HasPrefix(typ, "<") {
		return fmt.Sprintf("<%d x %s>", n, elem)
	}
	return elem
}

// ones is the value of a shadow type all of whose bits are 1.
func ones(shadow string) string {
	n, elem := elements(shadow)
	one := "-1"
	if elem == "i1" {
		one = "true"
	}
	if !strings.HasPrefix(shadow, "<") {
		return one
	}
	return "<" + strings.TrimSuffix(strings.Repeat(elem+" "+one+", ", n), ", ") + ">"
}

// asked are those that LLVM's functions of several arguments compute with, and not places or sizes.
var plainCall = regexp.MustCompile(`@"?llvm\.(?:dbg|lifetime|mem|assume|experimental|annotation|prefetch|stack)`)

// follow finds out which values of a kernel may be undefined. o says where addresses come from.
func (m *module) follow(blocks []*block, declared map[string]declaration, o *origins) *undefined {
	u := &undefined{m: m, declared: declared, steps: map[string]*step{}, shadow: map[string]string{}, from: map[string]int{}, origin: map[string]int{}, unset: map[string]bool{}}
	var all []*step
	users := map[string][]*step{}
	for _, b := range blocks {
		for _, l := range b.lines {
			s := u.stepOf(l)
			if s == nil {
				continue
			}
			u.steps[l] = s
			all = append(all, s)
			for _, v := range s.operands {
				if strings.HasPrefix(v, "%") {
					users[v] = append(users[v], s)
				}
			}
		}
	}
	var changed []string
	learn := func(s *step, from, line int) {
		if s.result == "" || from&^u.from[s.result] == 0 || shadowType(s.made(u)) == "" {
			return
		}
		if u.from[s.result] == 0 {
			u.shadow[s.result] = fmt.Sprintf("%%mlxc.shadow%d", len(u.shadow))
		}
		if u.origin[s.result] == 0 {
			u.origin[s.result] = line
		}
		u.from[s.result] |= from
		changed = append(changed, s.result)
	}
	spread := func() {
		for len(changed) > 0 {
			v := changed[len(changed)-1]
			changed = changed[:len(changed)-1]
			for _, s := range users[v] {
				if s.op != "load" && s.op != "atomicrmw" && s.op != "cmpxchg" {
					learn(s, u.from[v], u.origin[v])
				}
			}
		}
	}
	for _, s := range all {
		line := m.line(debugPlace.FindString(s.line))
		switch {
		case s.op == "load" && o.unset(s.operands[0]):
			u.unset[s.result] = true
			learn(s, fromUnset, line)
		case s.op == "load" && o.setInParts(s.typ, s.types[0]+" "+s.operands[0]):
			learn(s, fromUnset, line)
		case s.op == "phi" || s.op == "select":
			if slices.Contains(s.operands, "undef") || slices.Contains(s.operands, "poison") {
				learn(s, fromUnset, line)
			}
		case s.op == "call" && unsetLine.MatchString(s.line):
			u.unset[s.result] = true
			learn(s, fromUnset, line)
		case s.op == "call":
			if _, d, ok := callOf(s.line, declared); ok && !alone(d) {
				if site, err := siteOf(d); err == nil && site.operation >= opShuffle && site.operation <= opShuffleAndFillDown {
					learn(s, fromExchange, line)
				}
			}
		}
	}
	spread()
	stored := func(s *step) bool {
		return s.op == "store" && u.from[s.operands[0]] != 0 && (o.of[s.operands[1]].kind == fromPrivate || o.of[s.operands[1]].kind == fromNowhere)
	}
	if at := slices.IndexFunc(all, stored); at >= 0 {
		u.shaded = true
		v := all[at].operands[0]
		for _, s := range all {
			if k := o.of[s.first()].kind; s.op == "load" && strings.HasPrefix(s.first(), "%") && (k == fromPrivate || k == fromNowhere) {
				learn(s, u.from[v], u.origin[v])
			}
		}
		spread()
	}
	return u
}

// first is the first operand, or "".
func (s *step) first() string {
	if len(s.operands) == 0 {
		return ""
	}
	return s.operands[0]
}

// made is the type of the value that a step makes.
func (s *step) made(u *undefined) string {
	n, _ := elements(s.typ)
	switch s.op {
	case "icmp", "fcmp":
		if strings.HasPrefix(s.typ, "<") {
			return fmt.Sprintf("<%d x i1>", n)
		}
		return "i1"
	case "extractelement":
		_, elem := elements(s.typ)
		return elem
	case "shufflevector":
		k, _ := elements(s.types[2])
		_, elem := elements(s.typ)
		return fmt.Sprintf("<%d x %s>", k, elem)
	case "select":
		return s.types[1]
	}
	if s.to != "" {
		return s.to
	}
	return s.typ
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
	n, _ := elements(typ)
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
	n, elem := elements(shadow)
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
	dbg := debugPlace.FindString(l)
	front := func(format string, a ...any) { before = append(before, "  "+fmt.Sprintf(format, a...)+dbg) }
	back := func(format string, a ...any) { after = append(after, "  "+fmt.Sprintf(format, a...)+dbg) }
	place := func(kind int, v string) int {
		*places = append(*places, access{kind: kind, origin: origin{index: u.from[v]}, bytes: u.origin[v], line: u.m.line(dbg)})
		return len(*places) - 1
	}
	use := func(kind int, typ, v string) {
		if u.is(v) {
			front("call void @mlxc_used(ptr %%mlxc.lane, i64 %s, i32 %d)", u.masked(typ, v, front), place(kind, v))
		}
	}
	switch s.op {
	case "br", "switch":
		use(accessBranch, s.types[0], s.operands[0])
		return before, nil
	case "load":
		use(accessAddress, s.types[0], s.operands[0])
		if to := u.shadow[s.result]; to != "" {
			switch {
			case u.unset[s.result]:
				back("%s = or %s %s, zeroinitializer", to, shadowType(s.typ), ones(shadowType(s.typ)))
			case !guarded:
				back("%s = or %s zeroinitializer, zeroinitializer", to, shadowType(s.typ))
			default:
				_, elem := elements(s.typ)
				mask := u.name()
				back("%s = call i64 @mlxc_loaded(ptr %%mlxc.lane, i64 %s)", mask, sizeOf(elem))
				u.unmasked(s.typ, mask, to, back)
			}
		}
		return before, after
	case "store":
		use(accessAddress, s.types[1], s.operands[1])
		if u.is(s.operands[0]) && guarded {
			_, elem := elements(s.typ)
			mask := u.masked(s.typ, s.operands[0], back)
			at := place(accessValue, s.operands[0])
			if u.unset[s.operands[0]] {
				(*places)[at].origin.index |= isUnset
			}
			back("call void @mlxc_stored(ptr %%mlxc.lane, i64 %s, i64 %s, i32 %d)", mask, sizeOf(elem), at)
		}
		return before, after
	case "atomicrmw", "cmpxchg":
		for i, v := range s.operands {
			kind := accessValue
			if i == 0 {
				kind = accessAddress
			}
			use(kind, s.types[i], v)
		}
		return before, nil
	case "call":
		return u.call(s, front, back, use, &before, &after)
	}
	to := u.shadow[s.result]
	if to == "" {
		return nil, nil
	}
	shadow := shadowType(s.made(u))
	u.value(s, to, shadow, back)
	return nil, after
}

// call follows values into a function and out of it.
func (u *undefined) call(s *step, front, back func(string, ...any), use func(kind int, typ, v string), before, after *[]string) (_, _ []string) {
	to := u.shadow[s.result]
	if to != "" && u.unset[s.result] {
		back("%s = or %s %s, zeroinitializer", to, shadowType(s.typ), ones(shadowType(s.typ)))
		return *before, *after
	}
	c, d, exchange := callOf(s.line, u.declared)
	switch {
	case exchange && alone(d):
		return *before, *after // INVARIANT: expandAlone has put its body there
	case exchange:
		site, err := siteOf(d)
		if err != nil || site.operation <= simdgroupBarrier || site.operation == opTogether {
			return *before, *after
		}
		operands := 1
		switch site.operation {
		case opMultiplyAccumulate:
			operands = 3
		case opShuffleAndFillUp, opShuffleAndFillDown:
			operands = 2
		}
		for i, v := range c.args {
			switch {
			case !u.is(v):
			case i < operands:
				front("call void @mlxc_leave(ptr %%mlxc.lane, i32 %d, i64 %s)", i, u.masked(d.params[i], v, front))
			default: // which thread to read
				use(accessAddress, d.params[i], v)
			}
		}
		if to != "" {
			mask := u.name()
			back("%s = call i64 @mlxc_taken(ptr %%mlxc.lane)", mask)
			u.unmasked(s.typ, mask, to, back)
		}
		return *before, *after
	case strings.Contains(s.line, `@air.atomic.`) || strings.Contains(s.line, `@"air.atomic.`):
		for i, v := range s.operands {
			kind := accessValue
			if i == 0 {
				kind = accessAddress
			}
			use(kind, s.types[i], v)
		}
		return *before, *after
	case to == "" || plainCall.MatchString(s.line):
		return *before, *after
	}
	// Of a function element by element, each element follows from those of the arguments.
	shadow := shadowType(s.typ)
	var same []string
	var others []string
	for i, v := range s.operands {
		if !u.is(v) {
			continue
		}
		if shadowType(s.types[i]) == shadow {
			same = append(same, u.of(v))
		} else {
			others = append(others, u.any(s.types[i], v, back))
		}
	}
	u.mix(to, shadow, same, others, back)
	return *before, *after
}

// mix emits a shadow each element of which is undefined wholly, if that of one of some shadows is in part; or all
// of it, if one of some conditions holds.
func (u *undefined) mix(to, shadow string, same, conditions []string, emit func(string, ...any)) {
	n, elem := elements(shadow)
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
func (u *undefined) value(s *step, to, shadow string, emit func(string, ...any)) {
	of := func(i int) string { return u.of(s.operands[i]) }
	all := ones(shadow)
	switch s.op {
	case "phi":
		list := make([]string, len(s.operands))
		for i, in := range incoming.FindAllStringSubmatch(s.line, -1) {
			v := u.of(in[1])
			if in[1] == "undef" || in[1] == "poison" {
				v = all
			}
			list[i] = fmt.Sprintf("[ %s, %%%s ]", v, in[2])
		}
		emit("%s = phi %s %s", to, shadow, strings.Join(list, ", "))
	case "select":
		sides := [2]string{}
		for i := range sides {
			if sides[i] = of(1 + i); s.operands[1+i] == "undef" || s.operands[1+i] == "poison" {
				sides[i] = all
			}
		}
		chosen := to
		if u.is(s.operands[0]) {
			chosen = u.name()
		}
		emit("%s = select %s %s, %s %s, %s %s", chosen, s.types[0], s.operands[0], shadow, sides[0], shadow, sides[1])
		if chosen != to {
			emit("%s = select %s %s, %s %s, %s %s", to, s.types[0], of(0), shadow, all, shadow, chosen)
		}
	case "and", "or":
		// A bit that is 0 on one side, or 1 for `or`, is defined whatever the other is.
		var known [2]string
		for i := range known {
			if known[i] = s.operands[i]; s.op == "or" {
				known[i] = u.name()
				emit("%s = xor %s %s, %s", known[i], s.typ, s.operands[i], all)
			}
		}
		a, b, c, ab := u.name(), u.name(), u.name(), u.name()
		emit("%s = and %s %s, %s", a, shadow, of(0), of(1))
		emit("%s = and %s %s, %s", b, shadow, of(0), known[1])
		emit("%s = and %s %s, %s", c, shadow, known[0], of(1))
		emit("%s = or %s %s, %s", ab, shadow, a, b)
		emit("%s = or %s %s, %s", to, shadow, ab, c)
	case "xor", "add", "sub":
		if s.op == "xor" {
			emit("%s = or %s %s, %s", to, shadow, of(0), of(1))
			break
		}
		// What is added carries into higher bits.
		both, minus := u.name(), u.name()
		emit("%s = or %s %s, %s", both, shadow, of(0), of(1))
		emit("%s = sub %s zeroinitializer, %s", minus, shadow, both)
		emit("%s = or %s %s, %s", to, shadow, both, minus)
	case "shl", "lshr", "ashr":
		if !u.is(s.operands[1]) {
			emit("%s = %s %s %s, %s", to, s.op, shadow, of(0), s.operands[1])
			break
		}
		u.mix(to, shadow, []string{of(0), of(1)}, nil, emit)
	case "trunc", "zext", "sext", "bitcast":
		from := shadowType(s.typ)
		if from == shadow {
			emit("%s = or %s %s, zeroinitializer", to, shadow, of(0))
			break
		}
		emit("%s = %s %s %s to %s", to, s.op, from, of(0), shadow)
	case "extractelement":
		if u.is(s.operands[1]) {
			u.mix(to, shadow, nil, []string{u.any(s.types[1], s.operands[1], emit)}, emit)
			break
		}
		emit("%s = extractelement %s %s, %s %s", to, shadowType(s.typ), of(0), s.types[1], s.operands[1])
	case "insertelement":
		_, elem := elements(shadow)
		if u.is(s.operands[2]) {
			u.mix(to, shadow, []string{of(0)}, []string{u.any(s.types[2], s.operands[2], emit)}, emit)
			break
		}
		emit("%s = insertelement %s %s, %s %s, %s %s", to, shadow, of(0), elem, of(1), s.types[2], s.operands[2])
	case "shufflevector":
		from := shadowType(s.typ)
		mask := strings.NewReplacer("poison", "0", "undef", "0").Replace(s.operands[2])
		if mask == "0" {
			mask = "zeroinitializer"
		}
		emit("%s = shufflevector %s %s, %s %s, %s %s", to, from, of(0), from, of(1), s.types[2], mask)
	case "fadd", "fsub", "fmul", "fdiv", "frem", "mul", "udiv", "sdiv", "urem", "srem", "fneg":
		var same []string
		for i := range s.operands {
			if u.is(s.operands[i]) {
				same = append(same, of(i))
			}
		}
		u.mix(to, shadow, same, nil, emit)
	case "icmp", "fcmp":
		from := shadowType(s.typ)
		both := u.name()
		emit("%s = or %s %s, %s", both, from, of(0), of(1))
		emit("%s = icmp ne %s %s, zeroinitializer", to, from, both)
	case "getelementptr":
		var conditions []string
		for i, v := range s.operands {
			if u.is(v) {
				conditions = append(conditions, u.any(s.types[i], v, emit))
			}
		}
		u.mix(to, shadow, nil, conditions, emit)
	default: // conversions: element by element
		n, elem := elements(shadow)
		bools := "i1"
		if strings.HasPrefix(shadow, "<") {
			bools = fmt.Sprintf("<%d x i1>", n)
		}
		some := u.name()
		emit("%s = icmp ne %s %s, zeroinitializer", some, shadowType(s.typ), of(0))
		if elem == "i1" {
			emit("%s = or %s %s, zeroinitializer", to, bools, some)
			break
		}
		emit("%s = sext %s %s to %s", to, bools, some, shadow)
	}
}

// definedUnset gives what nothing has set, and stands in expressions of addresses still, some memory.
func (m *module) definedUnset() {
	m.declares = slices.DeleteFunc(m.declares, func(d declaration) bool { return strings.HasPrefix(d.name, unsetCall) })
	for i, g := range m.globals {
		if strings.HasPrefix(strings.Trim(g.name, `"`), UnsetMemory) {
			m.globals[i].text = unsetText.ReplaceAllString(g.text, "internal constant $1 zeroinitializer")
		}
	}
}

var unsetText = regexp.MustCompile(`^external .*?constant (\[[0-9]+ x i8\])`)
