package chat

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// This file takes white space control away from gonja, whose lstrip_blocks also
// removes the space in "{{ a }} {% if b %}", a silent change of the prompt.
// applyWhitespace carries out the rules of Jinja's lexer on the source and
// leaves tags without - and + signs:
//
//   - a tag beginning with "{%-" (or "{{-", "{#-") removes all white space
//     before it, one ending with "-%}" all white space after it;
//   - trim_blocks: a block or comment removes one newline right after it;
//   - lstrip_blocks: a block or comment that only white space precedes on its
//     line removes that white space;
//   - "{%+" and "+%}" switch the last two off for one tag;
//   - \r\n and \r are newlines, and one newline at the end of the source is
//     dropped.
//
// Every tag stays in the line where it was, because errors name lines: removed
// newlines come back in a comment before the next tag.
func applyWhitespace(template string) (string, error) {
	in := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(template)
	s := &scanner{in: strings.TrimSuffix(in, "\n"), line: 1, outLine: 1, fresh: true}
	for s.pos < len(s.in) {
		if err := s.step(); err != nil {
			return "", err
		}
	}
	return s.out.String(), nil
}

type scanner struct {
	in      string
	pos     int
	line    int // of pos, from 1
	out     strings.Builder
	outLine int  // of the end of out, from 1; INVARIANT: not after line
	depth   int  // of blocks that are open
	brace   bool // the last byte written is a "{" of data
	fresh   bool // pos is at the start of a line, as Jinja sees it
}

// step copies the data up to the next tag, and that tag.
func (s *scanner) step() error {
	rest := s.in[s.pos:]
	n := nextTag(rest)
	if n < 0 {
		s.data(rest)
		s.advance(len(rest))
		return nil
	}
	data, open := rest[:n], rest[n:n+2]
	sign := byte(0)
	if n+2 < len(rest) && (rest[n+2] == '-' || rest[n+2] == '+' && open != "{{") {
		sign = rest[n+2]
	}
	s.data(s.lstrip(data, open, sign))
	s.advance(n)
	at := s.line
	s.advance(2)
	if sign != 0 {
		s.advance(1)
	}
	if open == "{#" {
		return s.comment(at)
	}
	body, err := s.tag(open, at)
	if err != nil {
		return err
	}
	if open == "{%" && isRaw(body) {
		return s.raw(at)
	}
	body, err = rewrite(body, open)
	if err != nil {
		return &Error{Line: at, Reason: err.Error(), Err: err}
	}
	if open == "{%" {
		name := blockName(body)
		switch {
		case strings.HasPrefix(name, "end"):
			s.depth--
		case slices.Contains(opening, name):
			s.depth++
		}
		if s.depth > maxDepth {
			return &Error{Line: at, Reason: fmt.Sprintf("blocks are nested deeper than %d", maxDepth)}
		}
		if name == "else" || name == "elif" || strings.HasPrefix(name, "end") {
			s.emit(open, at, body) // between two branches is no place for a mark
			return nil
		}
	}
	s.emit("{{", at, fmt.Sprintf("%s(%d)", lineMark, at))
	s.emit(open, at, body)
	return nil
}

// lineMark is a function that tells run which line is being rendered.
const lineMark = "__line"

// opening are the blocks that an end follows. (A set can have one too; then
// depth falls short of the truth by one.)
var opening = []string{"call", "filter", "for", "generation", "if", "macro", "with"}

// blockName is the first word of a block.
func blockName(body string) string {
	word := strings.TrimLeftFunc(body, isSpace)
	if i := strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
		word = word[:i]
	}
	return word
}

// nextTag is the place of the first "{{", "{%" or "{#".
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return -1
}

// lstrip is the data before a tag without what the tag removes.
func (s *scanner) lstrip(data, open string, sign byte) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(data, isSpace)
	case sign == '+' || open == "{{":
		return data
	}
	start := strings.LastIndexByte(data, '\n') + 1
	if start == 0 && !s.fresh {
		return data
	}
	if strings.TrimLeftFunc(data[start:], isSpace) == "" {
		return data[:start]
	}
	return data
}

