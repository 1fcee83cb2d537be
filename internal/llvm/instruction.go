package llvm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Instruction is a line of a function's body that is one, read.
type Instruction struct {
	Line     string
	Result   string // the name of the value that it makes, with its %; "" if it makes none
	Op       string // load, call, …; "" if the line is not understood
	Flags    string // what stands behind that: nuw, fast, volatile, …, with a space behind each
	Pred     string // of a comparison: eq, olt; of an atomicrmw: add
	Type     string // of the value that it makes; of a store that of the value stored; "" if it is not known
	Operands []Operand
	Callee   string // of a call: the function's name, without @ and quotes; "" if a pointer is called
	CalleeAt int    // where it begins, with its @
	Place    string // where it is from in the source, as it is attached: ", !dbg !7"; "" if that is not known
}

// Operand is a value that an instruction is given. Places are indices in its line.
type Operand struct {
	Type, Value string
	At          int    // where the type begins; −1 of one that has its type from the operand before
	ValueAt     int    // where the value begins: behind the type and attributes
	From        string // of a phi: the label of the block that the value comes from
}

// TypeEnd is where the type of an operand ends.
func (o *Operand) TypeEnd() int { return o.At + len(o.Type) }

// End is where an operand ends.
func (o *Operand) End() int { return o.ValueAt + len(o.Value) }

// IsPointer reports whether an operand is an address in any space.
func (o *Operand) IsPointer() bool { return strings.HasPrefix(o.Type, "ptr") }

var (
	instructionLine = regexp.MustCompile(`^ +(?:(%(?:"[^"]*"|[-a-zA-Z$._0-9]+)) = )?(?:tail |musttail |notail )?([a-z_]+)( |$)`)
	flagWords       = regexp.MustCompile(`^(?:(?:nuw|nsw|exact|disjoint|nneg|samesign|inbounds|nusw|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|volatile|atomic|weak) |inrange\([^)]*\) )+`)
	placeSuffix     = regexp.MustCompile(`, !dbg ![0-9]+`)
	orderSuffix     = regexp.MustCompile(`(?: syncscope\("[^"]*"\))?(?: (?:unordered|monotonic|acquire|release|acq_rel|seq_cst))+$`)
	incoming        = regexp.MustCompile(`\[ (.*?), %("(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+) \]`)
)

// shapes says of each operation whether each of its operands has a type of its own, or all have that of the first; and
// how many there are at least.
var shapes = map[string]struct {
	typed bool
	least int
}{
	"add": {false, 2}, "sub": {false, 2}, "mul": {false, 2}, "udiv": {false, 2}, "sdiv": {false, 2}, "urem": {false, 2}, "srem": {false, 2},
	"shl": {false, 2}, "lshr": {false, 2}, "ashr": {false, 2}, "and": {false, 2}, "or": {false, 2}, "xor": {false, 2}, "fneg": {false, 1},
	"fadd": {false, 2}, "fsub": {false, 2}, "fmul": {false, 2}, "fdiv": {false, 2}, "frem": {false, 2}, "icmp": {false, 2}, "fcmp": {false, 2},
	"select": {true, 3}, "insertelement": {true, 3}, "extractelement": {true, 2}, "shufflevector": {true, 3}, "freeze": {true, 1},
	"extractvalue": {true, 1}, "insertvalue": {true, 2}, "getelementptr": {true, 1}, "load": {true, 1}, "store": {true, 2},
	"atomicrmw": {true, 2}, "cmpxchg": {true, 3}, "br": {true, 1}, "switch": {true, 1}, "ret": {true, 0}, "alloca": {true, 0},
	"trunc": {true, 1}, "zext": {true, 1}, "sext": {true, 1}, "fptrunc": {true, 1}, "fpext": {true, 1}, "fptoui": {true, 1}, "fptosi": {true, 1},
	"uitofp": {true, 1}, "sitofp": {true, 1}, "ptrtoint": {true, 1}, "inttoptr": {true, 1}, "bitcast": {true, 1}, "addrspacecast": {true, 1},
	"phi": {false, 0}, "call": {true, 0}, "fence": {true, 0}, "unreachable": {true, 0},
}

// IsCast reports whether an operation makes a value of one type of a value of another.
func IsCast(op string) bool { return slices.Contains(casts, op) }

var casts = []string{"trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint", "inttoptr", "bitcast", "addrspacecast"}

// Read reads a line; nil if it does not look like an instruction.
func Read(l string) *Instruction {
	at := instructionLine.FindStringSubmatchIndex(l)
	if at == nil {
		return nil
	}
	Counted(len(l))
	in := &Instruction{Line: l, Op: l[at[4]:at[5]], Place: placeSuffix.FindString(l), Flags: flagWords.FindString(l[at[1]:])}
	if at[2] >= 0 {
		in.Result = l[at[2]:at[3]]
	}
	if !in.read(at[1] + len(in.Flags)) {
		return &Instruction{Line: l, Result: in.Result, Place: in.Place}
	}
	return in
}

