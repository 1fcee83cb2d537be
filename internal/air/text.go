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

// Resize writes a line that makes to of from, an unsigned i32, in the integer type given.
func (t *Text) Resize(to, from, integer string) {
	switch integer {
	case "i32":
		t.Line("  %s = add i32 %s, 0", to, from)
	case "i64":
		t.Line("  %s = zext i32 %s to i64", to, from)
	default:
		t.Line("  %s = trunc i32 %s to %s", to, from, integer)
	}
}
