package calls

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/files/sources"
)

// Target is what the bodies are for.
type Target uint8

// The targets.
const (
	Host  Target = iota // x86-64: pointers keep their address spaces
	PTX                 // nvptx64: the same, but for 2, which becomes 1
	ARM64               // arm64: as Host
)

// Function is a function that a module declares. Types are LLVM's, without attributes:
// "float", "<2 x half>", "ptr addrspace(1)".
type Function struct {
	Name   string
	Result string
	Params []string
}

// Definition is the body of a function with what it needs beside it. Another definition may
// need the same: a module takes each of these once, by its text.
type Definition struct {
	// Text is the function's define.
	Text string
	// Support are whole definitions of internal functions that Text calls.
	Support []string
	// Declares are whole declare lines of LLVM intrinsics that Text and Support call.
	Declares []string
}

// Exchanges says whether the function passes values between threads or waits for them: it
// needs the executor and has no definition here.
func Exchanges(name string) bool {
	op, ok := strings.CutPrefix(name, "air.")
	if !ok {
		return false
	}
	for _, p := range []string{"simd_", "quad_", "wg.", "simdgroup.", "simdgroup_"} {
		if strings.HasPrefix(op, p) {
			return true
		}
	}
	return false
}

// Define returns the body of a function. The error says what is missing, by name.
func Define(f Function, t Target) (Definition, error) {
	d, err := define(f, t)
	if err != nil {
		return Definition{}, fmt.Errorf("%s: %w", printable(f.Name), err)
	}
	return d, nil
}

// Module returns the definitions of all functions as one text: intrinsics, what the bodies
// share, and the bodies in the order given.
func Module(fs []Function, t Target) (string, error) {
	declares, support := map[string]bool{}, map[string]bool{} // each once, however many ask for it
	var texts []string
	for _, f := range fs {
		d, err := Define(f, t)
		if err != nil {
			return "", err
		}
		for _, l := range d.Declares {
			declares[l] = true
		}
		for _, s := range d.Support {
			support[s] = true
		}
		texts = append(texts, d.Text)
	}
	parts := slices.Concat(slices.Sorted(maps.Keys(declares)), slices.Sorted(maps.Keys(support)), texts)
	return strings.Join(parts, "\n") + "\n", nil
}

func define(f Function, t Target) (Definition, error) {
	if t > ARM64 {
		return Definition{}, fmt.Errorf("no target %d", t)
	}
	if Exchanges(f.Name) {
		return Definition{}, fmt.Errorf("exchanges values between threads, which is the executor's")
	}
	name, err := parseName(f.Name)
	if err != nil {
		return Definition{}, err
	}
	b := &body{target: t, name: f.Name}
	if b.result, err = parseType(f.Result); err != nil {
		return Definition{}, fmt.Errorf("result: %w", err)
	}
	for i, p := range f.Params {
		ty, err := parseType(p)
		if err == nil && ty.elem == "void" {
			err = fmt.Errorf("void")
		}
		if err != nil {
			return Definition{}, fmt.Errorf("parameter %d: %w", i, err)
		}
		b.args = append(b.args, value{ty, fmt.Sprintf("%%a%d", i)})
	}
	if err := name.write(b); err != nil {
		return Definition{}, err
	}
	return b.definition(), nil
}

// printable keeps hostile names from filling a message.
func printable(name string) string {
	if len(name) > 120 {
		name = name[:120] + "…"
	}
	for _, r := range name {
		if r < ' ' || r > '~' && r != '…' {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}

//go:embed *.go math/math.ll
var own embed.FS

// Digest is the digest of all files that the bodies are made of. Keys of compiled code include it.
var Digest = sync.OnceValue(func() [sha256.Size]byte {
	h := sha256.New()
	sources.Add(h, own)
	return [sha256.Size]byte(h.Sum(nil))
})
