package air

import (
	"regexp"
	"strconv"
	"strings"
)

// layout is the size of a type, and what its address is a multiple of; 0 and 0 of one that is not known.
type layout struct{ size, align int }

// maxShade is the most bytes of a private variable whose states are kept.
const maxShade = 1 << 16

// shadeBytes is how many bytes of a variable of the type have states: all, or none where it is too large or not known.
func (m *module) shadeBytes(typ string) int {
	if n := m.layout(typ).size; n <= maxShade {
		return n
	}
	return 0
}

// layout lays a type out as clang does for a CPU. Where it is wrong the variable has no states (origin.go).
func (m *module) layout(typ string) layout {
	if m.layouts == nil {
		m.layouts = map[string]layout{}
	}
	l, ok := m.layouts[typ]
	if !ok {
		m.layouts[typ] = layout{} // of one that holds itself, nothing is known
		l = m.lay(typ)
		m.layouts[typ] = l
	}
	return l
}

var arrayType = regexp.MustCompile(`^\[([0-9]+) x (.*)\]$`)

func (m *module) lay(typ string) layout {
	switch {
	case strings.HasPrefix(typ, "["):
		a := arrayType.FindStringSubmatch(typ)
		if a == nil {
			return layout{}
		}
		n, err := strconv.Atoi(a[1])
		e := m.layout(a[2])
		if err != nil || n > maxShade || e.size > maxShade {
			return layout{}
		}
		return layout{n * e.size, e.align}
	case strings.HasPrefix(typ, "%"):
		for _, t := range m.types {
			if body, ok := strings.CutPrefix(t, typ+" = type "); ok {
				return m.layout(body)
			}
		}
		return layout{}
	case strings.HasPrefix(typ, "<{") && strings.HasSuffix(typ, "}>"):
		out := layout{0, 1}
		for _, f := range splitTop(typ[2 : len(typ)-2]) {
			l := m.layout(f)
			if l.align == 0 || out.size > maxShade {
				return layout{}
			}
			out.size += l.size
		}
		return out
	case strings.HasPrefix(typ, "{") && strings.HasSuffix(typ, "}"):
		out := layout{0, 1}
		for _, f := range splitTop(typ[1 : len(typ)-1]) {
			l := m.layout(f)
			if l.align == 0 || out.size > maxShade {
				return layout{}
			}
			out.size = (out.size+l.align-1)/l.align*l.align + l.size
			out.align = max(out.align, l.align)
		}
		out.size = (out.size + out.align - 1) / out.align * out.align
		return out
	}
	n := bytesOf(typ)
	if n == 0 {
		return layout{}
	}
	align := 1
	for align < n {
		align *= 2
	}
	return layout{align, align} // a vector of three takes the room of four
}
