package llvm

import (
	"regexp"
	"strconv"
	"strings"
)

// Layout is the size of a type, and what its address is a multiple of; 0 and 0 of one that is not known.
type Layout struct{ Size, align int }

// maxLaidOut is the most bytes of a type whose layout is known.
const maxLaidOut = 1 << 16

// Layout lays a type out as clang does for a CPU. Where it is wrong the variable has no states (origin.go).
func (m *Module) Layout(typ string) Layout {
	if m.layouts == nil {
		m.layouts = map[string]Layout{}
	}
	l, ok := m.layouts[typ]
	if !ok {
		m.layouts[typ] = Layout{} // of one that holds itself, nothing is known
		l = m.lay(typ)
		m.layouts[typ] = l
	}
	return l
}

var arrayType = regexp.MustCompile(`^\[([0-9]+) x (.*)\]$`)

func (m *Module) lay(typ string) Layout {
	switch {
	case strings.HasPrefix(typ, "["):
		a := arrayType.FindStringSubmatch(typ)
		if a == nil {
			return Layout{}
		}
		n, err := strconv.Atoi(a[1])
		e := m.Layout(a[2])
		if err != nil || n > maxLaidOut || e.Size > maxLaidOut {
			return Layout{}
		}
		return Layout{n * e.Size, e.align}
	case strings.HasPrefix(typ, "%"):
		for _, t := range m.Types {
			if body, ok := strings.CutPrefix(t, typ+" = type "); ok {
				return m.Layout(body)
			}
		}
		return Layout{}
	case strings.HasPrefix(typ, "<{") && strings.HasSuffix(typ, "}>"):
		out := Layout{0, 1}
		for _, f := range Split(typ[2 : len(typ)-2]) {
			l := m.Layout(f)
			if l.align == 0 || out.Size > maxLaidOut {
				return Layout{}
			}
			out.Size += l.Size
		}
		return out
	case strings.HasPrefix(typ, "{") && strings.HasSuffix(typ, "}"):
		out := Layout{0, 1}
		for _, f := range Split(typ[1 : len(typ)-1]) {
			l := m.Layout(f)
			if l.align == 0 || out.Size > maxLaidOut {
				return Layout{}
			}
			out.Size = (out.Size+l.align-1)/l.align*l.align + l.Size
			out.align = max(out.align, l.align)
		}
		out.Size = (out.Size + out.align - 1) / out.align * out.align
		return out
	}
	n := BytesOf(typ)
	if n == 0 {
		return Layout{}
	}
	align := 1
	for align < n {
		align *= 2
	}
	return Layout{align, align} // a vector of three takes the room of four
}
