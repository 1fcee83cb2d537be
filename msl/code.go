package msl

import "strings"

// Code returns what a compiler sees of a Metal source of which only some kernels are wanted: the
// tokens of [Only], one on each line. It does not change with comments (declarations included),
// spaces, and unwanted kernels. So a program that keeps compiled code can tell whether the code
// still matches the source. If Code cannot parse the source, it returns it unchanged.
func Code(text string, functions []string) string {
	s, ok := scan(Only(text, functions))
	if !ok {
		return text
	}
	var b strings.Builder
	for i := range s.tokens {
		b.WriteString(s.text(i))
		b.WriteByte('\n')
	}
	return b.String()
}
