package cost

import (
	"fmt"
	"strings"
)

// DefaultChip is the chip that is modelled when nobody names one.
const DefaultChip = "m3-max"

// Figures of the GPU that do not come with the chip's name; in brackets the chip
// on which somebody measured them.
const (
	// A tiny dispatch takes 1.3 µs where each waits for the one before, and 0.5 µs
	// where they may overlap [M2 Pro].
	launch           = 1.3e-6
	concurrentLaunch = 0.5e-6
	// A barrier costs 4.1 to 4.9 µs in ggml, found by removing them [M5 Max]: the
	// drain and the overlap that was lost with it.
	barrier = 4.5e-6
	// A boundary of command buffers, on the GPU [M3 Ultra].
	commandBuffer = 20e-6
	// A pair of signal and wait [M5 Max].
	event = 1.25e-6
	// The host encodes a dispatch of a long list in this time [M5 Max].
	encode = 0.16e-6
	// 70 to 85 % of the bandwidth in the data sheet is attainable.
	attainable = 0.78
	// A core has 128 lanes at 1.28 GHz or more [M1], which do two operations each by a
	// fused multiply-add, and half of that is reached.
	operationsPerCore = 128 * 1.28e9
)

// chips: memory bandwidth in GB/s and GPU cores, from Apple's technical
// specifications of the machines that have them; the largest configuration where
// there are several, except for those whose name ends in a number of cores,
// which have less bandwidth too.
var chips = []struct {
	name      string
	bandwidth float64
	cores     int
}{
	{"m1", 68, 8}, {"m1-pro", 200, 16}, {"m1-max", 400, 32}, {"m1-ultra", 800, 64},
	{"m2", 100, 10}, {"m2-pro", 200, 19}, {"m2-max", 400, 38}, {"m2-ultra", 800, 76},
	{"m3", 100, 10}, {"m3-pro", 150, 18}, {"m3-max-30", 300, 30}, {"m3-max", 400, 40}, {"m3-ultra", 819, 80},
	{"m4", 120, 10}, {"m4-pro", 273, 20}, {"m4-max-32", 410, 32}, {"m4-max", 546, 40},
	{"m5", 153, 10}, {"m5-pro", 307, 20}, {"m5-max-32", 460, 32}, {"m5-max", 614, 40},
}

// Chips returns the names that [Chip] knows, oldest first.
func Chips() []string {
	out := make([]string, len(chips))
	for i, c := range chips {
		out[i] = c.name
	}
	return out
}

// OrDefault returns m, or the model of [DefaultChip] if m is the zero value.
func (m Model) OrDefault() Model {
	if m.Bandwidth == 0 {
		m, _ = Chip(DefaultChip)
	}
	return m
}

// Chip returns the model of a chip by name, as in "m3-max"; capitals and spaces
// are forgiven. The empty name is [DefaultChip].
func Chip(name string) (Model, error) {
	if name == "" {
		name = DefaultChip
	}
	key := strings.TrimPrefix(strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), "-"), "apple-")
	for _, c := range chips {
		if c.name == key {
			return Model{
				Name: c.name, Bandwidth: c.bandwidth * 1e9 * attainable, Cores: c.cores, Rate: float64(c.cores) * operationsPerCore,
				Launch: launch, ConcurrentLaunch: concurrentLaunch, Barrier: barrier,
				CommandBuffer: commandBuffer, Event: event, Encode: encode,
			}, nil
		}
	}
	return Model{}, fmt.Errorf("there is no chip %q (there are %s)", name, strings.Join(Chips(), ", "))
}
