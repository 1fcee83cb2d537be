package calls

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// prefix is what names of math.c get: what they are called in a kernel's module.
const prefix = "mlxc.math."

// mathText is math.c as LLVM IR: a first line that says of what it was made, and functions
// with empty lines between them.
//
//go:embed math/math.ll
var mathText string

// libraryFunction is a function of math.c.
type libraryFunction struct {
	text     string
	declares []string
}

var intrinsicCall = regexp.MustCompile(`call (\S+) @(llvm\.[a-z0-9.]+)\(([^)]*)\)`)

// library are the functions of math.c by their names there.
var library = sync.OnceValue(func() map[string]libraryFunction {
	l := map[string]libraryFunction{}
	_, functions, _ := strings.Cut(mathText, "\n\n")
	for text := range strings.SplitSeq(strings.TrimSpace(functions), "\n\n") {
		_, rest, _ := strings.Cut(text, "@"+prefix)
		name, _, _ := strings.Cut(rest, "(")
		f := libraryFunction{text: text}
		for _, m := range intrinsicCall.FindAllStringSubmatch(text, -1) {
			var types []string
			for operand := range strings.SplitSeq(m[3], ", ") {
				t, _, _ := strings.Cut(operand, " ")
				types = append(types, t)
			}
			f.declares = append(f.declares, "declare "+m[1]+" @"+m[2]+"("+strings.Join(types, ", ")+")")
		}
		l[name] = f
	}
	return l
})
