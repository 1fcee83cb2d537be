package npy

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// header is what the dictionary at the head of a file says.
type header struct {
	dtype     DType
	bigEndian bool
	fortran   bool // the first index runs fastest
	shape     []int
}

// A literal reads the one form of Python literal that a header has: a dictionary
// with keys descr (a string), fortran_order (True or False) and shape (a tuple of
// integers), each once, in any order. It runs over the text once, without
// recursion, and its errors are about the byte at next.
type literal struct {
	text []byte
	next int
}

func (l *literal) space() {
	for l.next < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.next]) >= 0 {
		l.next++
	}
}

// accept skips spaces, and then c if that is next; it reports whether it was.
func (l *literal) accept(c byte) bool {
	l.space()
	if l.next < len(l.text) && l.text[l.next] == c {
		l.next++
		return true
	}
	return false
}

func (l *literal) expect(c byte, where string) error {
	if !l.accept(c) {
		return fmt.Errorf("%s, want %q %s", l.found(), c, where)
	}
	return nil
}

// found describes what is next, for messages.
func (l *literal) found() string {
	if l.next >= len(l.text) {
		return "the header ends"
	}
	return fmt.Sprintf("found %q", l.text[l.next])
}

// parseHeader returns what text says. at is the byte of text that an error is about.
func parseHeader(text []byte) (h header, at int, err error) {
	l := &literal{text: text}
	fail := func(at int, err error) (header, int, error) { return header{}, at, err }
	if err := l.expect('{', "to begin the header"); err != nil {
		return fail(l.next, err)
	}
	seen := map[string]bool{}
	for !l.accept('}') {
		if len(seen) > 0 {
			if err := l.expect(',', "or '}' after a value"); err != nil {
				return fail(l.next, err)
			}
			if l.accept('}') {
				break
			}
		}
		l.space()
		keyAt := l.next
		key, err := l.string()
		if err != nil {
			return fail(l.next, err)
		}
		if seen[key] {
			return fail(keyAt, fmt.Errorf("key %q comes twice", key))
		}
		seen[key] = true
		if err := l.expect(':', "after a key"); err != nil {
			return fail(l.next, err)
		}
		l.space()
		valueAt := l.next
		switch key {
		case "descr":
			var s string
			if s, err = l.string(); err != nil {
				return fail(l.next, err)
			}
			if h.dtype, h.bigEndian, err = parseDescr(s); err != nil {
				return fail(valueAt, err)
			}
		case "fortran_order":
			if h.fortran, err = l.bool(); err != nil {
				return fail(l.next, err)
			}
		case "shape":
			if h.shape, err = l.tuple(); err != nil {
				return fail(l.next, err)
			}
		default:
			return fail(keyAt, fmt.Errorf("key %q is not one of descr, fortran_order and shape", key))
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return fail(l.next, fmt.Errorf("the header ends without %s", key))
		}
	}
	if l.space(); l.next < len(text) {
		return fail(l.next, fmt.Errorf("%s after the header's '}'", l.found()))
	}
	return h, 0, nil
}

// string reads a quoted string without escapes, which no valid key or type needs.
func (l *literal) string() (string, error) {
	if l.next >= len(l.text) || l.text[l.next] != '\'' && l.text[l.next] != '"' {
		if l.next < len(l.text) && (l.text[l.next] == '[' || l.text[l.next] == '(') {
			return "", fmt.Errorf("%s, want a string: structured types are not supported", l.found())
		}
		return "", fmt.Errorf("%s, want a string", l.found())
	}
	quote, start := l.text[l.next], l.next+1
	for l.next = start; l.next < len(l.text); l.next++ {
		switch c := l.text[l.next]; {
		case c == quote:
			l.next++
			return string(l.text[start : l.next-1]), nil
		case c == '\\' || c < ' ' || l.next-start >= 64:
			return "", fmt.Errorf("%s in a string, want at most 64 plain characters", l.found())
		}
	}
	return "", fmt.Errorf("%s within a string", l.found())
}

func (l *literal) bool() (bool, error) {
	for i, word := range []string{"False", "True"} {
		if bytes.HasPrefix(l.text[l.next:], []byte(word)) {
			l.next += len(word)
			return i == 1, nil
		}
	}
	return false, fmt.Errorf("%s, want True or False", l.found())
}

// tuple reads (), (1,), (1, 2) and (1, 2,); a single number needs its comma, as
// in Python.
func (l *literal) tuple() ([]int, error) {
	if err := l.expect('(', "to begin the shape"); err != nil {
		return nil, err
	}
	shape := []int{}
	for !l.accept(')') {
		if len(shape) > 0 {
			if err := l.expect(',', "in the shape"); err != nil {
				return nil, err
			}
			if l.accept(')') {
				return shape, nil
			}
		}
		if len(shape) == maxDims {
			return nil, fmt.Errorf("the shape has more than %d dimensions", maxDims)
		}
		n, err := l.integer()
		if err != nil {
			return nil, err
		}
		shape = append(shape, n)
		if l.space(); len(shape) == 1 && l.next < len(l.text) && l.text[l.next] == ')' {
			return nil, fmt.Errorf("found ')', want ',' after a single dimension")
		}
	}
	return shape, nil
}

// integer reads a dimension. Python 2 wrote an L after a long one.
func (l *literal) integer() (int, error) {
	l.space()
	start := l.next
	for l.next < len(l.text) && l.text[l.next] >= '0' && l.text[l.next] <= '9' {
		l.next++
	}
	digits := string(l.text[start:l.next])
	if digits == "" {
		return 0, fmt.Errorf("%s, want a dimension", l.found())
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > math.MaxInt || len(digits) > 1 && digits[0] == '0' {
		l.next = start
		if len(digits) > 24 {
			digits = digits[:24] + "…"
		}
		return 0, fmt.Errorf("dimension %s is not a number from 0 to %d", digits, math.MaxInt)
	}
	if l.next < len(l.text) && l.text[l.next] == 'L' {
		l.next++
	}
	return int(n), nil
}

// tuple prints a shape as Python does.
func tuple(shape []int) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, n := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	if len(shape) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}
