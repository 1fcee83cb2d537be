package msltree

import (
	"fmt"
	"regexp"
	"strings"
)

// suffixed matches literals of half and bfloat.
var suffixed = regexp.MustCompile(`^([0-9.]+(?:[eE][+-]?[0-9]+)?)(h|H|bf|BF)$`)

// Literals turns the literals of half and bfloat into casts of float literals.
func (u *Unit) Literals() {
	for i, t := range u.Tok {
		if t.Kind != Number {
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
