package air

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// WaitMarker is the function of a source that says: from here on a thread may access what other
// dispatches write (docs/kernels.md). It does nothing but in an entry that is launched before the grids
// that it depends on have ended, where it waits for them.
const WaitMarker = "air.wait_for_dispatches"

// prefetchMarker is the function of a source that says: what lies at an address will be read. It does nothing
// but on a GPU, whose cache then asks the memory for the line.
const prefetchMarker = "air.will_read"

// declaresMarker reports whether a module declares a marker.
func (m *Module) declaresMarker(name string) bool {
	return slices.ContainsFunc(m.Declares, func(d llvm.Declaration) bool { return strings.Trim(d.Name, `"`) == name })
}

// without takes the calls of a marker out, whose lines are these.
func (m *Module) without(name string, is func(string) bool) {
	if !m.declaresMarker(name) {
		return
	}
	for _, f := range m.Funcs {
		f.Lines = slices.DeleteFunc(f.Lines, is)
	}
	m.Declares = slices.DeleteFunc(m.Declares, func(d llvm.Declaration) bool { return strings.Trim(d.Name, `"`) == name })
}

// WithoutWaits takes the calls of the marker of waits out, withoutPrefetches those of the other.
func (m *Module) WithoutWaits()      { m.without(WaitMarker, IsMarker) }
func (m *Module) withoutPrefetches() { m.without(prefetchMarker, IsPrefetch) }

// IsAirMarker reports whether a function of AIR is a marker: nothing is exchanged there.
func IsAirMarker(name string) bool { return name == WaitMarker || name == prefetchMarker }

// callsNothing reports whether a line calls a function that returns nothing.
func callsNothing(l, name string) bool {
	if !strings.Contains(l, name) {
		return false
	}
	in := llvm.Read(l)
	return in != nil && in.Callee == name && in.Type == "void"
}

// IsMarker reports whether a line calls the marker of waits, IsPrefetch whether it calls the other one.
func IsMarker(l string) bool   { return callsNothing(l, WaitMarker) }
func IsPrefetch(l string) bool { return callsNothing(l, prefetchMarker) }
