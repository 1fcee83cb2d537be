package msltree

import (
	"fmt"
	"regexp"
	"strings"
)

// suffixed matches literals of half and bfloat.
var suffixed = regexp.MustCompile(`^([0-9.]+(?:[eE][+-]?[0-9]+)?)(h|H|bf|BF)$`)

// double matches the literals that are doubles in C++, and floats in Metal.
var double = regexp.MustCompile(`^(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|0[xX][0-9a-fA-F.]+[pP][+-]?[0-9]+)$`)

// Literals turns the literals of half and bfloat into casts of float literals, and makes those
// without a suffix floats. (clang's -cl-single-precision-constant forgets that in templates.)
func (u *Unit) Literals() {
	for i, t := range u.Tok {
		if t.Kind != Number {
			continue
		}
		if double.MatchString(t.Text) {
			u.Replace(i, t.Text+"f")
			continue
		}
		if m := suffixed.FindStringSubmatch(t.Text); m != nil && !strings.HasPrefix(t.Text, "0x") {
			typ := "half"
			if strings.EqualFold(m[2], "bf") {
				typ = "bfloat"
			}
			digits := m[1]
			if !strings.ContainsAny(digits, ".eE") {
				digits += ".0"
			}
			u.Replace(i, fmt.Sprintf("(%s(%sf))", typ, digits))
		}
	}
}
