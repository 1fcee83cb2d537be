package msl

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/msl/decl"
)

// withHeaders is a source in which headers stand where it includes them, the first time. What follows them says by
// #line of which file it is, so that compilers name the lines that people see.
func withHeaders(file, text string, headers map[string]string) string {
	if len(headers) == 0 {
		return text
	}
	var b strings.Builder
	putIncluded(&b, file, text, headers, map[string]bool{})
	return b.String()
}

func putIncluded(b *strings.Builder, file, text string, headers map[string]string, done map[string]bool) {
	for i, l := range strings.SplitAfter(text, "\n") {
		name, ok := decl.Included(l)
		if !ok || headers[name] == "" {
			b.WriteString(l)
			continue
		}
		if !done[name] {
			done[name] = true
			fmt.Fprintf(b, "#line 1 %q\n", name)
			putIncluded(b, name, headers[name], headers, done)
		}
		fmt.Fprintf(b, "#line %d %q\n", i+2, file)
	}
}
