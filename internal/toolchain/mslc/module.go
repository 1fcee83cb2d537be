package mslc

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// module is the text of an LLVM module, cut into its top-level entities.
type module struct {
	entities []entity
	byName   map[string]int // "@f", "%struct.s", "#3", "!7", "$c"
	named    []int          // named metadata, which nothing refers to

	options   []string // without the prefix air.compile.
	constants []functionConstant
	metadata  int // the first number that no metadata node has
}

// entity is a line of a module, or a function's definition.
type entity struct {
	name string // with its sigil; "" for named metadata
	text string
	refs []string // the names in text, each once
}

// parseModule cuts the output of clang into entities. It trusts the syntax, which clang prints.
func parseModule(text string) (*module, error) {
	m := &module{byName: map[string]int{}}
	for len(text) > 0 {
		line, rest, _ := strings.Cut(text, "\n")
		switch {
		case strings.HasPrefix(line, "define "):
			end := strings.Index(text, "\n}\n")
			if end < 0 {
				return nil, fmt.Errorf("%q does not end", clip(line))
			}
			line, rest = text[:end+2], text[end+3:]
			m.add(globalName(line), line)
		case strings.HasPrefix(line, "declare "):
			m.add(globalName(line), line)
		case strings.HasPrefix(line, "attributes #"):
			name, _, _ := strings.Cut(line[len("attributes "):], " ")
			m.add(name, line)
		case strings.HasPrefix(line, "@"), strings.HasPrefix(line, "%"), strings.HasPrefix(line, "$"), strings.HasPrefix(line, "!"):
			name := line[:llvm.NameEnd(line, 0)]
			if name[0] == '!' && !(len(name) > 1 && name[1] >= '0' && name[1] <= '9') {
				m.named = append(m.named, len(m.entities))
				m.add("", line)
				break
			}
			m.add(name, line)
		case line == "", strings.HasPrefix(line, ";"), strings.HasPrefix(line, "source_filename"), strings.HasPrefix(line, "target "):
		default:
			return nil, fmt.Errorf("%q is not known", clip(line))
		}
		text = rest
	}
	m.spaces()
	for i := range m.entities {
		e := &m.entities[i]
		e.refs = references(e.text)
		if strings.HasPrefix(e.name, "!") {
			var n int
			fmt.Sscanf(e.name, "!%d", &n)
			m.metadata = max(m.metadata, n+1)
		}
	}
	return m, nil
}

// spaces infers the address spaces of all functions, and declares what their calls need then.
func (m *module) spaces() {
	for i := range m.entities {
		e := &m.entities[i]
		if !strings.HasPrefix(e.text, "define ") {
			continue
		}
		text := inferSpaces(e.text, func(old, name string, spaces []int) {
			if d := m.get("@" + old); d != nil && m.get("@"+name) == nil {
				m.add("@"+name, declaration(d.text, old, name, spaces))
			}
		})
		m.entities[i].text = text // m.entities may have grown
	}
}

func (m *module) add(name, text string) {
	if name != "" {
		m.byName[name] = len(m.entities)
	}
	m.entities = append(m.entities, entity{name: name, text: text})
}

// get returns the entity of that name, or nil.
func (m *module) get(name string) *entity {
	if i, ok := m.byName[name]; ok {
		return &m.entities[i]
	}
	return nil
}

// globalName returns the name of the function in a define or declare line.
func globalName(line string) string {
	i := strings.IndexByte(line, '@')
	if i < 0 {
		return ""
	}
	return line[i:llvm.NameEnd(line, i)]
}

// references returns the names of entities in text, each once, in their order.
func references(text string) []string {
	var out []string
	seen := map[string]bool{}
	for i := 0; i < len(text); {
		switch text[i] {
		case '"': // a string
			end := strings.IndexByte(text[i+1:], '"')
			if end < 0 {
				return out
			}
			i += end + 2
		case '@', '%', '#', '!', '$':
			end := llvm.NameEnd(text, i)
			if name := text[i:end]; end > i+1 && !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
			i = end
		case ';': // a comment, up to the end of the line
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return out
			}
			i += end
		default:
			i++
		}
	}
	return out
}

// symbol is the name of a global as LLVM prints it.
func symbol(name string) string {
	if llvm.NameEnd("@"+name, 0) == len(name)+1 && name != "" && (name[0] < '0' || name[0] > '9') {
		return "@" + name
	}
	return "@\"" + name + "\""
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
