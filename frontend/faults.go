package frontend

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxNamed is how many faults of a model an error names, and how many things a remark lists.
const maxNamed = 12

// Faults returns an error that names what is wrong with a model, as several checks have found it; nil if nothing is. Where
// there is more than an error should say, it names something of each check, and how many there are.
func Faults(checks ...[]string) error {
	left, named := maxNamed, make([]int, len(checks))
	for again := true; again && left > 0; {
		again = false
		for i, c := range checks {
			if named[i] < len(c) && left > 0 {
				named[i]++
				left--
				again = true
			}
		}
	}
	var out []string
	more := 0
	for i, c := range checks {
		out = append(out, c[:named[i]]...)
		more += len(c) - named[i]
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	if len(out) == 0 {
		return nil
	}
	return errors.New(strings.Join(out, "; "))
}

// Few joins the first few of a list, and says how many more there are.
func Few(list []string, separator string) string {
	if n := len(list); n > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNamed], separator), n-maxNamed)
	}
	return strings.Join(list, separator)
}

// Name returns a name that a file gives, for a message: as it is, or quoted and cut if it is long or has what might look like
// something else.
func Name(s string) string {
	if q := strconv.Quote(s); len(s) > 80 || q[1:len(q)-1] != s {
		return fmt.Sprintf("%.80q", s)
	}
	return s
}
