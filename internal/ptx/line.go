package ptx

import (
	"slices"
	"strings"
)

// Line is a line of a text.
type Line struct {
	Text string // with the end of the line
	Code []Statement
	// Unclear says that the line has code that is not understood: a part of a statement, or a call.
	Unclear bool
}

// Statement is an instruction or a directive.
type Statement struct {
	Labels []string // that stand before it; behind the last one of a line nothing need stand, and Op is "" then
	Guard  string   // the register of its predicate, with its %; "": none
	Unless bool     // it is executed where the predicate does not hold
	Op     string   // "add.s32", ".reg"
	Args   []Operand
}

// NewLine is a line with statements, as it has them: "\tret;\n".
func NewLine(text string) Line { return read(text) }

// Instruction is the instruction of a line that consists of one, or nil.
func (l *Line) Instruction() *Statement {
	if l.Unclear || len(l.Code) != 1 || len(l.Code[0].Labels) > 0 || l.Code[0].Op == "" || l.Code[0].Op[0] == '.' {
		return nil
	}
	return &l.Code[0]
}

// Executes reports whether a line has code that is executed, or may have.
func (l *Line) Executes() bool {
	return l.Unclear || slices.ContainsFunc(l.Code, func(s Statement) bool { return s.Op != "" && s.Op[0] != '.' })
}

// With are lines with instructions in place of the one that the line has, as far to the right.
func (l *Line) With(instructions ...string) (out []Line) {
	head := l.Text[:len(l.Text)-len(strings.TrimLeft(l.Text, " \t"))]
	for _, s := range instructions {
		out = append(out, read(head+s+";\n"))
	}
	return out
}

// read reads a line. What begins with a point is a directive, which need not end on it.
func read(text string) Line {
	l := Line{Text: text}
	code, _, _ := strings.Cut(text, "//")
	code = strings.TrimSpace(code)
	if len(code) == 1 { // a bracket around parameters, or around the body
		return l
	}
	directive := strings.HasPrefix(code, ".")
	for code != "" {
		piece, rest, ended := strings.Cut(code, ";")
		s := Statement{}
		for strings.HasPrefix(piece, "$") {
			name, behind, found := strings.Cut(piece, ":")
			if !found {
				break
			}
			s.Labels, piece = append(s.Labels, name), strings.TrimSpace(behind)
		}
		if guard, behind, ok := strings.Cut(piece, " "); ok && guard[0] == '@' {
			s.Guard, s.Unless = strings.CutPrefix(guard[1:], "!")
			piece = strings.TrimSpace(behind)
		}
		end := strings.IndexAny(piece+" ", " \t")
		s.Op = piece[:end]
		for _, a := range split(strings.TrimSpace(piece[end:])) {
			s.Args = append(s.Args, operand(a))
		}
		switch {
		case s.Op != "" && (s.Op[0] < 'a' || s.Op[0] > 'z') && s.Op[0] != '.', s.Op != "" && !ended && !directive,
			strings.ContainsRune(piece, '(') && !directive:
			l.Unclear = true
		}
		l.Code = append(l.Code, s)
		code = strings.TrimSpace(rest)
	}
	return l
}

// split splits a list at the commas that stand in no braces.
func split(s string) (out []string) {
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(s[from:i])), i+1
			}
		}
	}
	if s = strings.TrimSpace(s[from:]); s != "" {
		out = append(out, s)
	}
	return out
}
