//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal/litmus"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
)

// Driver lists and opens Apple's GPUs.
var Driver = backend.Driver{
	Name: "metal", What: "a GPU of Apple's", GPU: true,
	Instead: "use --device cpu, or --device softmetal for the Metal kernels themselves",
	Options: []backend.Option{
		{Name: "gpu", Flag: "--gpu", Help: "The GPU, by a part of its name.", Default: "the one that the system prefers"},
		{Name: "library", Type: backend.File, Contents: "the library", Flag: "--library", Help: "A .metallib that builtin kernels are taken from.", Default: "their Metal source"},
		{Name: "plan", Type: backend.Choice, Choices: plans[:], Flag: "--metal-plan", Help: "How replays are encoded; auto is the fastest by the profile.", Default: "concurrent; auto with a profile"},
		{Name: "profile", Type: backend.File, Contents: "what was measured of the GPU", Flag: "--metal-profile", Help: "What mlxreplay doctor has measured of the GPU.", Default: "none"},
		{Name: "encoders", Type: backend.Count, Min: 2, Max: mostEncoders, Flag: "--metal-encoders", Help: "Command buffers that the plan parallel encodes side by side.", Default: "2"},
		{Name: "fences", Type: backend.Switch, Help: "Order encoders by fences, if the profile says that they keep the order.", Default: "false"},
		{Name: "memory", Type: backend.Bytes, Flag: "--memory", Help: "Most memory that buffers may take.", Default: "what the system recommends"},
	},
	Check: func(s backend.Settings) error {
		switch plan := s.Text("plan"); {
		case plan == Auto.String() && !s.Given("profile"):
			return fmt.Errorf("%s auto needs a %s, which mlxreplay doctor writes", s.Named("plan"), s.Named("profile"))
		case s.Given("encoders") && plan != Parallel.String():
			return fmt.Errorf("%s is for %s parallel", s.Named("encoders"), s.Named("plan"))
		}
		return nil
	},
	Open:     openBy,
	List:     found,
	Variants: variants(),
}

func openBy(_ context.Context, s backend.Settings) (backend.Closer, error) {
	measured, err := s.Profile("profile")
	if err != nil {
		return nil, err
	}
	usual := Concurrent
	if s.Given("profile") {
		usual = Auto
	}
	return Open(Options{
		Device: s.Text("gpu"), Library: s.Text("library"), Plan: Plan(s.Index("plan", usual.String())), Encoders: s.Count("encoders"),
		Fences: s.On("fences"), Measured: measured, Memory: s.Bytes("memory"), Warn: s.Warn,
	})
}

// variants are all plans but Auto, which is one of the others, and the usual one with fences.
func variants() (out []backend.Variant) {
	for _, plan := range plans[:Auto] {
		out = append(out, backend.Variant{Name: plan, Set: []backend.Given{{Option: "plan", Value: plan}}})
	}
	return append(out, backend.Variant{Name: "concurrent, by fences", Set: []backend.Given{{Option: "plan", Value: plans[0]}, {Option: "fences"}}})
}

// found returns the GPUs of the machine. It opens one, because a listed GPU may still fail to open.
func found() ([]backend.Found, error) {
	all, err := List()
	if err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("metal: the system has no GPU")
	}
	out := make([]backend.Found, len(all))
	for i, x := range all {
		out[i] = backend.Found{Name: x.Name, Text: x.line(), Default: x.Default, ThreadgroupBytes: x.ThreadgroupBytes, Facts: x}
	}
	return out, nil
}

// line describes a GPU in one line.
func (x Description) line() string {
	family := "none of Apple's families"
	if x.Family > 0 {
		family = fmt.Sprintf("Apple family %d", x.Family)
	}
	of := "memory of its own"
	if x.Unified {
		of = "the host's memory"
	}
	s := fmt.Sprintf("%s: %s, %s, of it %s in use at most, buffers to %s, %s for a threadgroup", x.Name, family, of,
		backend.FormatBytes(x.Memory), backend.FormatBytes(x.MaxBuffer), backend.FormatBytes(int64(x.ThreadgroupBytes)))
	if x.Families != "" {
		s += fmt.Sprintf("; %s, %s", x.Families, x.Architecture)
	}
	return s
}

// Litmus runs litmus tests on the GPU; of the options it sets Device and EmptyGrids.
func (d *Device) Litmus(ctx context.Context, o verdict.Options) ([]verdict.Result, error) {
	o.Device = d.RegistryID
	// Metal's API validation ends a process that dispatches an empty grid.
	o.EmptyGrids = cmp.Or(os.Getenv("MTL_DEBUG_LAYER"), os.Getenv("METAL_DEVICE_WRAPPER_TYPE"), "0") == "0"
	return litmus.Run(ctx, o)
}
