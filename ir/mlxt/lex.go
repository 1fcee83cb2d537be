package mlxt

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokBad              // no token begins so; lexer.problem says why
	tokIdent            // name of letters, digits, '_', '.', '-'
	tokNumber           // begins with a digit
	tokString           // "…", as in Go
	tokMemory           // %name, %"name"
	tokKernel           // @name
	tokParam            // $name
	tokID               // #12
	tokPunct            // one of {}[]():;,=+-*, or -> or <=
)

// token is a piece of the source; text includes quotes and sigils.
type token struct {
	kind    tokenKind
	escaped bool // a string or quoted name holds a backslash
	text    []byte
	offset  int
	line    int32
	col     int32
}

// is reports whether t is the punctuation or word s.
func (t *token) is(s string) bool {
	return (t.kind == tokPunct || t.kind == tokIdent) && string(t.text) == s
}

// describe returns t for an error message, shortened.
func (t token) describe() string {
	const most = 40
	text, dots := t.text, ""
	if len(text) > most {
		n := most
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text, dots = text[:n], "…"
	}
	switch t.kind {
	case tokEOF:
		return "end of file"
	case tokString:
		return fmt.Sprintf("string %s%s", printable(text), dots)
	}
	return fmt.Sprintf("'%s%s'", printable(text), dots)
}

// printable escapes the characters of s that would garble a terminal.
func printable(s []byte) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		s = s[n:]
	}
	return b.String()
}

// lexer splits the source into tokens. It is a value, so that a copy of it is a position to return
// to.
type lexer struct {
	src     []byte
	offset  int
	line    int32
	start   int    // offset of the line's first byte
	problem string // of the last token, if its kind is tokBad
}

var sigils = [...]tokenKind{'%': tokMemory, '@': tokKernel, '$': tokParam}

// class is a set of bits that say which tokens a byte may be part of.
type class uint8

const (
	letter class = 1 << iota // or _
	decimal
	inName // letter, decimal, '.', '-'
	punct  // a token of one byte
)

var classes = func() (t [256]class) {
	set := func(bytes string, c class) {
		for _, b := range []byte(bytes) {
			t[b] |= c
		}
	}
	const letters, digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", "0123456789"
	set(letters, letter)
	set(digits, decimal)
	set(letters+digits+".-", inName)
	set("{}[]():;,=+-*", punct)
	return t
}()

func nameStart(c byte) bool { return classes[c]&letter != 0 }
func nameByte(c byte) bool  { return classes[c]&inName != 0 }
func digit(c byte) bool     { return classes[c]&decimal != 0 }

// next sets t to the token at the current place and moves past it.
func (l *lexer) next(t *token) {
	l.skip()
	t.kind, t.escaped, t.text = tokEOF, false, nil
	t.offset, t.line, t.col = l.offset, l.line, int32(l.offset-l.start)+1
	if l.offset >= len(l.src) {
		return
	}
	rest := l.src[l.offset:]
	n := 1
	switch c := rest[0]; {
	case nameStart(c):
		t.kind = tokIdent
		n = nameLen(rest)
	case digit(c):
		t.kind = tokNumber
		n = numberLen(rest)
	case c == '"':
		t.kind = tokString
		n = l.stringLen(t, rest)
	case c == '%' || c == '@' || c == '$':
		t.kind = sigils[c]
		switch {
		case len(rest) > 1 && rest[1] == '"':
			n = 1 + l.stringLen(t, rest[1:])
		case len(rest) > 1 && nameStart(rest[1]):
			n = 1 + nameLen(rest[1:])
		default:
			l.bad(t, "a name follows "+string(c)+"; quote it unless it begins with a letter or _")
		}
	case c == '#':
		t.kind = tokID
		for n < len(rest) && digit(rest[n]) {
			n++
		}
		if n == 1 {
			l.bad(t, "a number follows #")
		}
	case c == '-' && len(rest) > 1 && rest[1] == '>', c == '<' && len(rest) > 1 && rest[1] == '=':
		t.kind = tokPunct
		n = 2
	case classes[c]&punct != 0:
		t.kind = tokPunct
	default:
		l.bad(t, "no token begins so")
		_, n = utf8.DecodeRune(rest)
	}
	t.text = rest[:n]
	l.offset += n
}

func (l *lexer) bad(t *token, problem string) {
	t.kind, l.problem = tokBad, problem
}

// skip moves past white space and comments.
func (l *lexer) skip() {
	for l.offset < len(l.src) {
		switch c := l.src[l.offset]; {
		case c == '\n':
			l.offset++
			l.line++
			l.start = l.offset
		case c == ' ' || c == '\t' || c == '\r':
			l.offset++
		case c == '/' && l.offset+1 < len(l.src) && l.src[l.offset+1] == '/':
			n := bytes.IndexByte(l.src[l.offset:], '\n')
			if n < 0 {
				n = len(l.src) - l.offset
			}
			l.offset += n
		default:
			return
		}
	}
}

func nameLen(s []byte) int {
	n := 1
	for n < len(s) && nameByte(s[n]) {
		// "->" after a name is an arrow, not the name's last byte.
		if s[n] == '-' && n+1 < len(s) && s[n+1] == '>' {
			break
		}
		n++
	}
	return n
}

// numberLen returns the length of a number. It includes letters, so that a misspelt number is one
// token, and the sign of a decimal exponent.
func numberLen(s []byte) int {
	n := 1
	hex := len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x'
	for ; n < len(s); n++ {
		sign := (s[n] == '+' || s[n] == '-') && s[n-1]|0x20 == 'e' && !hex
		if !sign && !nameStart(s[n]) && !digit(s[n]) && s[n] != '.' {
			break
		}
	}
	return n
}

func (l *lexer) stringLen(t *token, s []byte) int {
	n := 1
	for n < len(s) {
		switch s[n] {
		case '"':
			if !utf8.Valid(s[:n]) {
				l.bad(t, `string is no UTF-8; write the bytes as \x…`)
			}
			return n + 1
		case '\n':
			l.bad(t, "string does not end on its line")
			return n
		case '\\':
			t.escaped = true
			n++
		}
		n++
	}
	l.bad(t, "string does not end")
	return len(s)
}
