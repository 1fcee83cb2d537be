package kernelcases

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// StepTable returns the table of operations for docs/metal-source.md: how many kernels and cases each has, how many
// of them are not extra ones, and the tolerance of results.
func StepTable(cases []*Case) string {
	type row struct {
		kernels, short map[string]bool
		cases, few     int
		tolerance      float64
		oracle         string
	}
	rows, order := map[string]*row{}, []string{}
	total := row{kernels: map[string]bool{}, short: map[string]bool{}}
	for _, c := range cases {
		r := rows[c.Family]
		if r == nil {
			r = &row{kernels: map[string]bool{}, short: map[string]bool{}, oracle: c.Oracle}
			rows[c.Family], order = r, append(order, c.Family)
		}
		for _, r := range []*row{r, &total} {
			r.cases++
			if !c.Extra {
				r.few++
			}
			for i := range c.Steps {
				r.kernels[c.Steps[i].Kernel] = true
				if !c.Extra {
					r.short[c.Steps[i].Kernel] = true
				}
			}
		}
		r.tolerance = max(r.tolerance, c.tolerance())
	}
	var b strings.Builder
	b.WriteString("| operation | kernels | cases | in `make test` | tolerance | oracle |\n|---|---|---|---|---|---|\n")
	for _, name := range order {
		r := rows[name]
		tolerance := "exact"
		if r.tolerance > 0 {
			tolerance = fmt.Sprintf("%.1g", r.tolerance)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d, %d | %s | %s |\n", name, len(r.kernels), r.cases, len(r.short), r.few, tolerance, r.oracle)
	}
	fmt.Fprintf(&b, "\nIn all %d kernels of %d operations in %d cases; in `make test` %d kernels in %d cases.\n", len(total.kernels), len(order), total.cases, len(total.short), total.few)
	return b.String()
}

// tolerance returns the maximum absolute tolerance, as a fraction of the root mean square of the results.
func (c *Case) tolerance() (out float64) {
	for i := range c.Args {
		w := c.Args[i].Want
		if w == nil || w.Abs == 0 {
			continue
		}
		squares := 0.0
		for at := w.At; at < w.At+w.Size; at += 4 {
			v := float64(math.Float32frombits(binary.LittleEndian.Uint32(c.data[at:])))
			squares += v * v
		}
		out = max(out, w.Abs/math.Sqrt(squares*4/float64(w.Size)))
	}
	return out
}
