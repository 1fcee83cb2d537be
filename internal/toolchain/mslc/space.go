package mslc

import (
	"fmt"
	"slices"
	"strings"
)

// The rewritten source has no address spaces: kernels cast their arguments to generic pointers,
// which clang carries along. Here the pointers of a function get back the spaces that they come
// from, as LLVM's pass InferAddressSpaces does: a value that is computed (getelementptr, phi,
// select) from pointers into one space is a pointer into that space, and what loads, stores, copies
// or calls AIR's memory functions through it says so.
//
// It trusts the syntax of clang's output, and leaves alone what it does not know.

// generic and unknown stand beside the numbers of spaces. unknown is what a value in a cycle is
// before anything is known of it.
const (
	generic = 0
	unknown = -1
)

// pointerValue is a value of type ptr.
type pointerValue struct {
	space    int
	line     int
	source   string   // of a cast: the pointer that is cast
	operands []string // of a getelementptr, phi or select
	twin     bool     // something uses it as a generic pointer
}

// spacer infers the spaces of one function.
type spacer struct {
	lines  []string
	values map[string]*pointerValue
	names  []string // of values, in the order of the text
	// declare is called for each function that a rewritten call needs.
	declare func(old, name string, spaces []int)
}

// inferSpaces rewrites the text of a function's definition.
func inferSpaces(text string, declare func(old, name string, spaces []int)) string {
	if !strings.Contains(text, "addrspacecast") {
		return text
	}
	s := &spacer{lines: strings.Split(text, "\n"), values: map[string]*pointerValue{}, declare: declare}
	for i, l := range s.lines {
		s.collect(i, l)
	}
	s.solve()
	out := make([]string, len(s.lines))
	for i, l := range s.lines {
		out[i] = s.rewrite(l)
	}
	return s.assemble(out)
}

// instruction cuts a line into its result, its operation and the rest.
func instruction(line string) (result, op, rest string) {
	l := strings.TrimLeft(line, " ")
	if strings.HasPrefix(l, "%") {
		end := symbolEnd(l, 0)
		if !strings.HasPrefix(l[end:], " = ") {
			return "", "", l
		}
		result, l = l[:end], l[end+3:]
	}
	op, rest, _ = strings.Cut(l, " ")
	if op == "tail" || op == "notail" || op == "musttail" {
		op, rest, _ = strings.Cut(rest, " ")
	}
	return result, op, rest
}

// collect notes the value that a line defines, if it is a pointer.
func (s *spacer) collect(i int, line string) {
	result, op, rest := instruction(line)
	if result == "" {
		return
	}
	v := &pointerValue{space: unknown, line: i}
	switch op {
	case "addrspacecast":
		n, source, ok := castSource(rest)
		if !ok {
			return
		}
		v.space, v.source = n, source
	case "getelementptr":
		at := gepBase(rest)
		if at < 0 {
			return
		}
		v.operands = []string{rest[at:operandEnd(rest, at)]}
	case "phi":
		if !strings.HasPrefix(rest, "ptr [") {
			return
		}
		for _, at := range phiOperands(rest) {
			v.operands = append(v.operands, rest[at:operandEnd(rest, at)])
		}
	case "select":
		for _, at := range pointerOperands(rest) {
			v.operands = append(v.operands, rest[at:operandEnd(rest, at)])
		}
		if len(v.operands) != 2 {
			return
		}
	default:
		return
	}
	s.values[result] = v
	s.names = append(s.names, result)
}

// castSource reads "ptr addrspace(N) X to ptr", which may stand in parentheses.
func castSource(rest string) (space int, source string, ok bool) {
	if n, _ := fmt.Sscanf(rest, "ptr addrspace(%d)", &space); n != 1 || space < 1 || space > 3 {
		return 0, "", false
	}
	at := strings.Index(rest, ") ") + 2
	end := operandEnd(rest, at)
	tail, found := strings.CutPrefix(rest[end:], " to ptr")
	return space, rest[at:end], found && !strings.HasPrefix(tail, " ")
}

// gepBase returns where the base of "[flags] TYPE, ptr BASE, …" begins, or −1 if the base is no
// generic pointer.
func gepBase(rest string) int {
	depth := 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '[', '{', '<', '(':
			depth++
		case ']', '}', '>', ')':
			depth--
		case '"':
			i += strings.IndexByte(rest[i+1:], '"') + 1
		case ',':
			if depth > 0 {
				continue
			}
			if strings.HasPrefix(rest[i:], ", ptr ") && !strings.HasPrefix(rest[i:], ", ptr addrspace(") {
				return i + len(", ptr ")
			}
			return -1
		}
	}
	return -1
}

