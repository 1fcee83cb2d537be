package llvm

import "strings"

// Token is a part of a line: a word, a string, a name with its sigil, or a character.
type Token struct {
	Kind byte // 'w', '"', one of @ % # ! $, or the character itself
	Text string
}

// Tokens cuts a line. Comments are left out.
func Tokens(l string) (out []Token) {
	Counted(len(l))
	for i := 0; i < len(l); {
		switch c := l[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == ';':
			return out
		case c == '"':
			end := Closing(l, i)
			out = append(out, Token{'"', l[min(i+1, end):end]})
			i = end + 1
		case strings.IndexByte("@%#!$", c) >= 0:
			end := NameEnd(l, i)
			out = append(out, Token{c, strings.Trim(l[i+1:end], `"`)})
			i = end
		case nameByte(c):
			end := i
			for end < len(l) && nameByte(l[end]) {
				end++
			}
			out = append(out, Token{'w', l[i:end]})
			i = end
		default:
			out = append(out, Token{c, l[i : i+1]})
			i++
		}
	}
	return out
}

func nameByte(c byte) bool {
	return c == '.' || c == '_' || c == '-' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
