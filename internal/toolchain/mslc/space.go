package mslc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// The rewritten source has no address spaces: kernels cast their arguments to generic pointers,
// which clang carries along. Here the pointers of a function get back the spaces that they come
// from, as LLVM's pass InferAddressSpaces does: a value that is computed (getelementptr, phi,
// select) from pointers into one space is a pointer into that space, and what loads, stores, copies
// or calls AIR's memory functions through it says so.
//
// What is not an instruction that is known stays as it is.

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
	read   []*llvm.Instruction // of the lines; nil of one that is none
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
		s.read = append(s.read, llvm.Read(l))
		s.collect(i, s.read[i])
	}
	s.solve()
	out := make([]string, len(s.lines))
	for i, l := range s.lines {
		out[i] = s.rewrite(l, s.read[i])
	}
	return s.assemble(out)
}

// collect notes the value that a line makes, if it is a pointer.
func (s *spacer) collect(i int, in *llvm.Instruction) {
	if in == nil || in.Result == "" {
		return
	}
	v := &pointerValue{space: unknown, line: i}
	of := in.Operands
	switch in.Op {
	case "addrspacecast":
		if v.space, v.source = spaceOf(of[0].Type), of[0].Value; v.space == generic || in.Type != "ptr" {
			return
		}
		of = nil
	case "getelementptr":
		of = of[:1]
	case "select":
		of = of[1:]
	case "phi":
	default:
		return
	}
	for _, o := range of {
		if o.Type != "ptr" {
			return
		}
		v.operands = append(v.operands, o.Value)
	}
	s.values[in.Result] = v
	s.names = append(s.names, in.Result)
}

// spaceOf is the space of a type of pointers; generic also of other types.
func spaceOf(typ string) (space int) {
	if n, _ := fmt.Sscanf(typ, "ptr addrspace(%d)", &space); n != 1 || space < 1 || space > 3 {
		return generic
	}
	return space
}

// constant rewrites a constant expression that is a generic pointer into one space as the pointer
// into that space.
func constant(e string) (space int, pointer string) {
	open := strings.IndexByte(e, '(')
	if open < 0 || !strings.HasSuffix(e, ")") {
		return generic, e
	}
	// But for its brackets it is an instruction.
	const result = " %c = "
	in := llvm.Read(result + e[:open] + e[open+1:len(e)-1])
	if in == nil || len(in.Operands) == 0 {
		return generic, e
	}
	o := &in.Operands[0]
	switch {
	case in.Op == "addrspacecast" && in.Type == "ptr" && spaceOf(o.Type) != generic:
		return spaceOf(o.Type), o.Value
	case in.Op == "getelementptr" && o.Type == "ptr":
		if n, base := constant(o.Value); n > generic {
			text := in.With(llvm.Change{At: o.At, End: o.TypeEnd(), Text: llvm.Pointer(n)}, llvm.Change{At: o.ValueAt, End: o.End(), Text: base})[len(result):]
			return n, text[:open] + "(" + text[open:] + ")"
		}
	}
	return generic, e
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
		end := i + 1
		switch text[i] {
		case '"':
			end = min(llvm.Closing(text, i)+1, len(text))
		case '%':
			end = llvm.NameEnd(text, i)
			if v, ok := s.values[text[i:end]]; ok && v.source == "" && v.space != generic {
				v.twin = true
				b.WriteString(twin(text[i:end]))
				i = end
				continue
			}
		}
		b.WriteString(text[i:end])
		i = end
	}
	return b.String()
}

