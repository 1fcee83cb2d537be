//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend"
)

// Driver lists and opens NVIDIA's GPUs.
var Driver = backend.Driver{
	Name: "cuda", What: "a GPU of NVIDIA's", GPU: true, Instead: "use --device cpu", Learn: true,
	Options: []backend.Option{
		{Name: "gpu", Flag: "--gpu", Help: "The GPU, by a part of its name.", Default: "the first"},
		{Name: "library", Type: backend.File, Contents: "the library", Flag: "--library", Help: "A .metallib that builtin kernels are taken from.", Default: "their Metal source"},
		{Name: "trust", Type: backend.Switch, Flag: "--trust-kernels", Help: "Compile kernels of files also where nothing confines the compiler.", Default: "false"},
		{Name: "plan", Type: backend.Choice, Choices: planNames[:], Flag: "--cuda-plan", Help: "How replays are launched; auto is the fastest by the profile.", Default: "auto"},
		{Name: "profile", Type: backend.File, Contents: "what was measured of the GPU", Flag: "--cuda-profile", Help: "What mlxreplay doctor or bench has measured of the GPU.", Default: "what was measured when it was first used"},
		{Name: "full", Type: backend.Switch, Flag: "--cuda-full", Help: "Every launch begins when those before it have ended.", Default: "false"},
		{Name: "no-mma", Type: backend.Switch, Flag: "--cuda-no-mma", Help: "Nothing is multiplied by tensor cores.", Default: "false"},
		{Name: "no-warpgroups", Type: backend.Switch, Help: "Products and attention are the compiler's code, also where there is some that was written for tensor cores.", Default: "false"},
		{Name: "capability", Type: backend.Choice, Choices: capabilities, Help: "What was written for tensor cores is the code for GPUs of this compute capability, which newer ones run too.", Default: "the GPU's own"},
		{Name: "memory", Type: backend.Bytes, Flag: "--memory", Help: "Most memory that buffers may take.", Default: "what the GPU has"},
		{Name: "pool", Type: backend.Bytes, Help: "Most memory of closed buffers that is kept for others.", Default: "256MiB, at most a sixteenth of the GPU's"},
	},
	Check: func(s backend.Settings) error {
		if plan := s.Text("plan"); s.Given("profile") && plan != "" && plan != Auto.String() {
			return fmt.Errorf("%s is for %s auto: %s is %q", s.Named("profile"), s.Named("plan"), s.Named("plan"), plan)
		}
		return nil
	},
	Open: openBy,
	List: found,
	Variants: []backend.Variant{
		launched("chain-waiting", Chain, false), launched("chain", Chain, true), launched("edges-waiting", Edges, false),
		launched("edges", Edges, true), launched("stream", Stream, true),
	},
}

func launched(name string, p Plan, full bool) backend.Variant {
	v := backend.Variant{Name: name, Launched: true, Edges: p == Edges, Set: []backend.Given{{Option: "plan", Value: p.String()}}}
	if full {
		v.Set = append(v.Set, backend.Given{Option: "full"})
	}
	return v
}

func openBy(ctx context.Context, s backend.Settings) (backend.Closer, error) {
	measured, err := s.Profile("profile")
	if err != nil {
		return nil, err
	}
	return Open(ctx, Options{
		Device: s.Text("gpu"), Library: s.Text("library"), Trust: s.On("trust"), Plan: Plan(s.Index("plan", Auto.String())), Measured: measured,
		Full: s.On("full"), NoMMA: s.On("no-mma"), NoWarpgroups: s.On("no-warpgroups"), Capability: s.Text("capability"), Memory: s.Bytes("memory"), Pool: s.Bytes("pool"),
	})
}

// described is a GPU for JSON.
type described struct {
	Name            string `json:"name"`
	Default         bool   `json:"default"`
	Ordinal         int    `json:"ordinal"`
	Capability      string `json:"compute_capability"` // as 9.0
	Memory          int64  `json:"memory"`
	Multiprocessors int    `json:"multiprocessors"`
}

// found returns the GPUs of the machine.
func found() ([]backend.Found, error) {
	all, err := List()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("cuda: the driver finds no GPU")
	}
	out := make([]backend.Found, len(all))
	for i, x := range all {
		f := described{x.Name, i == 0, x.Ordinal, fmt.Sprintf("%d.%d", x.Major, x.Minor), x.Memory, x.Multiprocessors}
		text := fmt.Sprintf("%s: compute capability %s, %d multiprocessors, %s of memory", f.Name, f.Capability, f.Multiprocessors, backend.FormatBytes(f.Memory))
		out[i] = backend.Found{Name: f.Name, Text: text, Default: f.Default, Facts: f}
	}
	return out, nil
}

// Counts implements [backend.Counted].
func (d *Device) Counts() (text string, byName map[string]any) {
	k, peak, held := d.Kernels(), d.Peak(), d.Held()
	text = fmt.Sprintf("at most %.1f MiB of memory", float64(peak)/(1<<20))
	if held > peak {
		text += fmt.Sprintf(" (%.1f with what is kept for others)", float64(held)/(1<<20))
	}
	loaded := k.Prebuilt + k.Generated + k.Cached + k.Compiled
	if loaded > 0 {
		text += fmt.Sprintf("; %d kernels, found in %.2f s and compiled by the driver in %.2f s", loaded, k.Find.Seconds(), k.JIT.Seconds())
	}
	if k.Compiled > 0 {
		text += fmt.Sprintf("; %d by clang", k.Compiled)
	}
	if k.Why != "" {
		text += " (" + k.Why + ")"
	}
	if d.noRanges != nil {
		text += "; no ranges: " + d.noRanges.Error()
	}
	return text, map[string]any{
		"peak_bytes": peak, "held_bytes": held, "kernels": loaded, "find_seconds": k.Find.Seconds(), "jit_seconds": k.JIT.Seconds(),
	}
}
