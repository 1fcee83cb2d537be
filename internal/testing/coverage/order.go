package main

import (
	"math/rand/v2"
	"regexp"
)

var (
	typeName = regexp.MustCompile(`(?:b?float|half|bool_?|u?int|complex)(?:[0-9]+)?(?:_t)?`)
	numeral  = regexp.MustCompile(`[0-9]+`)
)

// family is a kernel's name with a T for each type and an N for each number.
func family(kernel string) string {
	return numeral.ReplaceAllString(typeName.ReplaceAllString(kernel, "T"), "N")
}

// inOrder returns the names in an order with one of each family first. Seed chooses these, and the order of the
// others.
func inOrder(names []string, seed uint64) []string {
	shuffled := append([]string(nil), names...)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	seen := map[string]bool{}
	var first, others []string
	for _, n := range shuffled {
		if f := family(n); !seen[f] {
			seen[f] = true
			first = append(first, n)
		} else {
			others = append(others, n)
		}
	}
	return append(first, others...)
}
