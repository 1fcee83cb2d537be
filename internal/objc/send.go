//go:build darwin || linux

package objc

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/ebitengine/purego"
)

// transitions counts calls from Go to C, messages the messages that were sent.
var transitions, messages atomic.Uint64

// Transitions returns how many calls from Go to C the process has made, for messages, pools, Retain and
// Release, and how many messages it has sent.
func Transitions() (calls, sent uint64) { return transitions.Load(), messages.Load() }

// Send sends a message and returns the result register. Pointers among the arguments must point outside of
// Go's memory, or be pinned by the caller. An argument of kind Range is two words of args. Of a Bool
// result only the low 8 bits are defined: see [Method.SendBool].
func (m *Method) Send(self ID, args ...uintptr) uintptr {
	var all [8]uintptr
	n := 2 + copy(all[2:], args)
	all[0], all[1] = uintptr(self), m.sel
	transitions.Add(1)
	messages.Add(1)
	r, _, _ := purego.SyscallN(c.msgSend, all[:n]...)
	return r
}

// SendBool sends a message that returns a BOOL, the low 8 bits of the result register.
func (m *Method) SendBool(self ID, args ...uintptr) bool { return m.Send(self, args...)&0xff != 0 }

// SendID sends a message that returns an object.
func (m *Method) SendID(self ID, args ...uintptr) ID { return ID(m.Send(self, args...)) }

// SendDouble sends a message without arguments that returns a double.
func (m *Method) SendDouble(self ID) float64 {
	transitions.Add(1)
	messages.Add(1)
	return c.sendDouble(uintptr(self), m.sel)
}

// Responds reports whether an object has a method. Ask before you send one that came after macOS 14
// ([Method.Since]): an unknown selector ends the process.
func Responds(o ID, m *Method) bool { return o != 0 && RespondsTo.SendBool(o, m.sel) }

// New makes an object of a class, which the caller releases; 0 if there is no such class.
func New(class string) ID {
	k := ClassNamed(class)
	if k == 0 {
		return 0
	}
	return Init.SendID(Alloc.SendID(k))
}

// withCString calls f with the address of s as a zero-terminated C string, which is valid until f
// returns. Pinned memory lies on the heap, where it does not move.
func withCString(s string, f func(text uintptr) uintptr) uintptr {
	text := append([]byte(s), 0)
	var pin runtime.Pinner
	pin.Pin(&text[0])
	defer pin.Unpin()
	return f(uintptr(unsafe.Pointer(&text[0])))
}

// String makes an NSString, which lives until the pool around the call ends. A zero byte ends the text,
// and bytes that are not UTF-8 become U+FFFD, since NSString cannot hold them. Call [Text] before
// where that would matter.
func String(s string) ID {
	s = strings.ToValidUTF8(s, "\uFFFD")
	class := ClassNamed("NSString")
	return ID(withCString(s, func(text uintptr) uintptr {
		return StringWithCString.Send(class, text, uintptr(UTF8StringEncoding))
	}))
}

// Text returns an error with the position of the first byte that an NSString could not hold.
func Text(s string) error {
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return fmt.Errorf("byte %d is no UTF-8 text, which macOS takes alone", i)
		}
	}
	return nil
}

// FileURL returns the NSURL of a file, which lives until the pool around the call ends.
func FileURL(path string) (ID, error) {
	if err := Text(path); err != nil {
		return 0, fmt.Errorf("the path %q: %w", path, err)
	}
	return FileURLWithPath.SendID(ClassNamed("NSURL"), uintptr(String(path))), nil
}

// GoString returns the text of an NSString, "" for nil.
func GoString(o ID) string {
	if o == 0 {
		return ""
	}
	return goString(UTF8String.Send(o))
}

// goString copies a C string.
func goString(p uintptr) string {
	if p == 0 {
		return ""
	}
	at := foreign[byte](p)
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(at), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(at, n))
}

// foreign converts the address of memory outside of Go to a pointer.
func foreign[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// Bytes returns n bytes of memory outside of Go, such as a buffer's contents, without a copy.
func Bytes(p uintptr, n int) []byte {
	if p == 0 {
		return nil
	}
	return unsafe.Slice(foreign[byte](p), n)
}

// Objects returns the elements of an NSArray.
func Objects(array ID) []ID {
	if array == 0 {
		return nil
	}
	out := make([]ID, Count.Send(array))
	for i := range out {
		out[i] = ObjectAtIndex.SendID(array, uintptr(i))
	}
	return out
}
