package objc

import (
	"fmt"
	"strings"
)

// ID is an object, or nil (0). It is no Go pointer: the object is counted, not collected.
type ID uintptr

// Kind is what an argument or a result is, by the letter that Objective-C's type encodings have
// for it or, where theirs is no letter, by one of our own.
type Kind byte

// The kinds.
const (
	Void    Kind = 'v'
	Object  Kind = '@'
	SEL     Kind = ':'
	Integer Kind = 'Q' // NSUInteger, NSInteger, uint64_t, an enumeration
	Bool    Kind = 'B' // of the result the low 8 bits alone are defined
	Double  Kind = 'd' // as a result alone
	CString Kind = '*'
	Pointer Kind = '^'
	Block   Kind = '?'
	Range   Kind = 'R' // NSRange: location and length, two registers
	Struct  Kind = 'S' // MTLSize, MTLRegion: a pointer to a copy
)

// Method is a message that can be sent. Methods are made by the table alone.
type Method struct {
	Class    string // the class or protocol that declares it: "MTLDevice"
	Selector string // "newBufferWithLength:options:"
	// Types are the kinds of the result and of the arguments, without object and selector.
	Types string
	// Static: it is sent to the class.
	Static bool
	// Since is the version of macOS that brought it, if that is later than 14, the oldest which
	// this module runs on. The receiver is asked before it is sent ([Responds]).
	Since int

	sel uintptr // registered by Load
}

// Table is every method, in the order of the files.
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

// Result is the kind of what the method returns.
func (m *Method) Result() Kind { return Kind(m.Types[0]) }

// Args are the kinds of the arguments.
func (m *Method) Args() []Kind { return []Kind(m.Types[1:]) }

// Registers is how many registers object, selector and arguments take.
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

// Owned reports whether what the method returns belongs to the caller.
func (m *Method) Owned() bool {
	if m.Result() != Object {
		return false
	}
	for _, family := range []string{"alloc", "new", "copy", "mutableCopy"} {
		// The name is the family's, or goes on with what is no small letter: "newest" is none.
		if rest, ok := strings.CutPrefix(m.Selector, family); ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			return true
		}
	}
	return m.Selector == "init" // what alloc gave is handed on
}

// String is how a header would have it: "-[MTLDevice newBufferWithLength:options:]".
func (m *Method) String() string {
	sign := "-"
	if m.Static {
		sign = "+"
	}
	return fmt.Sprintf("%s[%s %s]", sign, m.Class, m.Selector)
}
