package ptx

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// Module is a PTX text with an entry.
type Module struct {
	Lines  []Line
	Entry  int     // the line with which the entry begins
	Name   string  // of the entry
	Params []Param // of the entry
	Behind bool    // functions follow the entry
}

// Param is a parameter of the entry, with its type: "u64".
type Param struct{ Name, Type string }

// ErrNoEntry says that a text has no entry.
var ErrNoEntry = errors.New("there is no entry")

// entryHead is what an entry begins with.
const entryHead = ".visible .entry "

// Parse reads a text.
func Parse(text []byte) (*Module, error) {
	m := &Module{Entry: -1}
	begun := false // the body of the entry has
	for line := range strings.SplitAfterSeq(string(text), "\n") {
		l := read(line)
		name, is := strings.CutPrefix(line, entryHead)
		switch {
		case is && m.Entry < 0:
			m.Entry = len(m.Lines)
			m.Name, _, _ = strings.Cut(name, "(")
		case m.Entry < 0:
		case strings.Contains(line, ".func"):
			m.Behind = true
		case strings.HasPrefix(line, "{"):
			begun = true
		case !begun && len(l.Code) == 1 && l.Code[0].Op == ".param":
			// .param .u64 .ptr .global .align 1 NAME,
			words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), ","))
			m.Params = append(m.Params, Param{words[len(words)-1], strings.TrimPrefix(words[min(1, len(words)-1)], ".")})
		}
		m.Lines = append(m.Lines, l)
	}
	if m.Entry < 0 {
		return nil, ErrNoEntry
	}
	return m, nil
}

// Bytes is the text.
func (m *Module) Bytes() []byte {
	var out bytes.Buffer
	for i := range m.Lines {
		out.WriteString(m.Lines[i].Text)
	}
	return out.Bytes()
}

// Replace puts lines in place of each line for which f returns ok; f gets the numbers that lines have before.
func (m *Module) Replace(f func(i int) (lines []Line, ok bool)) {
	out := make([]Line, 0, len(m.Lines))
	entry := m.Entry
	for i := range m.Lines {
		if i == m.Entry {
			entry = len(out)
		}
		if lines, ok := f(i); ok {
			out = append(out, lines...)
		} else {
			out = append(out, m.Lines[i])
		}
	}
	m.Lines, m.Entry = out, entry
}

// Directives puts directives behind the parameters of the entry.
func (m *Module) Directives(directives ...string) {
	at := m.Entry
	for at+1 < len(m.Lines) && !strings.HasPrefix(m.Lines[at].Text, ")") {
		at++
	}
	var lines []Line
	for _, d := range directives {
		lines = append(lines, read(d+"\n"))
	}
	m.Lines = slices.Insert(m.Lines, at+1, lines...)
}

// Labels returns the lines that have labels, by these.
func (m *Module) Labels() map[string]int {
	labels := map[string]int{}
	for i := range m.Lines {
		for _, s := range m.Lines[i].Code {
			for _, name := range s.Labels {
				labels[name] = i
			}
		}
	}
	return labels
}
