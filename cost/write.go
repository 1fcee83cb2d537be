package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteProfile writes m as a profile that [LoadProfile] reads: every figure, with the six
// digits that a measurement has at most, so that writing what was read gives the same
// text. Its name is that of its file.
func (m Model) WriteProfile(w io.Writer) error {
	lines := []string{fmt.Sprintf(`"cores": %d`, m.Cores)}
	for i := range figures {
		f := &figures[i]
		lines = append(lines, fmt.Sprintf("%q: %.6g", f.name, *f.of(&m)/f.unit))
	}
	var kernels []string
	for _, name := range slices.Sorted(maps.Keys(m.Kernels)) {
		k := m.Kernels[name]
		points := ""
		for i, p := range k.Points {
			points += fmt.Sprintf("%s[%.6g, %.6g]", []string{"", ", "}[min(i, 1)], p.Bytes, p.Time/ns)
		}
		if points != "" {
			points = `, "points": [` + points + "]"
		}
		kernels = append(kernels, fmt.Sprintf(`    %s: {"fixed_ns": %.6g, "ns_per_byte": %.6g%s}`, quote(name), k.Fixed/ns, k.PerByte/ns, points))
	}
	lines = append(lines, "\"kernels\": {\n"+strings.Join(kernels, ",\n")+"\n  }")
	if m.Device != "" {
		lines = append(lines, `"device": `+quote(m.Device))
	}
	if m.Litmus != (Litmus{}) || len(m.Plans) > 0 {
		var fields []string
		for _, f := range litmusFields {
			fields = append(fields, fmt.Sprintf("%q: %v", f.name, *f.of(&m.Litmus)))
		}
		lines = append(lines, `"litmus": {`+strings.Join(fields, ", ")+"}")
	}
	if len(m.Plans) > 0 {
		var plans []string
		for _, name := range slices.Sorted(maps.Keys(m.Plans)) {
			t := m.Plans[name]
			var fields []string
			for _, f := range planFields {
				fields = append(fields, fmt.Sprintf("%q: %.6g", f.name, *f.of(&t)/ns))
			}
			plans = append(plans, "    "+quote(name)+": {"+strings.Join(fields, ", ")+"}")
		}
		lines = append(lines, "\"plans\": {\n"+strings.Join(plans, ",\n")+"\n  }")
	}
	_, err := io.WriteString(w, "{\n  "+strings.Join(lines, ",\n  ")+"\n}\n")
	return err
}

// quote returns s as a JSON string without HTML escapes: a generated kernel is named by its term, which people read.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string is always written
	return strings.TrimSpace(b.String())
}