// phiOperands returns where the values of "ptr [ V, %b ], [ …" begin.
func phiOperands(rest string) []int {
	var out []int
	for i := 0; i < len(rest); {
		j := strings.Index(rest[i:], "[ ")
		if j < 0 {
			return out
		}
		at := i + j + 2
		out = append(out, at)
		i = operandEnd(rest, at)
	}
	return out
}

// pointerOperands returns where the values of type ptr begin in a list of operands: the type, and
// then attributes of a parameter, may stand before them.
func pointerOperands(rest string) []int {
	var out []int
	for i := 0; i < len(rest); {
		switch {
		case rest[i] == '"':
			i += strings.IndexByte(rest[i+1:], '"') + 2
		case strings.HasPrefix(rest[i:], "ptr ") && (i == 0 || rest[i-1] == ' ' || rest[i-1] == '('):
			at := i + 4
			for {
				end := attributeEnd(rest, at)
				if end == at {
					break
				}
				at = end
			}
			if !strings.HasPrefix(rest[at:], "addrspace(") && !strings.HasPrefix(rest[at:], "@llvm.") {
				out = append(out, at)
			}
			i = operandEnd(rest, at)
		case rest[i] == '%' || rest[i] == '@':
			i = symbolEnd(rest, i)
		default:
			i++
		}
	}
	return out
}

// attributeEnd returns the end of the parameter attribute that begins at i, and of the space after
// it, or i if there is none.
func attributeEnd(s string, i int) int {
	for _, a := range []string{"align ", "noundef ", "nonnull ", "readonly ", "writeonly ", "readnone ", "nocapture ", "noalias ", "nofree ", "returned "} {
		if strings.HasPrefix(s[i:], a) {
			i += len(a)
			if a == "align " {
				i += strings.IndexByte(s[i:], ' ') + 1
			}
			return i
		}
	}
	for _, a := range []string{"captures(", "dereferenceable(", "dereferenceable_or_null(", "byval(", "sret("} {
		if strings.HasPrefix(s[i:], a) {
			return parenEnd(s, i+len(a)-1) + 1
		}
	}
	return i
}

// parenEnd returns the index after the parenthesis that closes the one at i.
func parenEnd(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			i += strings.IndexByte(s[i+1:], '"') + 1
		}
	}
	return len(s)
}

// operandEnd returns the end of the operand that begins at i: a name, a word, or a constant
// expression.
func operandEnd(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	if s[i] == '%' || s[i] == '@' {
		return symbolEnd(s, i)
	}
	j := i
	for j < len(s) && s[j] != ' ' && s[j] != ',' && s[j] != ')' && s[j] != '(' {
		j++
	}
	switch s[i:j] {
	case "addrspacecast", "getelementptr", "inttoptr", "bitcast":
		if p := strings.IndexByte(s[j:], '('); p >= 0 {
			return parenEnd(s, j+p)
		}
	}
	return j
}

// constant rewrites a constant expression that is a generic pointer into one space as the pointer
// into that space.
func constant(e string) (space int, pointer string) {
	if rest, ok := strings.CutPrefix(e, "addrspacecast ("); ok {
		if n, source, ok := castSource(strings.TrimSuffix(rest, ")")); ok {
			return n, source
		}
		return generic, e
	}
	if strings.HasPrefix(e, "getelementptr ") {
		open := strings.IndexByte(e, '(')
		at := gepBase(e[open+1:])
		if at < 0 {
			return generic, e
		}
		at += open + 1
		end := operandEnd(e, at)
		if n, base := constant(e[at:end]); n > generic {
			return n, e[:at-len("ptr ")] + typeOf(n) + " " + base + e[end:]
		}
	}
	return generic, e
}

// typeOf is the type of pointers into a space.
func typeOf(space int) string {
	if space == generic {
		return "ptr"
	}
	return fmt.Sprintf("ptr addrspace(%d)", space)
}

// space returns the space of an operand; null and undefined values may be in any.
func (s *spacer) space(operand string) int {
	switch operand {
	case "null", "undef", "poison":
		return unknown
	}
	if v, ok := s.values[operand]; ok {
		return v.space
	}
	if strings.HasPrefix(operand, "%") || strings.HasPrefix(operand, "@") {
		return generic
	}
	n, _ := constant(operand)
	return n
}

// solve gives every value its space: that of its operands if they agree. A space only ever moves
// from unknown to a number to generic, so that each value changes at most twice.
func (s *spacer) solve() {
	users := map[string][]string{}
	for _, name := range s.names {
		for _, o := range s.values[name].operands {
			users[o] = append(users[o], name)
		}
	}
	todo := slices.Clone(s.names)
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		v := s.values[name]
		if v.source != "" {
			continue
		}
		space := unknown
		for _, o := range v.operands {
			switch n := s.space(o); {
			case n == unknown || n == space:
			case space == unknown:
				space = n
			default:
				space = generic
			}
		}
		if space != v.space {
			v.space = space
			todo = append(todo, users[name]...)
		}
	}
	for _, v := range s.values {
		if v.space == unknown {
			v.space = generic
		}
	}
}

