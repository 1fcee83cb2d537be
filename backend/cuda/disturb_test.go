//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
)

// waits matches where a kernel waits and triggers its dependents: what is inserted behind it delays the kernel while
// the next one has already begun.
var waits = regexp.MustCompile(`griddepcontrol\.wait;(\s*griddepcontrol\.launch_dependents;)?`)

// Disturb inserts a random delay of up to so many nanoseconds behind the wait of all kernels that a device compiles
// from now on, and removes the wait of the kernel named unready. It returns how many waits were removed so far.
func (d *Device) Disturb(nanoseconds int, unready string) *int {
	removed := 0
	d.disturb.text = func(kernel string, text []byte) []byte {
		delay := fmt.Sprintf("{ .reg .b32 %%mlxc; mov.u32 %%mlxc, %%clock; shr.u32 %%mlxc, %%mlxc, 4; rem.u32 %%mlxc, %%mlxc, %d; nanosleep.u32 %%mlxc; }", nanoseconds)
		return waits.ReplaceAllFunc(text, func(wait []byte) []byte {
			if kernel == unready {
				removed++
				_, wait, _ = bytes.Cut(wait, []byte(";"))
			}
			return append(bytes.Clone(wait), "\n\t"+delay...)
		})
	}
	return &removed
}

// Without leaves edge n out of CUDA graphs that are made from now on, none if n is −1, and returns all edges of the
// last one, as pairs of its nodes' numbers: steps, then joins.
func (d *Device) Without(n int) *[][2]int {
	var seen [][2]int
	d.disturb.arcs = func(all []arc) []arc {
		seen = nil
		for _, a := range all {
			seen = append(seen, [2]int{int(a.from), int(a.to)})
		}
		if n >= 0 && n < len(all) {
			return slices.Delete(slices.Clone(all), n, n+1)
		}
		return all
	}
	return &seen
}
