package msl

import "strings"

// scanned is a source as the preprocessor's tokens, but that ## is two, and lines for the preprocessor
// are one each.
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

// scan returns false if a comment, a text or a line does not end, or is of a kind that is not known
// here.
func scan(source string) (s scanned, ok bool) {
	s.source = source
	fresh := true // nothing but spaces stands before on the line
	for i := 0; i < len(source); {
		c := source[i]
		from := i
		switch {
		case c == '\n':
			fresh = true
			i++
			continue
		case c == '\r': // it would stand between what continues a line and its end
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
			if i < len(source) && source[i] == '"' { // R"(…)" has its own rules, and so have prefixes
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

// punctuators are those of more than one character, the longest first.
var punctuators = []string{
	"...", "<<=", ">>=", "->*", "::", "->", ".*", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
	"+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=",
}

// punctuator is the length of what a text begins with.
func punctuator(s string) int {
	for _, p := range punctuators {
		if strings.HasPrefix(s, p) {
			return len(p)
		}
	}
	return 1
}

// comment returns where a comment ends, −1 if it does not.
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

// lineEnd returns where a line ends, with those that continue it.
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
			directive = false // the rest is a comment
		default:
			i++
		}
	}
	return i
}

// quoted returns where a text in quotes ends, −1 if it does not on its line.
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