// isSpace is \s and str.strip of Python.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// tag consumes a tag and what its end removes, and returns its inside. A bracket
// or a string hides the end of the tag.
func (s *scanner) tag(open string, at int) (string, error) {
	rest := s.in[s.pos:]
	close := "}}"
	if open == "{%" {
		close = "%}"
	}
	depth := 0
	for i := 0; i < len(rest); i++ {
		if depth == 0 {
			end, sign := rest[i:], byte(0)
			if len(end) > 0 && (end[0] == '-' || end[0] == '+' && open == "{%") {
				sign, end = end[0], end[1:]
			}
			if strings.HasPrefix(end, close) {
				body := rest[:i]
				s.advance(len(rest) - len(end) + 2)
				// Unlike every other block, {% raw %} keeps the newline after it.
				s.rstrip(sign, open == "{%" && !isRaw(body))
				return body, nil
			}
		}
		switch rest[i] {
		case '(', '[', '{':
			if depth++; depth > maxDepth {
				return "", &Error{Line: at, Reason: fmt.Sprintf("brackets are nested deeper than %d", maxDepth)}
			}
		case ')', ']', '}':
			depth = max(0, depth-1)
		case '\'', '"':
			n := stringLen(rest[i:])
			if n < 0 {
				return "", &Error{Line: at + strings.Count(rest[:i], "\n"), Reason: fmt.Sprintf("the string that starts here has no closing %c", rest[i])}
			}
			i += n - 1
		}
	}
	return "", &Error{Line: at, Reason: fmt.Sprintf("the tag %q that starts here has no closing %q", open, close)}
}

func isRaw(body string) bool { return strings.TrimFunc(body, isSpace) == "raw" }

// stringLen is the length of the quoted string at the start of s, or -1.
func stringLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return -1
}

// rstrip consumes what the end of a tag with that sign removes.
func (s *scanner) rstrip(sign byte, block bool) {
	rest := s.in[s.pos:]
	n := 0
	switch {
	case sign == '-':
		n = len(rest) - len(strings.TrimLeftFunc(rest, isSpace))
	case block && sign == 0 && strings.HasPrefix(rest, "\n"):
		n = 1
	}
	s.advance(n)
	s.fresh = n > 0 && rest[n-1] == '\n'
}

func (s *scanner) comment(at int) error {
	n := strings.Index(s.in[s.pos:], "#}")
	if n < 0 {
		return &Error{Line: at, Reason: `the comment "{#" that starts here has no closing "#}"`}
	}
	sign := byte(0)
	if n > 0 {
		if c := s.in[s.pos+n-1]; c == '-' || c == '+' {
			sign = c
		}
	}
	s.advance(n + 2)
	s.rstrip(sign, true)
	return nil
}

// raw copies up to {% endraw %}, which follows the rules for tags.
func (s *scanner) raw(at int) error {
	rest := s.in[s.pos:]
	for i := 0; i < len(rest); i++ {
		after, ok := strings.CutPrefix(rest[i:], "{%")
		if !ok {
			continue
		}
		sign := byte(0)
		if after != "" && (after[0] == '-' || after[0] == '+') {
			sign, after = after[0], after[1:]
		}
		after, ok = strings.CutPrefix(strings.TrimLeftFunc(after, isSpace), "endraw")
		if !ok {
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
		s.rawData(s.lstrip(rest[:i], "{%", sign))
		s.advance(len(rest) - len(after))
		s.rstrip(end, true)
		return nil
	}
	return &Error{Line: at, Reason: `the "{% raw %}" that starts here has no "{% endraw %}"`}
}

// advance moves over n bytes of the input.
func (s *scanner) advance(n int) {
	s.line += strings.Count(s.in[s.pos:s.pos+n], "\n")
	s.pos += n
}

// data writes literal text that has no tags in it.
func (s *scanner) data(text string) {
	if text == "" {
		return
	}
	s.write(text)
	s.brace = text[len(text)-1] == '{'
	s.fresh = false
}

// rawData writes literal text that may look like tags.
func (s *scanner) rawData(text string) {
	if nextTag(text) < 0 {
		s.data(text)
		return
	}
	s.emit("{%", s.line, "raw")
	s.write(text)
	s.emit("{%", s.outLine, "endraw")
}

// emit writes a tag that was in the given line.
func (s *scanner) emit(open string, line int, body string) {
	close := "}}"
	if open == "{%" {
		close = "%}"
	}
	if removed := line - s.outLine; removed > 0 {
		s.write("{#" + strings.Repeat("\n", removed) + "#}")
		s.brace = false
	}
	s.write(open + " " + body + " " + close)
	s.brace = false
}

func (s *scanner) write(text string) {
	// Where something was removed, "{" may meet "{": keep them apart.
	if s.brace && strings.IndexByte("{%#", text[0]) >= 0 {
		whole := strings.TrimSuffix(s.out.String(), "{")
		s.out.Reset()
		s.out.WriteString(whole + "{{ '{' }}")
	}
	s.out.WriteString(text)
	s.outLine += strings.Count(text, "\n")
}
