package term

import (
	"fmt"
	"slices"
	"strings"
)

// Rewrite is a rewrite of terms that may change bits. It is used only where its name is allowed
// (docs/terms.md, "Named rewrites").
type Rewrite struct {
	Name  string
	What  string // what it does
	Bound string // how far results may move
}

// Unrounded is the name of the rewrite that drops roundings of intermediates.
const Unrounded = "round"

// rewrites are the rewrites that passes and the prover know. None is allowed by default.
var rewrites = []Rewrite{{
	Name: Unrounded,
	What: "drops the rounding of an intermediate to f16 or bf16",
	Bound: "each dropped rounding of v to f16 moves it by at most 2^-11·|v|, or 2^-25 where |v| < 2^-14; to bf16, by 2^-8·|v|, or 2^-134 where |v| < 2^-126; " +
		"where the rounding overflows to infinity (|v| ≥ 65520 in f16), v stays finite instead; how that propagates is the term's matter",
}}

// Rewrites lists the rewrites that can be allowed.
func Rewrites() []Rewrite { return slices.Clone(rewrites) }

// CheckAllowed returns an error if one of the names is no rewrite.
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
