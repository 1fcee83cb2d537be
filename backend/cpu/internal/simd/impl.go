package simd

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"
)

//go:generate go run ./gen

// Impl names one implementation of the loops.
type Impl string

// The implementations, of each architecture worst first.
const (
	Generic Impl = "generic" // Go; everywhere
	AVX2    Impl = "avx2"    // amd64 with AVX2, FMA and F16C
	AVX512  Impl = "avx512"  // amd64 with AVX-512 F, BW, DQ and VL
	NEON    Impl = "neon"    // arm64
)

// EnvVar overrides the choice made at start; its value is an [Impl].
const EnvVar = "MLXC_SIMD"

var (
	available = detect() // worst first; never empty
	active    Impl

	// Environment is the error of an invalid value of [EnvVar], or nil. After an error the best implementation is in
	// use, and a device returns the error before it computes anything.
	Environment error
)

func init() { active, Environment = choose(os.Getenv(EnvVar)) }

// Available returns the implementations that this machine can run, worst first.
func Available() []Impl { return slices.Clone(available) }

// Active returns the implementation in use.
func Active() Impl { return active }

// Use selects an implementation for the whole process and returns the one that
// was in use. It is meant for tests and measurements: nothing synchronizes it
// with loops that are running.
func Use(i Impl) (previous Impl, err error) {
	if !slices.Contains(available, i) {
		return active, unavailable(string(i))
	}
	previous, active = active, i
	return previous, nil
}

// choose returns the implementation of the given name. For an unknown name it returns the best one with an
// error, because a measurement must not silently use another implementation than the one asked for.
func choose(name string) (Impl, error) {
	best := available[len(available)-1]
	if name == "" {
		return best, nil
	}
	if !slices.Contains(available, Impl(name)) {
		return best, fmt.Errorf("the environment has %s=%q: %w", EnvVar, name, unavailable(name))
	}
	return Impl(name), nil
}

// detect returns the implementations that this machine can run, worst first.
func detect() []Impl {
	impls := []Impl{Generic}
	switch runtime.GOARCH {
	case "amd64":
		x := &cpu.X86
		if x.HasAVX2 && x.HasFMA && x.HasBMI2 && x.HasF16C {
			impls = append(impls, AVX2)
			if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
				impls = append(impls, AVX512)
			}
		}
	case "arm64":
		impls = append(impls, NEON) // part of every arm64 that Go runs on
	}
	return impls
}

func unavailable(name string) error {
	names := make([]string, len(available))
	for i, a := range available {
		names[i] = string(a)
	}
	return fmt.Errorf("simd: implementation %q: this machine has %s", name, strings.Join(names, ", "))
}
