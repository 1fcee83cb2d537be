//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
)

// waits are where a kernel waits, and lets the next one begin: what comes behind takes time in which
// that one is there already.
var waits = regexp.MustCompile(`griddepcontrol\.wait;(\s*griddepcontrol\.launch_dependents;)?`)

// Disturb has a device's kernels, which are compiled from now on, take a random time, by up to so many
// nanoseconds for each block, between waiting and working. A kernel whose name is that of unready does not
// wait. It returns how many waits were removed so far.
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

// Without leaves an edge out of graphs that are made from now on, and returns all that there were in the last
// one, as pairs of commands' numbers in the list; −1 for a join.
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
