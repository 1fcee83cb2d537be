package chat

import (
	"errors"
	"strings"
)

// gonja knows "a if c else b" only as the whole of a {{ }} or a {% set %};
// within brackets it takes "if" and "else" for names. rewrite turns every one
// into
//
//	((c) and [a] or [b])[0]
//
// which is the same because a list of one element counts as true and because
// and, or evaluate their right side only when it is needed. Without an else, b
// is none.
//
// body is the inside of a tag. In blocks other than set, an "if" outside
// brackets belongs to the tag itself and stays.
func rewrite(body, open string) (string, error) {
	top := open == "{{" || strings.HasPrefix(strings.TrimLeftFunc(body, isSpace), "set")
	r := rewriter{in: body}
	return r.group(0, top)
}

type rewriter struct {
	in  string
	pos int
}

// segment is what lies between two separators: text, cut at if and else.
type segment struct {
	parts []string // one more than words
	words []string // "if" or "else"
}

// group copies up to the closing bracket (0: to the end), rewriting conditionals
// when wanted.
func (r *rewriter) group(close byte, wanted bool) (string, error) {
	var out strings.Builder
	seg := segment{parts: []string{""}}
	flush := func() {
		if wanted {
			out.WriteString(seg.expression())
		} else {
			out.WriteString(seg.verbatim())
		}
		seg = segment{parts: []string{""}}
	}
	add := func(s string) { seg.parts[len(seg.parts)-1] += s }
	for r.pos < len(r.in) {
		c := r.in[r.pos]
		rest := r.in[r.pos:]
		switch {
		case c == close && close != 0:
			flush()
			return out.String(), nil
		case c == '\'' || c == '"':
			n := stringLen(rest) // scanner.tag has seen that it ends
			add(rest[:n])
			r.pos += n
		case c == '(' || c == '[' || c == '{':
			r.pos++
			closer := map[byte]byte{'(': ')', '[': ']', '{': '}'}[c]
			inner, err := r.group(closer, true)
			if err != nil {
				return "", err
			}
			if r.pos == len(r.in) {
				return "", errors.New("a bracket is not closed: " + string(c))
			}
			r.pos++
			add(string(c) + inner + string(closer))
		case c == ',' || c == ':' || c == '=' && !strings.HasPrefix(rest, "=="):
			flush()
			out.WriteByte(c)
			r.pos++
		case strings.IndexByte("=!<>", c) >= 0 && len(rest) > 1 && rest[1] == '=':
			add(rest[:2])
			r.pos += 2
		case isName(c):
			n := 1
			for n < len(rest) && isName(rest[n]) {
				n++
			}
			word := rest[:n]
			if word == "if" || word == "else" {
				seg.words = append(seg.words, word)
				seg.parts = append(seg.parts, "")
			} else {
				add(word)
			}
			r.pos += n
		default:
			add(rest[:1])
			r.pos++
		}
	}
	flush()
	return out.String(), nil
}

func isName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func (s segment) verbatim() string {
	out := s.parts[0]
	for i, w := range s.words {
		out += w + s.parts[i+1]
	}
	return out
}

// expression is the segment with its conditional rewritten: "a if c else b",
// where b may be one again.
func (s segment) expression() string {
	if len(s.words) == 0 || s.words[0] != "if" {
		return s.verbatim()
	}
	a, lead := s.parts[0], ""
	if i := strings.IndexFunc(a, func(r rune) bool { return !isSpace(r) }); i > 0 {
		lead, a = a[:i], a[i:]
	}
	c, b := s.parts[1], " none "
	switch {
	case len(s.words) > 1 && s.words[1] == "else":
		b = segment{parts: s.parts[2:], words: s.words[2:]}.expression()
	case len(s.words) > 1:
		return s.verbatim() // "a if b if c": gonja may say what it thinks of it
	}
	return lead + "((" + c + ") and [" + a + "] or [" + b + "])[0]"
}
