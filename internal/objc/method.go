package objc

import (
	"fmt"
	"strings"
)

// ID is the address of a reference-counted Objective-C object, or 0 for nil. It is no Go pointer.
type ID uintptr

// Kind is the type of an argument or result: a letter of Objective-C's type encodings or, where those
// have no single letter, one of our own.
type Kind byte

// The kinds.
const (
	Void    Kind = 'v'
	Object  Kind = '@'
	SEL     Kind = ':'
	Integer Kind = 'Q' // NSUInteger, NSInteger, uint64_t, an enumeration
	Bool    Kind = 'B' // only the low 8 bits of a result are defined
	Double  Kind = 'd' // results only
	CString Kind = '*'
	Pointer Kind = '^'
	Block   Kind = '?'
	Range   Kind = 'R' // NSRange: location and length, two registers
	Struct  Kind = 'S' // MTLSize, MTLRegion: a pointer to a copy
)

// Method describes a message that can be sent. All methods are in the Table.
type Method struct {
	Class    string // the class or protocol that declares it: "MTLDevice"
	Selector string // "newBufferWithLength:options:"
	// Types has the Kind of the result, then those of the arguments, without object and selector.
	Types string
	// Static: it is a class method.
	Static bool
	// Since is the version of macOS that brought it, if that is later than 14, the oldest that this
	// module supports: ask the receiver, by [Responds], before you send it. 0: no later than 14.
	Since int

	sel uintptr // registered by Load
}

// Table has every method.
var Table []*Method

func method(class, selector, types string) *Method {
	m := &Method{Class: class, Selector: selector, Types: types}
	Table = append(Table, m)
	return m
}

func static(class, selector, types string) *Method {
	m := method(class, selector, types)
	m.Static = true
	return m
}

func since(version int, class, selector, types string) *Method {
	m := method(class, selector, types)
	m.Since = version
	return m
}

// Result is the kind of the result.
func (m *Method) Result() Kind { return Kind(m.Types[0]) }

// Args are the kinds of the arguments.
func (m *Method) Args() []Kind { return []Kind(m.Types[1:]) }

// Registers is the number of registers that object, selector and arguments take.
func (m *Method) Registers() int {
	n := 2
	for _, k := range m.Args() {
		n++
		if k == Range {
			n++
		}
	}
	return n
}

// Owned reports whether the caller owns the object that the method returns.
func (m *Method) Owned() bool {
	if m.Result() != Object {
		return false
	}
	for _, family := range []string{"alloc", "new", "copy", "mutableCopy"} {
		// The name is the family's name, or goes on with no lower-case letter: "newest" is not of family new.
		if rest, ok := strings.CutPrefix(m.Selector, family); ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			return true
		}
	}
	return m.Selector == "init" // it returns the object of alloc, which the caller owns
}

// String is the method in Objective-C's notation: "-[MTLDevice newBufferWithLength:options:]".
func (m *Method) String() string {
	sign := "-"
	if m.Static {
		sign = "+"
	}
	return fmt.Sprintf("%s[%s %s]", sign, m.Class, m.Selector)
}
