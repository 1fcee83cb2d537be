package air

import (
	"fmt"
	"strings"
)

// Text is IR that is being written.
type Text struct{ strings.Builder }

// Line adds a line.
func (t *Text) Line(format string, args ...any) {
	fmt.Fprintf(t, format, args...)
	t.WriteByte('\n')
}

// Lines adds lines as they are.
func (t *Text) Lines(lines []string) {
	for _, l := range lines {
		t.WriteString(l)
		t.WriteByte('\n')
	}
}
