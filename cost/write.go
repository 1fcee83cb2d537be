package cost

import (
	"encoding/json"
	"io"
	"strconv"
)

// WriteProfile writes m as a profile that [LoadProfile] reads: every figure, with the six
// digits that a measurement has at most, so that writing what was read gives the same
// text. Its name is that of its file.
func (m Model) WriteProfile(w io.Writer) error {
	type kernel struct {
		Fixed   json.Number `json:"fixed_ns"`
		PerByte json.Number `json:"ns_per_byte"`
	}
	out := struct {
		Bandwidth        json.Number       `json:"bandwidth_gbs"`
		Rate             json.Number       `json:"arithmetic_gops"`
		Cores            int               `json:"cores"`
		Launch           json.Number       `json:"launch_ns"`
		ConcurrentLaunch json.Number       `json:"concurrent_launch_ns"`
		Barrier          json.Number       `json:"barrier_ns"`
		CommandBuffer    json.Number       `json:"command_buffer_ns"`
		Event            json.Number       `json:"event_ns"`
		Encode           json.Number       `json:"encode_ns"`
		Kernels          map[string]kernel `json:"kernels"`
	}{
		digits(m.Bandwidth * 1e-9), digits(m.Rate * 1e-9), m.Cores, nanoseconds(m.Launch), nanoseconds(m.ConcurrentLaunch),
		nanoseconds(m.Barrier), nanoseconds(m.CommandBuffer), nanoseconds(m.Event), nanoseconds(m.Encode), map[string]kernel{},
	}
	for name, k := range m.Kernels {
		out.Kernels[name] = kernel{nanoseconds(k.Fixed), nanoseconds(k.PerByte)}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // a generated kernel's name is its term
	return e.Encode(out)
}

func nanoseconds(s Seconds) json.Number { return digits(float64(s) * 1e9) }

func digits(v float64) json.Number { return json.Number(strconv.FormatFloat(v, 'g', 6, 64)) }
