package llvm

import (
	"strconv"
	"strings"
)

// Layout is the size of a type, and what its address is a multiple of; 0 and 0 of one that is not known.
type Layout struct{ Size, align int }

// maxLaidOut is the most bytes of a type whose layout is known.
const maxLaidOut = 1 << 16

// Layout lays a type out as clang does for a CPU. Who relies on it asks LLVM whether it is right.
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

// ArrayOf returns how many elements an array has, and their type; false of another type.
func ArrayOf(typ string) (n int, elem string, ok bool) {
	if !strings.HasPrefix(typ, "[") || !strings.HasSuffix(typ, "]") {
		return 0, "", false
	}
	number, elem, ok := strings.Cut(typ[1:len(typ)-1], " x ")
	n, err := strconv.Atoi(number)
	return n, elem, ok && err == nil && n >= 0
}

// Fields are the types of the members of a structure; false of another type.
func Fields(typ string) (types []string, ok bool) {
	if strings.HasPrefix(typ, "<{") && strings.HasSuffix(typ, "}>") {
		typ = typ[1 : len(typ)-1]
	}
	if !strings.HasPrefix(typ, "{") || !strings.HasSuffix(typ, "}") {
		return nil, false
	}
	return Split(typ[1 : len(typ)-1]), true
}

func (m *Module) lay(typ string) Layout {
	if strings.HasPrefix(typ, "%") {
		for _, t := range m.Types {
			if body, ok := strings.CutPrefix(t, typ+" = type "); ok {
				return m.Layout(body)
			}
		}
		return Layout{}
	}
	if n, elem, ok := ArrayOf(typ); ok {
		e := m.Layout(elem)
		if n > maxLaidOut || e.Size > maxLaidOut {
			return Layout{}
		}
		return Layout{n * e.Size, e.align}
	}
	if fields, ok := Fields(typ); ok {
		out := Layout{0, 1}
		for _, f := range fields {
			l := m.Layout(f)
			if l.align == 0 || out.Size > maxLaidOut {
				return Layout{}
			}
			if typ[0] == '{' { // else it is packed
				out.Size = (out.Size + l.align - 1) / l.align * l.align
				out.align = max(out.align, l.align)
			}
			out.Size += l.Size
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
