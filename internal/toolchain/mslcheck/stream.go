package mslcheck

import (
	"fmt"
	"strings"
)

// Stream is a token sequence under edit. Tokens keep their indices: an edit
// changes what a token is written as, never where the lines fall, so that
// clang's messages name the lines of the Metal source.
type Stream struct {
	Tok    []Token
	match  []int // the partner of a bracket; −1
	out    []string
	before []string
	after  []string
	tail   string
}

// newStream lexes src and pairs its brackets.
func newStream(src string) (*Stream, error) {
	toks, tail, err := lex(src)
	if err != nil {
		return nil, err
	}
	s := &Stream{Tok: toks, tail: tail, match: make([]int, len(toks)), out: make([]string, len(toks)), before: make([]string, len(toks)), after: make([]string, len(toks))}
	var open []int
	for i, t := range toks {
		s.out[i], s.match[i] = t.Text, -1
		if t.Kind != Punct {
			continue
		}
		switch t.Text {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			want := map[string]string{")": "(", "]": "[", "}": "{"}[t.Text]
			if len(open) == 0 || toks[open[len(open)-1]].Text != want {
				return nil, fmt.Errorf("%s:%d: error: %q closes nothing", t.File, t.Line, t.Text)
			}
			s.match[i] = open[len(open)-1]
			s.match[s.match[i]] = i
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t := toks[open[len(open)-1]]
		return nil, fmt.Errorf("%s:%d: error: %q is never closed", t.File, t.Line, t.Text)
	}
	return s, nil
}

// At returns the text of token i as it was read; "" outside the stream.
func (s *Stream) At(i int) string {
	if i < 0 || i >= len(s.Tok) {
		return ""
	}
	return s.Tok[i].Text
}

// Text returns the tokens of [a, b) as they were read, with single blanks.
func (s *Stream) Text(a, b int) string {
	var w []string
	for i := a; i < b; i++ {
		w = append(w, s.Tok[i].Text)
	}
	return strings.Join(w, " ")
}

// Replace writes token i as text.
func (s *Stream) Replace(i int, text string) { s.out[i] = text }

// Drop writes nothing for the tokens of [a, b).
func (s *Stream) Drop(a, b int) {
	for i := a; i < b; i++ {
		s.out[i], s.before[i], s.after[i] = "", "", ""
	}
}

// Before and After write text beside token i, inside what other edits already
// put there.
func (s *Stream) Before(i int, text string) { s.before[i] += text }

// After is the counterpart of Before.
func (s *Stream) After(i int, text string) { s.after[i] = text + s.after[i] }

// String writes the edited stream.
func (s *Stream) String() string {
	var b strings.Builder
	for i, t := range s.Tok {
		b.WriteString(t.Lead)
		b.WriteString(s.before[i])
		b.WriteString(s.out[i])
		b.WriteString(s.after[i])
	}
	b.WriteString(s.tail)
	return b.String()
}

// attribute reports whether [[ begins at i.
func (s *Stream) attribute(i int) bool {
	return s.At(i) == "[" && s.At(i+1) == "[" && s.match[i] == s.match[i+1]+1
}

// angle returns the index after the ">" that closes the "<" at i, or −1.
func (s *Stream) angle(i int) int {
	depth := 0
	for ; i < len(s.Tok); i++ {
		switch s.At(i) {
		case "<":
			depth++
		case ">":
			if depth--; depth == 0 {
				return i + 1
			}
		case "(", "[", "{":
			i = s.match[i]
		case ";", "}":
			return -1
		}
	}
	return -1
}
