package msl

import "strings"

// Code returns what a compiler sees of a Metal source of which only some kernels are wanted: the tokens
// of [Only], one in a line. Comments, declarations among them, numbers of lines, spaces and kernels that nobody asks for
// change nothing of it, so that whoever keeps what was compiled from a source can tell whether it is
// still that of the source. A source that is not understood is returned as it is.
func Code(text string, functions []string) string {
	s, ok := scan(Only(text, functions))
	if !ok {
		return text
	}
	var b strings.Builder
	for i := range s.tokens {
		if strings.HasPrefix(s.text(i), "#line ") {
			continue
		}
		b.WriteString(s.text(i))
		b.WriteByte('\n')
	}
	return b.String()
}
