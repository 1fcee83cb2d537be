//go:build linux

package fakemetal

// Alteration is how a message is changed between its sender and its receiver.
type Alteration int

// The alterations, with the values of enum how in mishear.c.
const (
	Drop   Alteration = 1 + iota // it does not arrive; its result is nil
	Add                          // By is added to argument Arg
	Set                          // argument Arg becomes By: 0 is nil
	Before                       // argument Arg becomes the last other value that it had in such a message
	Size                         // By is added to extent At of the MTLSize in argument Arg
	Bytes                        // By is added to byte At of those that argument Arg points to
	Omit                         // object At is left out of the list in argument Arg, whose length is the next argument
	Twice                        // it arrives twice
	Rename                       // it arrives as As
)

// Mishearing is an alteration of a message, which makes the sender look like a program that sends a wrong
// message. The functions objc_retain and objc_release count as messages too; they can be dropped, or
// arrive twice.
type Mishearing struct {
	Class    string // of the receiver, or a superclass; "": any
	Selector string
	Nth      int // which of these messages, from 1; 0: every one
	How      Alteration
	Arg      int // the argument, from 0, without receiver and selector
	At, By   int
	As       string
}

// Mishear sets the alteration from now on, in place of an earlier one.
func (m *Metal) Mishear(x Mishearing) {
	m.library.mishear(x.Class, x.Selector, x.Nth, int(x.How), x.Arg, x.At, x.By, x.As)
}

// Misheard returns how many messages were altered since [Metal.Mishear] was called. If it is 0 the test has
// tried nothing.
func (m *Metal) Misheard() int { return m.library.misheard() }

// Heard is the number of messages with a selector that objects of a class have received.
type Heard struct {
	Class, Selector string
	Count           int
}

// Count begins to count messages by class and selector. [Metal.Counted] returns the counts, in the order of
// their first messages.
func (m *Metal) Count() { m.library.count() }

// Counted returns what was counted since [Metal.Count] was called.
func (m *Metal) Counted() (out []Heard) {
	for i := 0; ; i++ {
		class := m.library.countedClass(i)
		if class == "" {
			return out
		}
		out = append(out, Heard{class, m.library.countedSelector(i), m.library.counted(i)})
	}
}
