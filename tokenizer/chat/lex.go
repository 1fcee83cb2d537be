package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	kindEnd     tokenKind = iota // the end of the template
	kindData                     // text between tags
	kindOutput                   // "{{"
	kindBlock                    // "{%"
	kindTagEnd                   // "}}" or "%}"
	kindName                     // a word
	kindString                   // text without quotes, escapes resolved
	kindInteger                  // digits
	kindFloat                    //
	kindSign                     // an operator or bracket
)

type token struct {
	kind tokenKind
	line int
	text string
}

// lexer cuts a template into tokens by the rules of Jinja's lexer, in one
// pass:
//
//   - a tag beginning with "{%-" (or "{{-", "{#-") removes all white space
//     before it, one ending with "-%}" all white space after it;
//   - trim_blocks: a block or comment removes one newline right after it;
//   - lstrip_blocks: a block or comment that only white space precedes on its
//     line removes that white space;
//   - "{%+" and "+%}" switch the last two off for one tag;
//   - \r\n and \r are newlines, and one newline at the end of the source is
//     dropped;
//   - "}}" and "%}" within brackets do not end the tag.
type lexer struct {
	in    string
	pos   int
	line  int  // of pos, from 1
	fresh bool // pos is at the start of a line, as Jinja sees it
	out   []token
	err   *Error
}

func lex(template string) ([]token, *Error) {
	in := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(template)
	l := &lexer{in: strings.TrimSuffix(in, "\n"), line: 1, fresh: true}
	for l.pos < len(l.in) && l.err == nil {
		l.next()
	}
	l.add(kindEnd, "")
	return l.out, l.err
}

func (l *lexer) add(k tokenKind, text string) {
	l.out = append(l.out, token{k, l.line, text})
}

func (l *lexer) fail(line int, format string, args ...any) {
	if l.err == nil {
		l.err = &Error{Line: line, Reason: fmt.Sprintf(format, args...)}
	}
}

// advance skips n bytes of the input.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.in[l.pos:l.pos+n], "\n")
	l.pos += n
}

// next reads the text up to the next tag, and then that tag.
func (l *lexer) next() {
	rest := l.in[l.pos:]
	n := nextTag(rest)
	if n < 0 {
		l.data(rest)
		l.advance(len(rest))
		return
	}
	open := rest[n : n+2]
	sign := byte(0)
	if n+2 < len(rest) && (rest[n+2] == '-' || rest[n+2] == '+') {
		sign = rest[n+2]
	}
	if length, after := rawStart(rest[n:]); length > 0 {
		l.data(l.lstrip(rest[:n], open, sign))
		l.advance(n)
		at := l.line
		l.advance(length)
		l.rstrip(after, false)
		l.raw(at)
		return
	}
	l.data(l.lstrip(rest[:n], open, sign))
	l.advance(n)
	at := l.line
	switch {
	case open == "{#":
		l.advance(2)
		l.comment(at)
	case open == "{{":
		l.add(kindOutput, open)
		l.advance(2)
		if sign != 0 {
			l.advance(1)
		}
		l.tag("}}", at)
	default:
		l.add(kindBlock, open)
		l.advance(2)
		if sign != 0 {
			l.advance(1)
		}
		l.tag("%}", at)
	}
}

// nextTag returns the index of the first "{{", "{%" or "{#".
func nextTag(s string) int {
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '{')
		if i < 0 || at+i+1 >= len(s) {
			return -1
		}
		at += i
		if c := s[at+1]; c == '{' || c == '%' || c == '#' {
			return at
		}
		at++
	}
}

