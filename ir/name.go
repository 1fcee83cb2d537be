package ir

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// QuoteName writes a name as the text form does: bare where it is made of
// ASCII letters, digits, '_', '.' and '-' and begins with a letter or '_',
// quoted as in Go otherwise.
func QuoteName(s string) string {
	if s == "" {
		return `""`
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '.' || c == '-')) {
			return strconv.Quote(s)
		}
	}
	return s
}

// validName: names are non-empty, printable UTF-8 of at most 255 bytes.
func validName(s string) bool {
	if s == "" || len(s) > 255 || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r >= 0x7f && !unicode.IsPrint(r) || r < 0x20 {
			return false
		}
	}
	return true
}

// validTerm: the text of a generated kernel is printable ASCII, as long as need be.
func validTerm(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= MaxFunction
}

// validLabel: labels may be empty and long.
func validLabel(s string) bool { return s == "" || len(s) <= 4096 && utf8.ValidString(s) }

// shown is how many bytes of a long name a message shows.
const shown = 120

// Shorten returns a name for a message. Of a long one, such as the term of a generated kernel,
// it returns the beginning.
func Shorten(name string) string {
	if len(name) <= shown+len("…") {
		return name
	}
	end := shown
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