// read reads what begins behind the operation and its flags.
func (in *Instruction) read(begin int) bool {
	l := in.Line
	shape, ok := shapes[in.Op]
	switch in.Op {
	case "icmp", "fcmp", "atomicrmw":
		in.Pred, _, _ = strings.Cut(l[begin:], " ")
		begin = min(begin+len(in.Pred)+1, len(l))
	case "call":
		return in.readCall(begin)
	case "phi":
		return in.readPhi(begin)
	case "fence", "unreachable":
		return true
	}
	parts := split(l, begin, len(l))
	for i, p := range parts { // metadata is attached behind the operands
		if l[p.at] == '!' {
			parts = parts[:i]
			break
		}
	}
	if !ok || len(parts) == 0 {
		return ok && shape.least == 0
	}
	switch in.Op {
	case "getelementptr", "load", "alloca": // the first is a type
		in.Type, parts = l[parts[0].at:parts[0].end], parts[1:]
	case "br", "switch", "ret", "freeze", "extractvalue":
		parts = parts[:1]
	}
	switch in.Op {
	case "alloca": // behind the type stand a number and alignments
		return true
	case "load": // behind the operands stand alignments, or indices
		parts = parts[:min(1, len(parts))]
	case "store", "insertvalue", "atomicrmw":
		parts = parts[:min(2, len(parts))]
	case "cmpxchg":
		parts = parts[:min(3, len(parts))]
	}
	if IsCast(in.Op) {
		end := parts[len(parts)-1].end
		to := strings.LastIndex(l[:end], " to ")
		if to < begin {
			return false
		}
		in.Type = l[to+len(" to ") : end]
		in.typed(begin, to)
		return true
	}
	for i, p := range parts {
		switch {
		case i > 0 && !shape.typed:
			in.Operands = append(in.Operands, Operand{Type: in.Operands[0].Type, Value: l[p.at:p.end], At: -1, ValueAt: p.at})
			continue
		case in.Op == "load" || in.Op == "store" || in.Op == "atomicrmw" || in.Op == "cmpxchg":
			p.end -= len(orderSuffix.FindString(l[p.at:p.end]))
		}
		in.typed(p.at, p.end)
	}
	if len(in.Operands) < shape.least {
		return false
	}
	if first := in.Operands[:min(1, len(in.Operands))]; in.Op == "br" && first[0].Type != "i1" || in.Op == "ret" && first[0].Type == "void" {
		in.Operands = nil // what stands there is a label, or nothing
		return true
	}
	in.Type = in.made()
	return true
}

// made is the type of the value that an instruction makes, which has operands.
func (in *Instruction) made() string {
	first := in.Operands[0].Type
	n, elem := Elements(first)
	switch in.Op {
	case "load":
		return in.Type
	case "icmp", "fcmp":
		if strings.HasPrefix(first, "<") {
			return fmt.Sprintf("<%d x i1>", n)
		}
		return "i1"
	case "extractelement":
		return elem
	case "shufflevector":
		k, _ := Elements(in.Operands[2].Type)
		return fmt.Sprintf("<%d x %s>", k, elem)
	case "select":
		return in.Operands[1].Type
	case "extractvalue", "atomicrmw", "cmpxchg", "br", "switch", "ret":
		return ""
	}
	return first
}

// typed adds the operand that stands in a part of the line with its type.
func (in *Instruction) typed(at, end int) {
	text := strings.TrimSpace(in.Line[at:end])
	at += strings.Index(in.Line[at:end], text)
	typ := TypeOf(text)
	if !strings.HasPrefix(text, typ) {
		typ = "" // it is not understood
	}
	value := ValueOf(text, typ)
	in.Operands = append(in.Operands, Operand{Type: typ, Value: value, At: at, ValueAt: at + len(text) - len(value)})
}

// readCall reads a call, whose text behind the flags begins at an index.
func (in *Instruction) readCall(begin int) bool {
	l := in.Line
	at := begin
	for at < len(l) && l[at] != '@' {
		switch l[at] {
		case '"': // assembly
			return true
		case '%':
			at = NameEnd(l, at)
		case '(', '{', '[', '<': // of a type
			end := Matching(l, at)
			if end < 0 {
				return false
			}
			at = end + 1
		default:
			at++
		}
	}
	open := NameEnd(l, min(at, len(l)-1))
	if at == len(l) || open >= len(l) || l[open] != '(' {
		return true // of what a pointer points to
	}
	end := Matching(l, open)
	if end < 0 {
		return false
	}
	in.CalleeAt, in.Callee, in.Type = at, strings.Trim(l[at+1:open], `"`), TypeOf(l[begin:at])
	for _, p := range split(l, open+1, end) {
		in.typed(p.at, p.end)
	}
	return true
}

// readPhi reads a phi, whose text behind the flags begins at an index.
func (in *Instruction) readPhi(begin int) bool {
	in.Type = TypeOf(in.Line[begin:])
	at := begin
	for _, m := range incoming.FindAllStringSubmatchIndex(in.Line[begin:], -1) {
		in.Operands = append(in.Operands, Operand{
			Type: in.Type, Value: in.Line[begin+m[2] : begin+m[3]], At: at, ValueAt: begin + m[2], From: in.Line[begin+m[4] : begin+m[5]],
		})
		at = -1
	}
	return len(in.Operands) > 0
}

// Arguments is where the arguments of a call stand in its line: behind the bracket, and up to the one that closes it.
func (in *Instruction) Arguments() (begin, end int) {
	open := NameEnd(in.Line, in.CalleeAt)
	return open + 1, Matching(in.Line, open)
}

// Values are those of the operands.
func (in *Instruction) Values() []string {
	out := make([]string, len(in.Operands))
	for i, o := range in.Operands {
		out[i] = o.Value
	}
	return out
}

// Change puts a text in place of what stands in a part of a line.
type Change struct {
	At, End int
	Text    string
}

// With is the line with changes, which are in the order of the line and lie apart.
func (in *Instruction) With(changes ...Change) string {
	var b strings.Builder
	last := 0
	for _, c := range changes {
		b.WriteString(in.Line[last:c.At])
		b.WriteString(c.Text)
		last = c.End
	}
	b.WriteString(in.Line[last:])
	return b.String()
}

// Pointer is the type of addresses in a space; 0 is that of a thread's own memory, or of any.
func Pointer(space int) string {
	if space == 0 {
		return "ptr"
	}
	return fmt.Sprintf("ptr addrspace(%d)", space)
}
