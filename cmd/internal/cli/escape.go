package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Quote returns a path or name as it may be printed: as it is if it is plain, in
// quotes if it has characters that could be taken for something else.
func Quote(s string) string {
	if s == "" || strings.ContainsAny(s, "\n\t\r") || Escape(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// Escape makes text from a file or a path safe for a terminal: control
// characters other than line ends and tabs, those that turn the direction of
// writing, and bytes that are no UTF-8 are written as \x1b or \u009b.
func Escape(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			out, _ := appendEscaped(append(make([]byte, 0, len(s)+16), s[:i]...), []byte(s[i:]), true)
			return string(out)
		}
	}
	return s
}

// plainByte reports whether c is a character that stands for itself.
func plainByte(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\t' }

// appendEscaped appends p, escaped, to b, and returns also what is left of p: the
// beginning of a character, unless all is set.
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

// Screen is standard output or standard error: what it is written is for people,
// and escaped. What a program must get unchanged goes to [Env.Raw].
type Screen struct {
	w     io.Writer
	width int // columns; 0: no terminal
	buf   []byte
	rest  []byte // the beginning of a character
}

// NewScreen returns a screen that is width columns wide; 0 for what is no
// terminal.
func NewScreen(w io.Writer, width int) *Screen { return &Screen{w: w, width: width} }

// Width is that of the terminal in columns, 0 if there is none.
func (s *Screen) Width() int { return s.width }

// Write implements [io.Writer].
func (s *Screen) Write(p []byte) (int, error) { return len(p), s.write(p, false) }

// Close writes what is left.
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
