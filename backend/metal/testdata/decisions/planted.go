//go:build linux

package metal

import "strings"

// Planted names the wrong decision that is taken; "": none is.
var Planted string

func planted(name string) bool { return Planted == name }

// either returns one of two values: the second where a decision is planted.
func either[T any](name string, right, wrong T) T {
	if planted(name) {
		return wrong
	}
	return right
}

// replaced is a text with a part that is another one where a decision is planted.
func replaced(name, text, right, wrong string) string {
	if !strings.Contains(text, right) {
		panic("there is no " + right)
	}
	return strings.Replace(text, right, either(name, right, wrong), 1)
}