// in returns the operand as a pointer into its space.
func (s *spacer) in(operand string) (space int, pointer string) {
	if v, ok := s.values[operand]; ok {
		if v.source != "" {
			return v.space, v.source
		}
		return v.space, operand
	}
	switch {
	case operand == "null" || operand == "undef" || operand == "poison":
		return unknown, operand
	case strings.HasPrefix(operand, "%") || strings.HasPrefix(operand, "@"):
		return generic, operand
	}
	return constant(operand)
}

// twin is the name of a value as a generic pointer.
func twin(name string) string { return "%generic." + strings.Trim(name[1:], `"`) }

// asGeneric replaces the values in text that have become pointers into a space by their twins.
func (s *spacer) asGeneric(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			end := i + strings.IndexByte(text[i+1:], '"') + 2
			b.WriteString(text[i:end])
			i = end
		case '%':
			end := symbolEnd(text, i)
			name := text[i:end]
			if v, ok := s.values[name]; ok && v.source == "" && v.space != generic {
				v.twin = true
				name = twin(name)
			}
			b.WriteString(name)
			i = end
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	return b.String()
}

// rewrite returns a line with the spaces of its pointers.
func (s *spacer) rewrite(line string) string {
	result, op, rest := instruction(line)
	head := line[:len(line)-len(rest)]
	switch op {
	case "addrspacecast":
		if s.values[result] != nil {
			return line
		}
	case "getelementptr":
		if v := s.values[result]; v != nil && v.space != generic {
			at := gepBase(rest)
			return head + s.place(rest, at, v.space)
		}
	case "phi", "select":
		if v := s.values[result]; v != nil && v.space != generic {
			return head + s.merge(op, rest, v.space)
		}
	case "load", "store", "atomicrmw", "cmpxchg":
		// The pointer is the last operand of type ptr that is not stored.
		if at := address(op, rest); at >= 0 {
			if n, _ := s.in(rest[at:operandEnd(rest, at)]); n > generic {
				before, after := s.asGeneric(rest[:at]), s.place(rest[at-len("ptr "):], len("ptr "), n)
				return head + strings.TrimSuffix(before, "ptr ") + after
			}
		}
	case "icmp":
		if out, ok := s.compare(rest); ok {
			return head + out
		}
	case "call":
		if out, ok := s.call(head + rest); ok {
			return out
		}
	}
	if result == "" {
		return s.asGeneric(line)
	}
	at := strings.Index(line, " = ")
	return line[:at] + s.asGeneric(line[at:])
}

// place replaces the operand at i of text, before which "ptr " stands, by the pointer into the
// space. What follows stays as it is.
func (s *spacer) place(text string, i, space int) string {
	end := operandEnd(text, i)
	_, p := s.in(text[i:end])
	return text[:i-len("ptr ")] + typeOf(space) + " " + p + text[end:]
}

// merge rewrites a phi or select of pointers.
func (s *spacer) merge(op, rest string, space int) string {
	at := phiOperands
	if op == "select" {
		at = pointerOperands
	}
	var b strings.Builder
	last := 0
	for _, i := range at(rest) {
		end := operandEnd(rest, i)
		_, p := s.in(rest[i:end])
		b.WriteString(rest[last:i] + p)
		last = end
	}
	b.WriteString(rest[last:])
	out := b.String()
	if op == "phi" {
		return typeOf(space) + strings.TrimPrefix(out, "ptr")
	}
	return strings.ReplaceAll(out, ", ptr ", ", "+typeOf(space)+" ")
}

// address returns where the pointer that an instruction accesses begins, or −1.
func address(op, rest string) int {
	at := pointerOperands(rest)
	switch {
	case len(at) == 0:
		return -1
	case op == "store":
		// store VALUE, ptr P: a value of type ptr comes first.
		if i := at[len(at)-1]; strings.HasSuffix(rest[:i], ", ptr ") {
			return i
		}
		return -1
	default:
		if i := at[0]; strings.HasSuffix(rest[:i], "ptr ") {
			return i
		}
		return -1
	}
}

// compare rewrites icmp COND ptr A, B if both are in one space.
func (s *spacer) compare(rest string) (string, bool) {
	i := strings.Index(rest, " ptr ")
	if i < 0 || strings.HasPrefix(rest[i:], " ptr addrspace(") {
		return "", false
	}
	a := i + len(" ptr ")
	aEnd := operandEnd(rest, a)
	if !strings.HasPrefix(rest[aEnd:], ", ") {
		return "", false
	}
	b := aEnd + 2
	bEnd := operandEnd(rest, b)
	n, x := s.in(rest[a:aEnd])
	m, y := s.in(rest[b:bEnd])
	if n == unknown {
		n = m
	}
	if m == unknown {
		m = n
	}
	if n != m || n <= generic {
		return "", false
	}
	return rest[:i+1] + typeOf(n) + " " + x + ", " + y + rest[bEnd:], true
}

