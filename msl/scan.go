package msl

import "strings"

// scanned is a source as tokens of the preprocessor. Unlike there, ## is two tokens, and a
// preprocessor line is one.
type scanned struct {
	source string
	tokens []token
}

type token struct {
	from, to  int
	directive bool
}

func (s *scanned) text(i int) string { return s.source[s.tokens[i].from:s.tokens[i].to] }

func (s *scanned) texts(from, to int) []string {
	out := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, s.text(i))
	}
	return out
}

// scan splits a source into tokens. ok is false if a comment, a literal or a line does not end, or is
// of an unknown kind.
func scan(source string) (s scanned, ok bool) {
	s.source = source
	fresh := true // only spaces stand before it on the line
	for i := 0; i < len(source); {
		c := source[i]
		from := i
		switch {
		case c == '\n':
			fresh = true
			i++
			continue
		case c == '\r': // it would stand between a backslash and the end of the line that the backslash continues
			return s, false
		case c == ' ' || c == '\t' || c == '\f' || c == '\v':
			i++
			continue
		case c == '\\' && strings.HasPrefix(source[i:], "\\\n"):
			i += 2
			continue
		case strings.HasPrefix(source[i:], "//") || strings.HasPrefix(source[i:], "/*"):
			if i = comment(source, i); i < 0 {
				return s, false
			}
			continue
		case c == '#' && fresh:
			if i = lineEnd(source, i); i < 0 {
				return s, false
			}
			s.tokens = append(s.tokens, token{from, i, true})
			continue
		case c == '"' || c == '\'':
			if i = quoted(source, i); i < 0 {
				return s, false
			}
		case number(source[i:]):
			for i++; i < len(source) && (word(source[i]) || source[i] == '\'' || source[i] == '.' ||
				(source[i] == '+' || source[i] == '-') && strings.IndexByte("eEpP", source[i-1]) >= 0); {
				i++
			}
		case word(c):
			for i < len(source) && word(source[i]) {
				i++
			}
			if i < len(source) && source[i] == '"' { // raw strings R"(…)" and prefixed strings have rules of their own
				return s, false
			}
		default:
			i += punctuator(source[i:])
		}
		fresh = false
		s.tokens = append(s.tokens, token{from: from, to: i})
	}
	return s, true
}

func word(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// number reports whether a text begins with a number.
func number(s string) bool {
	if s[0] == '.' && len(s) > 1 {
		s = s[1:]
	}
	return '0' <= s[0] && s[0] <= '9'
}

// punctuators are the punctuators of several characters, the longest first.
var punctuators = []string{
	"...", "<<=", ">>=", "->*", "::", "->", ".*", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
	"+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=",
}

// punctuator returns the length of the punctuator with which s begins.
func punctuator(s string) int {
	for _, p := range punctuators {
		if strings.HasPrefix(s, p) {
			return len(p)
		}
	}
	return 1
}

// comment returns where the comment at i ends, or −1 if it does not end.
func comment(source string, i int) int {
	if source[i+1] == '*' {
		end := strings.Index(source[i+2:], "*/")
		if end < 0 {
			return -1
		}
		return i + 2 + end + 2
	}
	return lineEnd(source, i)
}

// lineEnd returns where a line ends, including the lines that continue it.
func lineEnd(source string, i int) int {
	directive := source[i] == '#'
	for i < len(source) && source[i] != '\n' {
		switch {
		case source[i] == '\\' && strings.HasPrefix(source[i:], "\\\n"):
			i += 2
		case directive && strings.HasPrefix(source[i:], "/*"):
			if i = comment(source, i); i < 0 {
				return -1
			}
		case directive && strings.HasPrefix(source[i:], "//"):
			directive = false // the rest of the line is a comment
		default:
			i++
		}
	}
	return i
}

// quoted returns where the string at i ends, or −1 if it does not end on its line.
func quoted(source string, i int) int {
	for q := source[i]; ; {
		i++
		if i >= len(source) || source[i] == '\n' {
			return -1
		}
		switch source[i] {
		case '\\':
			i++
		case q:
			return i + 1
		}
	}
}
