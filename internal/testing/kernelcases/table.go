package kernelcases

import (
	"fmt"
	"slices"
	"strings"
)

// Table returns the table of families for docs/softmetal-coverage.md: how many kernels of a library each has, how
// many of them have cases, and the tolerance of results.
func Table(kernels []string, cases []*Case) (string, error) {
	type row struct {
		kernels, cases int
		with           map[string]bool
		abs, rel, ulp  float64
		oracles        []string
	}
	rows := make([]row, len(Families))
	for _, k := range kernels {
		f, err := FamilyOf(k)
		if err != nil {
			return "", err
		}
		rows[f].kernels++
	}
	total := row{with: map[string]bool{}}
	families := 0
	for _, c := range cases {
		f, err := FamilyOf(c.Kernel)
		if err != nil {
			return "", err
		}
		r := &rows[f]
		if r.with == nil {
			r.with = map[string]bool{}
			families++
		}
		r.cases++
		total.cases++
		r.with[c.Kernel], total.with[c.Kernel] = true, true
		if !slices.Contains(r.oracles, c.Oracle) {
			r.oracles = append(r.oracles, c.Oracle)
		}
		for i := range c.Args {
			if w := c.Args[i].Want; w != nil {
				r.abs, r.rel, r.ulp = max(r.abs, w.Abs), max(r.rel, w.Rel), max(r.ulp, w.ULP)
			}
		}
	}
	var b strings.Builder
	b.WriteString("| file | template | kernels | with cases | cases | tolerance | oracle |\n|---|---|---|---|---|---|---|\n")
	for i, f := range Families {
		r := &rows[i]
		if r.cases == 0 {
			fmt.Fprintf(&b, "| %s | `%s` | %d | – | | | |\n", f.File, f.Template, r.kernels)
			continue
		}
		var tolerance []string
		for _, x := range []struct {
			name string
			v    float64
		}{{"", r.abs}, {"relative", r.rel}, {"ulp", r.ulp}} {
			if x.v > 0 {
				tolerance = append(tolerance, strings.TrimSpace(fmt.Sprintf("%.2g %s", x.v, x.name)))
			}
		}
		if len(tolerance) == 0 {
			tolerance = []string{"exact"}
		}
		fmt.Fprintf(&b, "| %s | `%s` | %d | %d | %d | %s | %s |\n", f.File, f.Template, r.kernels, len(r.with), r.cases, strings.Join(tolerance, ", "), strings.Join(r.oracles, "; "))
	}
	fmt.Fprintf(&b, "\nIn all %d families of %d, %d kernels of %d, %d cases.\n", families, len(Families), len(total.with), len(kernels), total.cases)
	return b.String(), nil
}
