package ptx

import (
	"strconv"
	"strings"
)

// Kind says what an operand is.
type Kind uint8

// The kinds of operands.
const (
	Other    Kind = iota // what is not understood
	Register             // Name: "%r1", "%tid.x"
	Integer              // Number, in two's complement
	Float                // Number: the bits of a literal
	Memory               // Name: the register or symbol of the address; Number: the offset from there, in bytes
	Label                // Name: "$L__BB0_1"
	Symbol               // Name: of a variable, a function or a word
	List                 // Elements: those in braces
	Nothing              // _
)

// Operand is an operand of a statement.
type Operand struct {
	Text     string // as it stands
	Kind     Kind
	Name     string
	Number   uint64
	Elements []Operand
}

// operand reads an operand.
func operand(s string) Operand {
	o := Operand{Text: s}
	switch {
	case s == "":
	case s == "_":
		o.Kind = Nothing
	case s[0] == '%' && isName(s[1:]):
		o.Kind, o.Name = Register, s
	case s[0] == '$' && isName(s):
		o.Kind, o.Name = Label, s
	case s[0] == '[' && strings.HasSuffix(s, "]"):
		name, offset, more := strings.Cut(s[1:len(s)-1], "+")
		n, err := strconv.ParseInt(offset, 10, 64)
		if (more && err != nil) || !isName(strings.TrimPrefix(name, "%")) {
			break
		}
		o.Kind, o.Name, o.Number = Memory, name, uint64(n)
	case s[0] == '{' && strings.HasSuffix(s, "}"):
		o.Kind = List
		for _, e := range split(s[1 : len(s)-1]) {
			o.Elements = append(o.Elements, operand(e))
		}
	case strings.HasPrefix(s, "0f"), strings.HasPrefix(s, "0d"):
		if n, err := strconv.ParseUint(s[2:], 16, 64); err == nil {
			o.Kind, o.Number = Float, n
		}
	case s[0] == '-' || s[0] >= '0' && s[0] <= '9':
		signed, err := strconv.ParseInt(s, 0, 64)
		o.Number = uint64(signed)
		if err != nil {
			o.Number, err = strconv.ParseUint(s, 0, 64)
		}
		if err == nil {
			o.Kind = Integer
		}
	case isName(s):
		o.Kind, o.Name = Symbol, s
	}
	return o
}

// isName reports whether a text has only what names have.
func isName(s string) bool {
	for _, c := range s {
		if c != '_' && c != '$' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return s != ""
}
