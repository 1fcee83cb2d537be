//go:build linux

package fakemetal

// Alteration is how a message arrives otherwise than it was sent.
type Alteration int

// The alterations, as enum how has them.
const (
	Drop   Alteration = 1 + iota // it does not arrive; its result is nil
	Add                          // By is added to argument Arg
	Set                          // argument Arg is By: 0 is nil
	Before                       // argument Arg is what it was in an earlier message, where it was another one
	Size                         // of the MTLSize that argument Arg is, By is added to extent At
	Bytes                        // of the bytes that argument Arg points to, By is added to number At
	Omit                         // of the list that argument Arg is, and whose length follows, object At is left out
	Twice                        // it arrives twice
	Rename                       // it arrives as As
)

var alterations = [...]string{"", "drop", "add", "set", "before", "size", "bytes", "omit", "twice", "rename"}

func (a Alteration) String() string { return alterations[a] }

// Mishearing is a message that arrives otherwise than it was sent: what a program that sends the wrong
// message would be taken for. The functions objc_retain and objc_release are messages too, which can be
// dropped, or arrive twice.
type Mishearing struct {
	Class    string // of the receiver, or above it; "": any
	Selector string
	Nth      int // of these messages, from 1; 0: every one
	How      Alteration
	Arg      int // from 0, behind the receiver and the selector
	At, By   int
	As       string
}

// Mishear has a message arrive otherwise from now on, in place of another one that did.
func (m *Metal) Mishear(x Mishearing) {
	m.library.mishear(x.Class, x.Selector, x.Nth, int(x.How), x.Arg, x.At, x.By, x.As)
}

// Misheard is how many messages were altered since [Metal.Mishear] was called. Where it is 0 nothing was
// wrong.
func (m *Metal) Misheard() int { return m.library.misheard() }

// Heard is how many messages with a selector objects of a class have got.
type Heard struct {
	Class, Selector string
	Count           int
}

// Count begins to count messages. [Metal.Counted] ends that, and returns how many there were, in the order
// of their first.
func (m *Metal) Count() { m.library.count() }

// Counted is what [Metal.Count] has counted.
func (m *Metal) Counted() (out []Heard) {
	for i := 0; ; i++ {
		class := m.library.countedClass(i)
		if class == "" {
			return out
		}
		out = append(out, Heard{class, m.library.countedSelector(i), m.library.counted(i)})
	}
}