// rawStart returns the length of a "{% raw %}" at the beginning of s, without what its
// end removes, and the sign before its end. It returns 0 if there is none.
func rawStart(s string) (int, byte) {
	after, ok := strings.CutPrefix(s, "{%")
	if !ok {
		return 0, 0
	}
	if after != "" && (after[0] == '-' || after[0] == '+') {
		after = after[1:]
	}
	after, ok = strings.CutPrefix(strings.TrimLeftFunc(after, isSpace), "raw")
	if !ok {
		return 0, 0
	}
	after = strings.TrimLeftFunc(after, isSpace)
	sign := byte(0)
	if strings.HasPrefix(after, "-") {
		sign, after = '-', after[1:]
	}
	after, ok = strings.CutPrefix(after, "%}")
	if !ok {
		return 0, 0
	}
	return len(s) - len(after), sign
}

// lstrip returns the text before a tag, without the white space that the tag removes.
func (l *lexer) lstrip(data, open string, sign byte) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(data, isSpace)
	case sign == '+' || open == "{{":
		return data
	}
	start := strings.LastIndexByte(data, '\n') + 1
	if start == 0 && !l.fresh {
		return data
	}
	if strings.TrimLeftFunc(data[start:], isSpace) == "" {
		return data[:start]
	}
	return data
}

// isSpace reports whether Python's \s and str.strip take r for white space.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// rstrip skips the white space that the end of a tag with this sign removes.
func (l *lexer) rstrip(sign byte, block bool) {
	rest := l.in[l.pos:]
	n := 0
	switch {
	case sign == '-':
		n = len(rest) - len(strings.TrimLeftFunc(rest, isSpace))
	case block && sign == 0 && strings.HasPrefix(rest, "\n"):
		n = 1
	}
	l.advance(n)
	l.fresh = n > 0 && rest[n-1] == '\n'
}

func (l *lexer) data(text string) {
	if text != "" {
		l.add(kindData, text)
		l.fresh = false
	}
}

func (l *lexer) comment(at int) {
	n := strings.Index(l.in[l.pos:], "#}")
	if n < 0 {
		l.fail(at, `the comment "{#" that starts here has no closing "#}"`)
		return
	}
	sign := byte(0)
	if n > 0 {
		if c := l.in[l.pos+n-1]; c == '-' || c == '+' {
			sign = c
		}
	}
	l.advance(n + 2)
	l.rstrip(sign, true)
}

// raw reads text up to {% endraw %}, which follows the rules for tags.
func (l *lexer) raw(at int) {
	rest := l.in[l.pos:]
	for i := 0; i < len(rest); i++ {
		n := strings.Index(rest[i:], "{%")
		if n < 0 {
			break
		}
		i += n
		after, sign := rest[i+2:], byte(0)
		if after != "" && (after[0] == '-' || after[0] == '+') {
			sign, after = after[0], after[1:]
		}
		after, ok := strings.CutPrefix(strings.TrimLeftFunc(after, isSpace), "endraw")
		if !ok {
			i = max(i, len(rest)-len(after)-1) // the white space need not be searched again
			continue
		}
		after = strings.TrimLeftFunc(after, isSpace)
		end := byte(0)
		if after != "" && (after[0] == '-' || after[0] == '+') {
			end, after = after[0], after[1:]
		}
		if after, ok = strings.CutPrefix(after, "%}"); !ok {
			continue
		}
		l.data(l.lstrip(rest[:i], "{%", sign))
		l.advance(len(rest) - len(after))
		l.rstrip(end, true)
		return
	}
	l.fail(at, `the "{%% raw %%}" that starts here has no "{%% endraw %%}"`)
}

