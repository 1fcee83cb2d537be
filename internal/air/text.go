package air

import (
	"fmt"
	"strings"
)

// text is IR that is being written.
type text struct{ strings.Builder }

func (t *text) line(format string, args ...any) {
	fmt.Fprintf(t, format, args...)
	t.WriteByte('\n')
}

func (t *text) lines(lines []string) {
	for _, l := range lines {
		t.WriteString(l)
		t.WriteByte('\n')
	}
}
