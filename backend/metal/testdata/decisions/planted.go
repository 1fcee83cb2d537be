//go:build linux

package metal

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