// signs are Jinja's operators, the longer ones first.
var signs = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// tag reads the tokens of a tag that began in line `at`.
func (l *lexer) tag(close string, at int) {
	var open []byte // brackets
	for l.err == nil {
		for l.pos < len(l.in) {
			r, n := utf8.DecodeRuneInString(l.in[l.pos:])
			if !isSpace(r) {
				break
			}
			l.advance(n)
		}
		rest := l.in[l.pos:]
		if rest == "" {
			l.fail(at, "the tag that starts here has no closing %q", close)
			return
		}
		if len(open) == 0 {
			end, sign := rest, byte(0)
			if end[0] == '-' || end[0] == '+' && close == "%}" {
				sign, end = end[0], end[1:]
			}
			if strings.HasPrefix(end, close) {
				l.add(kindTagEnd, close)
				l.advance(len(rest) - len(end) + 2)
				l.rstrip(sign, close == "%}")
				return
			}
		}
		switch c := rest[0]; {
		case c >= '0' && c <= '9':
			l.number(rest)
		case c == '\'' || c == '"':
			l.string(rest)
		case isName(c):
			n := 1
			for n < len(rest) && isName(rest[n]) {
				n++
			}
			for _, r := range rest[:n] {
				if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
					l.fail(l.line, "unexpected character %q", r)
					return
				}
			}
			l.add(kindName, rest[:n])
			l.advance(n)
		default:
			sign := ""
			for _, s := range signs {
				if strings.HasPrefix(rest, s) {
					sign = s
					break
				}
			}
			switch sign {
			case "":
				r, _ := utf8.DecodeRuneInString(rest)
				l.fail(l.line, "unexpected character %q", r)
				return
			case "(", "[", "{":
				if open = append(open, sign[0]); len(open) > maxDepth {
					l.fail(l.line, "brackets are nested deeper than %d", maxDepth)
					return
				}
			case ")", "]", "}":
				want := map[string]byte{")": '(', "]": '[', "}": '{'}[sign]
				if len(open) == 0 || open[len(open)-1] != want {
					l.fail(l.line, "unexpected %q", sign)
					return
				}
				open = open[:len(open)-1]
			}
			l.add(kindSign, sign)
			l.advance(len(sign))
		}
	}
}

func isName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func decimal(c byte) bool { return c >= '0' && c <= '9' }

// number reads digits, with a decimal point perhaps. After a dot, x.1.2 is two subscripts.
func (l *lexer) number(s string) {
	n := 0
	for n < len(s) && decimal(s[n]) {
		n++
	}
	kind := kindInteger
	if n+1 < len(s) && s[n] == '.' && decimal(s[n+1]) && (l.pos == 0 || l.in[l.pos-1] != '.') {
		kind = kindFloat
		for n++; n < len(s) && decimal(s[n]); {
			n++
		}
	}
	text := s[:n]
	if n < len(s) && isName(s[n]) || kind == kindInteger && n > 1 && text[0] == '0' {
		l.fail(l.line, "numbers such as %.40q are not supported: only digits and a decimal point", s[:min(n+1, len(s))])
		return
	}
	_, err := strconv.ParseInt(text, 10, 64)
	if kind == kindFloat {
		_, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		l.fail(l.line, "the number %.40s is not supported: it is beyond 64 bits", text)
		return
	}
	l.add(kind, text)
	l.advance(n)
}

func (l *lexer) string(s string) {
	n := 1
	for n < len(s) && s[n] != s[0] {
		if s[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(s) {
		l.fail(l.line, "the string that starts here has no closing %c", s[0])
		return
	}
	text, err := unescape(s[1:n])
	if err != nil {
		l.fail(l.line, "%v", err)
		return
	}
	l.add(kindString, text)
	l.advance(n + 1)
}

// unescape resolves the escapes of a Python string literal. Anything that is no escape
// stays as it is.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++ // a backslash is never the last character: it would hide the closing quote
		c := s[i]
		if at := strings.IndexByte(`abfnrtv\'"`, c); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[at])
			continue
		}
		switch {
		case c == '\n':
		case c == 'x' || c == 'u' || c == 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+n >= len(s) {
				return "", fmt.Errorf("the escape \\%c wants %d digits", c, n)
			}
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil || v > unicode.MaxRune || v >= 0xd800 && v < 0xe000 {
				return "", fmt.Errorf("the escape \\%s names no character that is supported", s[i:i+1+n])
			}
			b.WriteRune(rune(v))
			i += n
		case c == 'N' || decimal(c) && c < '8':
			return "", fmt.Errorf(`the escape \%c is not supported`, c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