// rewrite returns a line with the spaces of its pointers.
func (s *spacer) rewrite(line string, in *llvm.Instruction) string {
	if in == nil {
		return s.asGeneric(line)
	}
	var changes []llvm.Change
	into := func(space int, of ...llvm.Operand) {
		for _, o := range of {
			if o.At >= 0 {
				changes = append(changes, llvm.Change{At: o.At, End: o.TypeEnd(), Text: llvm.Pointer(space)})
			}
			_, p := s.in(o.Value)
			changes = append(changes, llvm.Change{At: o.ValueAt, End: o.End(), Text: p})
		}
	}
	v, of := s.values[in.Result], in.Operands
	switch in.Op {
	case "addrspacecast":
		if v != nil {
			return line
		}
	case "getelementptr", "phi", "select":
		if v == nil || v.space == generic {
			break
		}
		switch in.Op {
		case "getelementptr":
			of = of[:1]
		case "select":
			of = of[1:]
		}
		into(v.space, of...)
	case "load", "store", "atomicrmw", "cmpxchg":
		at := of[0]
		if in.Op == "store" {
			at = of[1]
		}
		if n, _ := s.in(at.Value); at.Type == "ptr" && n > generic {
			into(n, at)
		}
	case "icmp":
		n, _ := s.in(of[0].Value)
		m, _ := s.in(of[1].Value)
		if of[0].Type == "ptr" && max(n, m) > generic && (n == m || min(n, m) == unknown) {
			into(max(n, m), of...)
		}
	case "call":
		name, spaces := s.call(in, into)
		if name == "" {
			changes = nil
		} else if name != in.Callee {
			s.declare(in.Callee, name, spaces)
			begin, _ := in.Arguments()
			changes = append([]llvm.Change{{At: in.CalleeAt, End: begin - 1, Text: "@" + name}}, changes...)
		}
	}
	last := strings.Index(line, in.Result) + len(in.Result)
	var b strings.Builder
	b.WriteString(line[:last])
	for _, c := range append(changes, llvm.Change{At: len(line), End: len(line)}) {
		b.WriteString(s.asGeneric(line[last:c.At]) + c.Text)
		last = c.End
	}
	return b.String()
}

// call rewrites the arguments of a call of a function that there is for several spaces. It returns the name of the
// function for these, "" if it is no such function.
func (s *spacer) call(in *llvm.Instruction, into func(int, ...llvm.Operand)) (name string, spaces []int) {
	if !spaced(in.Callee) {
		return "", nil
	}
	for _, o := range in.Operands {
		if o.Type != "ptr" {
			continue
		}
		n, _ := s.in(o.Value)
		// The expected value of a compare-and-exchange is in the thread's memory.
		if n <= generic || strings.HasPrefix(in.Callee, "air.atomic.") && len(spaces) > 0 {
			n = generic
		} else {
			into(n, o)
		}
		spaces = append(spaces, n)
	}
	return rename(in.Callee, spaces), spaces
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

// rename returns the name of a function for pointers into these spaces; "" if its name does not say so many.
func rename(name string, spaces []int) string {
	if rest, ok := strings.CutPrefix(name, "air.atomic.generic."); ok {
		switch {
		case len(spaces) > 0 && spaces[0] == 1:
			return "air.atomic.global." + rest
		case len(spaces) > 0 && spaces[0] == 3:
			return "air.atomic.local." + rest
		}
		return name
	}
	parts := strings.SplitN(name, ".p0", len(spaces)+1)
	if len(parts) != len(spaces)+1 {
		return ""
	}
	for i, n := range spaces {
		parts[i+1] = fmt.Sprintf(".p%d", n) + parts[i+1]
	}
	return strings.Join(parts, "")
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
		phi := func(in *llvm.Instruction) bool { return in != nil && in.Op == "phi" }
		for phi(s.read[at]) && at+1 < len(s.read) && phi(s.read[at+1]) { // all phis of a block come first
			at++
		}
		after[at] = append(after[at], fmt.Sprintf("  %s = addrspacecast %s %s to ptr", twin(name), llvm.Pointer(v.space), name))
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
	at := strings.Index(old, "@"+oldName+"(")
	if at < 0 {
		return old
	}
	open := at + len("@"+oldName)
	end := llvm.Matching(old, open)
	if end < 0 {
		return old
	}
	params := llvm.Split(old[open+1 : end])
	for i, p := range params {
		if rest, ok := strings.CutPrefix(p, "ptr"); ok && len(spaces) > 0 {
			params[i], spaces = llvm.Pointer(spaces[0])+rest, spaces[1:]
		}
	}
	return old[:at] + "@" + name + "(" + strings.Join(params, ", ") + old[end:]
}