// call rewrites a call of a function that there is for several spaces.
func (s *spacer) call(line string) (string, bool) {
	i := strings.Index(line, "@")
	if i < 0 {
		return "", false
	}
	end := symbolEnd(line, i)
	name := line[i+1 : end]
	if !spaced(name) || end >= len(line) || line[end] != '(' {
		return "", false
	}
	closing := parenEnd(line, end)
	list := line[end:closing]
	var b strings.Builder
	var spaces []int
	last := 0
	for _, at := range pointerOperands(list) {
		stop := operandEnd(list, at)
		n, p := s.in(list[at:stop])
		if n <= generic || strings.HasPrefix(name, "air.atomic.") && len(spaces) > 0 {
			// The expected value of a compare-and-exchange is in the thread's memory.
			n, p = generic, s.asGeneric(list[at:stop])
		}
		spaces = append(spaces, n)
		// "ptr" stands before the attributes of the parameter.
		typ := strings.LastIndex(list[:at], "ptr ")
		b.WriteString(s.asGeneric(list[last:typ]) + typeOf(n) + " " + list[typ+4:at] + p)
		last = stop
	}
	b.WriteString(list[last:])
	renamed, ok := rename(name, spaces)
	if !ok {
		return "", false
	}
	if renamed != name {
		s.declare(name, renamed, spaces)
	}
	return line[:i+1] + renamed + b.String() + s.asGeneric(line[closing:]), true
}

// spaced reports whether a function's name says the spaces of its pointers.
func spaced(name string) bool {
	for _, p := range []string{"llvm.memcpy.", "llvm.memmove.", "llvm.memset.", "air.atomic.generic.", "air.simdgroup_matrix_8x8_load.", "air.simdgroup_matrix_8x8_store."} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// rename returns the name of a function for pointers into these spaces.
func rename(name string, spaces []int) (string, bool) {
	if rest, ok := strings.CutPrefix(name, "air.atomic.generic."); ok {
		switch {
		case len(spaces) > 0 && spaces[0] == 1:
			return "air.atomic.global." + rest, true
		case len(spaces) > 0 && spaces[0] == 3:
			return "air.atomic.local." + rest, true
		}
		return name, true
	}
	for _, n := range spaces {
		if !strings.Contains(name, ".p0") {
			return "", false
		}
		name = strings.Replace(name, ".p0", fmt.Sprintf(".p\x00%d", n), 1)
	}
	return strings.ReplaceAll(name, "\x00", ""), true
}

// assemble joins the lines and defines the twins that they need.
func (s *spacer) assemble(lines []string) string {
	after := map[int][]string{}
	for _, name := range s.names {
		v := s.values[name]
		if !v.twin {
			continue
		}
		at := v.line
		if _, op, _ := instruction(s.lines[at]); op == "phi" { // all phis of a block come first
			for {
				if _, op, _ := instruction(s.lines[at+1]); op != "phi" {
					break
				}
				at++
			}
		}
		after[at] = append(after[at], fmt.Sprintf("  %s = addrspacecast %s %s to ptr", twin(name), typeOf(v.space), name))
	}
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
		for _, t := range after[i] {
			b.WriteByte('\n')
			b.WriteString(t)
		}
	}
	return b.String()
}

// declaration is the declare line of a function for other spaces, from the one for generic
// pointers.
func declaration(old, oldName, name string, spaces []int) string {
	out := strings.Replace(old, "@"+oldName+"(", "@"+name+"(", 1)
	open := strings.Index(out, "@"+name+"(") + len(name) + 2
	end := parenEnd(out, open-1)
	list := out[open:end]
	for _, n := range spaces {
		i := indexWord(list, "ptr")
		if i < 0 {
			break
		}
		list = list[:i] + strings.Replace(typeOf(n), "ptr", "\x00", 1) + list[i+3:]
	}
	return out[:open] + strings.ReplaceAll(list, "\x00", "ptr") + out[end:]
}

// indexWord returns where the word stands in s, or −1.
func indexWord(s, word string) int {
	for i := 0; ; {
		j := strings.Index(s[i:], word)
		if j < 0 {
			return -1
		}
		i += j
		end := i + len(word)
		if (i == 0 || strings.IndexByte(" (,", s[i-1]) >= 0) && (end == len(s) || strings.IndexByte(" ),", s[end]) >= 0) {
			return i
		}
		i = end
	}
}
