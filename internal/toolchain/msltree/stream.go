package msltree

import (
	"fmt"
	"strings"
)

// Stream is a sequence of tokens that can be edited. Tokens keep their indices. An edit
// changes the text of a token, but never its line, so that clang's messages name the
// lines of the Metal source.
type Stream struct {
	Tok    []Token
	Match  []int // the partner of a bracket; −1
	out    []string
	before []string
	after  []string
	tail   string
}

// NewStream lexes src and pairs its brackets.
func NewStream(src string) (*Stream, error) {
	toks, tail, err := lex(src)
	if err != nil {
		return nil, err
	}
	s := &Stream{Tok: toks, tail: tail, Match: make([]int, len(toks)), out: make([]string, len(toks)), before: make([]string, len(toks)), after: make([]string, len(toks))}
	var open []int
	for i, t := range toks {
		s.out[i], s.Match[i] = t.Text, -1
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
			s.Match[i] = open[len(open)-1]
			s.Match[s.Match[i]] = i
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t := toks[open[len(open)-1]]
		return nil, fmt.Errorf("%s:%d: error: %q is never closed", t.File, t.Line, t.Text)
	}
	return s, nil
}

// At returns the original text of token i, or "" outside the stream.
func (s *Stream) At(i int) string {
	if i < 0 || i >= len(s.Tok) {
		return ""
	}
	return s.Tok[i].Text
}

// Text returns the original text of the tokens [a, b), with single spaces between them.
func (s *Stream) Text(a, b int) string {
	var w []string
	for i := a; i < b; i++ {
		w = append(w, s.Tok[i].Text)
	}
	return strings.Join(w, " ")
}

// Unedited reports whether token i still has its original text.
func (s *Stream) Unedited(i int) bool { return s.out[i] == s.Tok[i].Text }

// Replace replaces the text of token i.
func (s *Stream) Replace(i int, text string) { s.out[i] = text }

// Drop removes the text of the tokens [a, b).
func (s *Stream) Drop(a, b int) {
	for i := a; i < b; i++ {
		s.out[i], s.before[i], s.after[i] = "", "", ""
	}
}

// Dropped reports whether the text of token i is gone.
func (s *Stream) Dropped(i int) bool { return s.out[i] == "" }

// Before inserts text directly before token i, after what earlier calls have inserted
// there.
func (s *Stream) Before(i int, text string) { s.before[i] += text }

// After inserts text directly after token i, before what earlier calls have inserted
// there.
func (s *Stream) After(i int, text string) { s.after[i] = text + s.after[i] }

// String returns the edited text.
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

// Attribute reports whether [[ begins at i.
func (s *Stream) Attribute(i int) bool {
	return s.At(i) == "[" && s.At(i+1) == "[" && s.Match[i] == s.Match[i+1]+1
}

// maxAngle is how many tokens a list of template arguments has at most, brackets in it counting
// as one: each "<" could be that of a comparison, and is looked at.
const maxAngle = 1 << 10

// Angle returns the index after the ">" that closes the "<" at i, or −1.
func (s *Stream) Angle(i int) int {
	depth := 0
	for n := 0; i < len(s.Tok) && n < maxAngle; i, n = i+1, n+1 {
		switch s.At(i) {
		case "<":
			depth++
		case ">":
			if depth--; depth == 0 {
				return i + 1
			}
		case "(", "[", "{":
			i = s.Match[i]
		case ";", "}":
			return -1
		}
	}
	return -1
}
