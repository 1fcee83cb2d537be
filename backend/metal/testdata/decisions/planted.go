//go:build linux

package metal

import "strings"

// Planted is the name of the wrong decision that is switched on; "": none is.
var Planted string

func planted(name string) bool { return Planted == name }

// either returns right, or wrong if the decision of that name is switched on.
func either[T any](name string, right, wrong T) T {
	if planted(name) {
		return wrong
	}
	return right
}

// replaced returns text, in which wrong replaces right if the decision of that name is switched on.
func replaced(name, text, right, wrong string) string {
	if !strings.Contains(text, right) {
		panic("there is no " + right)
	}
	return strings.Replace(text, right, either(name, right, wrong), 1)
}
