package msltree

import (
	"fmt"
	"strconv"
	"strings"
)

// TokenKind is the class of a token.
type TokenKind uint8

// The kinds.
const (
	Ident TokenKind = iota
	Number
	String
	Punct
)

// Token is a preprocessed token, with the text before it.
type Token struct {
	Kind TokenKind
	Text string
	Lead string // the white space and directives since the token before
	File string // as the preprocessor's line markers say
	Line int
}

// lex cuts the output of `clang -E` into tokens. tail is what follows the last one.
// Each ">" is a token of its own, so that "> >" and ">>" close templates alike.
func lex(src string) (toks []Token, tail string, err error) {
	file, line := "", 1
	i, start := 0, 0
	fresh := true // nothing but space stands before i on its line
	for {
		start = i
		for i < len(src) {
			switch c := src[i]; {
			case c == '\n':
				line++
				i++
				fresh = true
				continue
			case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
				i++
				continue
			case c == '#' && fresh:
				end := strings.IndexByte(src[i:], '\n')
				if end < 0 {
					end = len(src) - i
				}
				if f, n, ok := marker(src[i : i+end]); ok {
					file, line = f, n-1 // the newline after the marker counts too
				}
				i += end
				continue
			}
			break
		}
		lead := src[start:i]
		if i >= len(src) {
			return toks, lead, nil
		}
		fresh = false
		t := Token{Lead: lead, File: file, Line: line}
		at := i
		switch c := src[i]; {
		case letter(c):
			t.Kind = Ident
			for i < len(src) && (letter(src[i]) || digit(src[i])) {
				i++
			}
		case digit(c) || c == '.' && i+1 < len(src) && digit(src[i+1]):
			t.Kind = Number
			for i < len(src) && (letter(src[i]) || digit(src[i]) || src[i] == '.' || (src[i] == '+' || src[i] == '-') && strings.IndexByte("eEpP", src[i-1]) >= 0 && !strings.HasPrefix(src[at:], "0x")) {
				i++
			}
		case c == '"' || c == '\'':
			t.Kind = String
			i++
			for i < len(src) && src[i] != c {
				if src[i] == '\\' {
					i++
				}
				i++
			}
			if i >= len(src) {
				return nil, "", fmt.Errorf("%s:%d: a literal does not end", file, line)
			}
			i++
		default:
			t.Kind = Punct
			i++
			for _, p := range [...]string{"<<=", "...", "::", "->", "++", "--", "<<", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "!=", "<=", ">=", "=="} {
				if strings.HasPrefix(src[at:], p) {
					i = at + len(p)
					break
				}
			}
		}
		t.Text = src[at:i]
		toks = append(toks, t)
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// marker parses a line marker: # 12 "file" flags.
func marker(s string) (file string, line int, ok bool) {
	n, rest, ok := strings.Cut(strings.TrimPrefix(s, "# "), " ")
	if !ok {
		return "", 0, false
	}
	line, err := strconv.Atoi(n)
	if err != nil {
		return "", 0, false
	}
	end := strings.LastIndexByte(rest, '"')
	if end < 1 || rest[0] != '"' {
		return "", 0, false
	}
	return rest[1:end], line, true
}
