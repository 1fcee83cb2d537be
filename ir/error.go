package ir

import (
	"fmt"
	"strings"
)

// Pos is a place in a file: a line and column of a text, or a byte offset in a container.
type Pos struct {
	Line, Col int   // 1-based; 0 when the file has no lines
	Offset    int64 // bytes
}

// Source says where the parts of a graph stand in the file that it was read from.
type Source struct {
	File     string
	Memories []Pos
	Nodes    []Pos // one for each node as it was read; nil once a pass has rewritten the list
	// Shared says that commands with equal bindings, effects or provenance may share one
	// list of them; see [Graph.Own].
	Shared bool
}

// Error is a defect of a graph. It says where the defect is, what it is, and what to do.
type Error struct {
	File string // "" if the graph was not read from a file
	Pos  Pos
	At   string // "graph decode: #12 rms_norm"
	What string
	Hint string // may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		switch {
		case e.Pos.Line > 0:
			fmt.Fprintf(&b, ":%d:%d", e.Pos.Line, e.Pos.Col)
		case e.Pos.Offset > 0:
			fmt.Fprintf(&b, ": offset %d", e.Pos.Offset)
		}
		b.WriteString(": ")
	}
	if e.At != "" {
		b.WriteString(e.At + ": ")
	}
	b.WriteString(e.What)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Errors are defects in the order of the file.
type Errors []*Error

func (es Errors) Error() string {
	var b strings.Builder
	for i, e := range es {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap gives errors.As each defect.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}
