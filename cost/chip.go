package cost

import (
	"fmt"
	"maps"
	"regexp"
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
	// A barrier costs 4.1 to 4.9 µs in ggml, measured by removing barriers [M5 Max]: waiting until the GPU is
	// idle, and the overlap of commands that is lost.
	barrier = 4.5e-6
	// The time between two command buffers, on the GPU [M3 Ultra].
	commandBuffer = 20e-6
	// Signalling an event and waiting for it [M5 Max].
	event = 1.25e-6
	// The host's time for encoding one dispatch of a long list [M5 Max].
	encode = 0.16e-6
	// 70 to 85 % of the bandwidth in the data sheet is attainable.
	attainable = 0.78
	// A core has 128 lanes at 1.28 GHz or more [M1]. A fused multiply-add is two operations, and kernels reach
	// half of that peak.
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

// H200 is the name of the one GPU of NVIDIA's whose figures are known.
const H200 = "h200"

// h200 has the figures that were measured on an H200 (driver 580.159; docs/benchmarks.md). A copy reads and
// writes 4.2 TB/s in all. The smallest kernel, launched behind another, takes 0.65 to 0.86 µs where the device
// makes kernels wait for each other, and 0.8 to 1.0 where it does not; an epoch of four kernels and the one
// that waits for them take 1.33 µs each. A multiprocessor has 128 lanes at 1.98 GHz, and half its peak is
// reached. Latency differs by kernel, 0.4 to 5 µs; a measured profile has it of each.
var h200 = Model{
	Name: H200, Device: "NVIDIA H200", Bandwidth: 4.2e12, Cores: 132, Rate: 132 * 128 * 1.98e9,
	Launch: 0.75e-6, ConcurrentLaunch: 0.15e-6, CommandBuffer: 0.75e-6, Latency: 1.3e-6, Encode: 0.04e-6,
	Filling: regexp.MustCompile(`^affine_qmv(_fast)?_\w*(float16_t|bfloat16_t)_gs_\d+_b_4`), // backend/internal/ptxmatrix
	Plans: map[string]PlanTimes{
		"stream":        {Encode: 2.7e-6, Launch: 2.3e-6},
		"chain":         {Encode: 0.04e-6, Launch: 0.9e-6},
		"chain-waiting": {Encode: 0.04e-6, Launch: 0.75e-6},
		"edges":         {Encode: 0.04e-6, Launch: 0.9e-6, Barrier: 0.86e-6},
		"edges-waiting": {Encode: 0.04e-6, Launch: 0.9e-6, Barrier: 0.86e-6},
	},
}

// Chips returns the names that [Chip] knows: those of Apple's, oldest first, and [H200].
func Chips() []string {
	out := make([]string, len(chips), len(chips)+1)
	for i, c := range chips {
		out[i] = c.name
	}
	return append(out, H200)
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
	if strings.TrimPrefix(key, "nvidia-") == H200 {
		m := h200
		m.Plans = maps.Clone(m.Plans)
		return m, nil
	}
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
