package ir

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// QuoteName writes a name as texts do. A name of ASCII letters, digits, '_', '.' and '-' that
// begins with a letter or '_' stays as it is; any other is quoted as in Go.
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

// validName reports whether s is a name: non-empty, printable UTF-8 of at most 255 bytes.
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

// validTerm reports whether s may be the text of a generated kernel: printable ASCII of any length
// up to MaxFunction.
func validTerm(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= MaxFunction
}

// validLabel reports whether s is a label: UTF-8 of at most 4096 bytes, which may be empty.
func validLabel(s string) bool { return s == "" || len(s) <= 4096 && utf8.ValidString(s) }

// shown is the number of bytes of a long name that a message shows.
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
