package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Quote returns a path or name for a message: unchanged if it is plain, quoted if it
// has characters that could be mistaken for something else.
func Quote(s string) string {
	if s == "" || strings.ContainsAny(s, "\n\t\r") || Escape(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// Escape makes text from a file or a path safe for a terminal. It writes as \x1b or
// \u009b: control characters other than line ends and tabs, characters that change the
// direction of writing, and bytes that are not UTF-8.
func Escape(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			out, _ := appendEscaped(append(make([]byte, 0, len(s)+16), s[:i]...), []byte(s[i:]), true)
			return string(out)
		}
	}
	return s
}

// plainByte reports whether c needs no escape.
func plainByte(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\t' }

// appendEscaped appends the escaped p to b. Unless all is set, it leaves an incomplete
// character at the end of p and returns it as rest.
func appendEscaped(b, p []byte, all bool) (out, rest []byte) {
	for len(p) > 0 {
		n := 0
		for n < len(p) && plainByte(p[n]) {
			n++
		}
		if n > 0 {
			b, p = append(b, p[:n]...), p[n:]
			continue
		}
		c := p[0]
		switch {
		case c < ' ':
			b = fmt.Appendf(b, `\x%02x`, c)
			p = p[1:]
			continue
		case c == 0x7f:
			b = append(b, `\u007f`...)
			p = p[1:]
			continue
		}
		if !all && !utf8.FullRune(p) {
			return b, p
		}
		r, size := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && size == 1:
			b = fmt.Appendf(b, `\x%02x`, c)
		case r < 0xa0, r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, p[:size]...)
		}
		p = p[size:]
	}
	return b, nil
}

// Screen is standard output or standard error. It escapes what is written to it,
// because that is for people. What a program must get unchanged goes to [Env.Raw].
type Screen struct {
	w     io.Writer
	width int // columns; 0: it is no terminal
	buf   []byte
	rest  []byte // an incomplete character
}

// NewScreen returns a screen that is width columns wide; 0 means that it is no
// terminal.
func NewScreen(w io.Writer, width int) *Screen { return &Screen{w: w, width: width} }

// Width returns the width of the terminal in columns, 0 if there is none.
func (s *Screen) Width() int { return s.width }

// Write implements [io.Writer].
func (s *Screen) Write(p []byte) (int, error) { return len(p), s.write(p, false) }

// Close writes an incomplete character that is left, as escaped bytes.
func (s *Screen) Close() error { return s.write(nil, true) }

func (s *Screen) write(p []byte, all bool) error {
	if len(s.rest) > 0 {
		p = append(s.rest, p...)
	}
	var rest []byte
	s.buf, rest = appendEscaped(s.buf[:0], p, all)
	s.rest = append([]byte(nil), rest...)
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.w.Write(s.buf)
	if cap(s.buf) > 1<<20 {
		s.buf = nil
	}
	return err
}
