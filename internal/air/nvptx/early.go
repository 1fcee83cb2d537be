package nvptx

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// earlyLine begins the line of a text that says which arguments are early.
const earlyLine = "// mlxc early arguments:"

// Early returns the arguments of a kernel, by their numbers in [Kernel].Args in ascending order, that
// the entry of a text which [Compile] made may read before it waits for the grids before it. Nothing of
// them may be written by a grid that has not ended when the entry is launched.
func Early(text []byte) ([]int, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	rest, ok := strings.CutPrefix(string(line), earlyLine)
	if !ok {
		return nil, fmt.Errorf("PTX: the first line is %.80q, and should begin with %q: the text was not made here", line, earlyLine)
	}
	var out []int
	for word := range strings.FieldsSeq(rest) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || len(out) > 0 && n <= out[len(out)-1] {
			return nil, fmt.Errorf("PTX: in the first line %.80q stands not the number of an argument: ascending numbers are expected", word)
		}
		out = append(out, n)
	}
	return out, nil
}

// EarlyLine is the first line of a text that has these early arguments, in ascending order.
func EarlyLine(early []int) string {
	out := earlyLine
	for _, i := range early {
		out += " " + strconv.Itoa(i)
	}
	return out
}

// withEarly puts the line of the early arguments before a text, and why there are none.
func withEarly(text []byte, early []int, reason string) []byte {
	head := append([]byte(EarlyLine(early)), '\n')
	if reason != "" {
		head = fmt.Appendf(head, "// It waits at its beginning: %s.\n", strings.Map(printable, reason))
	}
	return append(head, text...)
}

// printable keeps what a comment may have.
func printable(c rune) rune {
	if c < ' ' || c > '~' {
		return '?'
	}
	return c
}
