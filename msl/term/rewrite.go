package term

import (
	"fmt"
	"slices"
	"strings"
)

// Rewrite is a rewrite of terms that may change bits, and therefore is used only
// where its name is allowed (docs/terms.md, "When two terms are equal").
type Rewrite struct {
	Name  string
	Bound string // how far results may move
}

// rewrites is what passes and the prover know. It is empty: every rewrite that
// they make is exact to the bit.
var rewrites []Rewrite

// Rewrites lists the rewrites that can be allowed.
func Rewrites() []Rewrite { return slices.Clone(rewrites) }

// CheckAllowed refuses names of no rewrite.
func CheckAllowed(names []string) error { return checkAllowed(names, rewrites) }

func checkAllowed(names []string, known []Rewrite) error {
	var list []string
	for _, r := range known {
		list = append(list, r.Name)
	}
	for _, n := range names {
		if slices.Contains(list, n) {
			continue
		}
		if len(list) == 0 {
			return fmt.Errorf("there is no rewrite %q: none can be allowed yet, all that are made are exact to the bit", n)
		}
		return fmt.Errorf("there is no rewrite %q (there are %s)", n, strings.Join(list, ", "))
	}
	return nil
}
