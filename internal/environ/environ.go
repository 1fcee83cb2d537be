// Package environ reads the environment variables that change what programs do which use this
// module and cannot be changed themselves. docs/environment.md lists all of them (a test holds the
// page against the code). Where a program says the same by an option, the environment wins: it is
// for who cannot change the program.
package environ

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DebugVariable is the variable that says how much is told of what happens, on standard error.
const DebugVariable = "MLXC_DEBUG"

// MaxDebug is the highest level.
const MaxDebug = 3

// Debug is the level that DebugVariable sets, and whether it is set:
//
//	0 warnings alone
//	1 devices with their limits, what was made ready, sums at the end
//	2 each command buffer with counts
//	3 each dispatch
func Debug() (level int, set bool, err error) { return Int(DebugVariable, 0, MaxDebug) }

// Text is the value of a variable; an empty one is not set.
func Text(name string) (value string, set bool) {
	value = os.Getenv(name)
	return value, value != ""
}

// Switch is the value of a variable that is on or off.
func Switch(name string) (on, set bool, err error) {
	i, set, err := Choice(name, "0", "off", "false", "no", "1", "on", "true", "yes")
	return i >= 4, set, err
}

// Choice is which of some words a variable is.
func Choice(name string, of ...string) (i int, set bool, err error) {
	v, set := Text(name)
	if !set {
		return 0, false, nil
	}
	if i = slices.Index(of, strings.ToLower(v)); i < 0 {
		return 0, false, fmt.Errorf("the environment has %s=%q: it is one of %s", name, v, strings.Join(of, ", "))
	}
	return i, true, nil
}

// Int is the value of a variable that is a number.
func Int(name string, least, most int) (n int, set bool, err error) {
	v, set := Text(name)
	if !set {
		return 0, false, nil
	}
	if n, err = strconv.Atoi(v); err != nil || n < least || n > most {
		return 0, false, fmt.Errorf("the environment has %s=%q: it is a number from %d to %d", name, v, least, most)
	}
	return n, true, nil
}

// Duration is the value of a variable that is a time, "90s" or "3m"; "0" is none.
func Duration(name string) (d time.Duration, set bool, err error) {
	v, set := Text(name)
	if !set {
		return 0, false, nil
	}
	if d, err = time.ParseDuration(v); err != nil || d < 0 {
		return 0, false, fmt.Errorf("the environment has %s=%q: it is a time, as 90s or 3m", name, v)
	}
	return d, true, nil
}

// List are the words of a variable between commas, each of which must be among some.
func List(name string, of []string) ([]string, error) {
	v, set := Text(name)
	if !set {
		return nil, nil
	}
	var out []string
	for w := range strings.SplitSeq(v, ",") {
		if w = strings.TrimSpace(w); w == "" {
			continue
		}
		if !slices.Contains(of, w) {
			return nil, fmt.Errorf("the environment has %s=%q: there is no %q, there are %s", name, v, w, strings.Join(of, ", "))
		}
		out = append(out, w)
	}
	return out, nil
}
