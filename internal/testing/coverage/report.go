package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	clangError = regexp.MustCompile(`(?m)^(?:[^\s:]+:[0-9]+:[0-9]+: )?(?:fatal )?error: (.*)$`)
	valueName  = regexp.MustCompile(`%[-\w.$]+`)
)

// reason returns an error's text without what differs from kernel to kernel.
func reason(text string) string {
	if m := clangError.FindStringSubmatch(text); m != nil {
		text = m[1]
	} else {
		text, _, _ = strings.Cut(text, "\n")
		if _, after, ok := strings.Cut(text, ": kernel "); ok {
			_, text, _ = strings.Cut(after, ": ")
		}
	}
	text = valueName.ReplaceAllString(text, "%…")
	if len(text) > 160 {
		text = text[:160] + "…"
	}
	return text
}

// failure is a kernel that does not compile.
type failure struct{ library, kernel, text string }

// report writes the number of failures for each reason, and the families of their kernels.
func report(w io.Writer, failures []failure) {
	type group struct {
		count    int
		families map[string]int
		example  failure
	}
	slices.SortFunc(failures, func(a, b failure) int { // so the order of compilation does not matter
		return cmp.Or(strings.Compare(a.library, b.library), strings.Compare(a.kernel, b.kernel))
	})
	groups := map[string]*group{}
	for _, f := range failures {
		r := reason(f.text)
		g := groups[r]
		if g == nil {
			g = &group{families: map[string]int{}, example: f}
			groups[r] = g
		}
		g.count++
		g.families[family(f.kernel)]++
	}
	reasons := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(groups[b].count-groups[a].count, strings.Compare(a, b))
	})
	for _, r := range reasons {
		g := groups[r]
		fmt.Fprintf(w, "\n%d: %s\n", g.count, r)
		for _, f := range slices.Sorted(maps.Keys(g.families)) {
			fmt.Fprintf(w, "\t%d\t%s\n", g.families[f], f)
		}
		fmt.Fprintf(w, "\tfor example %s of %s:\n\t\t%s\n", g.example.kernel, g.example.library, strings.ReplaceAll(strings.TrimSpace(g.example.text), "\n", "\n\t\t"))
	}
}
