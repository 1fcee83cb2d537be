package host

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// memoryType is the type of all threadgroup variables of a kernel together, which lie in a
// piece of memory that the executor gives each threadgroup.
const memoryType = "%mlxc.threadgroup"

var threadgroupVariable = regexp.MustCompile(`\baddrspace\(3\) (?:externally_initialized )?(?:global|constant) (.*)$`)

// constantExpression is what stands before the bracket of an expression that is a constant.
var constantExpression = regexp.MustCompile(`\b(getelementptr(?: (?:inbounds|nuw|nusw|inrange\([^)]*\)))*|addrspacecast|bitcast|ptrtoint|inttoptr|trunc|add(?: nuw| nsw)*|sub(?: nuw| nsw)*) $`)

// threadgroupVariables makes locals of a kernel's threadgroup variables: lines that compute
// their addresses, for the beginning of the function, of %mlxc.memory, in address space 3.
// The module gets a type that has room for all of them.
func (m *hostModule) threadgroupVariables(blocks []*llvm.Block) (lines []string, count int, err error) {
	var fields []string
	local := map[string]string{} // by global, with its @
	kept := m.Globals[:0]
	for _, g := range m.Globals {
		v := threadgroupVariable.FindStringSubmatch(g.Text)
		if v == nil {
			kept = append(kept, g)
			continue
		}
		typ := llvm.TypeOf(v[1])
		at := fmt.Sprintf("%%mlxc.tg%d", len(fields))
		local["@"+g.Name] = at
		lines = append(lines, fmt.Sprintf("  %s = getelementptr %s, ptr addrspace(3) %%mlxc.memory, i32 0, i32 %d, i32 1", at, memoryType, len(fields)))
		// The array without elements makes the variable begin at a multiple of 16. What stands
		// behind it keeps what leaves it from the next one.
		fields = append(fields, fmt.Sprintf("{ [0 x <4 x i32>], %s, [16 x i8] }", typ))
		if a := alignment.FindStringSubmatch(g.Text); a != nil && len(a[1]) > 1 && a[1] != "16" {
			return nil, 0, fmt.Errorf("the threadgroup variable @%s asks for an alignment of %s, more than 16", g.Name, a[1])
		}
	}
	m.Globals = kept
	m.Types = append(m.Types, memoryType+" = type { "+strings.Join(fields, ", ")+" }")
	if len(fields) == 0 {
		return nil, 0, nil
	}
	known := map[string]string{} // names of expressions
	for _, b := range blocks {
		for i, l := range b.Lines {
			var more []string
			if b.Lines[i], more = withLocals(l, local, known); len(more) > 0 {
				lines = append(lines, more...)
			}
		}
	}
	return lines, len(fields), nil
}

// withLocals is a line in which the names of globals are those of locals. An expression of
// constants with such a name in it, and what that is part of in turn, becomes an instruction:
// known has their names, and the new ones are returned. The line is read once, from left to
// right; of the brackets that are open, each knows whether such a name stands directly in it.
func withLocals(l string, local, known map[string]string) (_ string, more []string) {
	llvm.Counted(len(l))
	type bracket struct {
		at    int // in out
		round bool
		holds bool
	}
	var open []bracket
	var out []byte
	// hold notes a name in the innermost round bracket.
	hold := func() {
		for k := len(open) - 1; k >= 0; k-- {
			if open[k].round {
				open[k].holds = true
				return
			}
		}
	}
	changed := false
	for i := 0; i < len(l); {
		switch c := l[i]; {
		case c == '@':
			end := i + 1
			if end < len(l) && l[end] == '"' {
				end = min(llvm.Closing(l, end)+1, len(l))
			} else {
				for end < len(l) && inSymbol(l[end]) {
					end++
				}
			}
			if to, ok := local[l[i:end]]; ok {
				out = append(out, to...)
				hold()
				changed = true
			} else {
				out = append(out, l[i:end]...)
			}
			i = end
			continue
		case c == '"':
			end := min(llvm.Closing(l, i)+1, len(l))
			out = append(out, l[i:end]...)
			i = end
			continue
		case c == '(' || c == '[' || c == '{':
			open = append(open, bracket{at: len(out), round: c == '('})
		case (c == ')' || c == ']' || c == '}') && len(open) > 0:
			b := open[len(open)-1]
			open = open[:len(open)-1]
			if !b.holds {
				break
			}
			from := max(0, b.at-llvm.MaxNesting) // what an expression begins with is short
			k := constantExpression.FindSubmatchIndex(out[from:b.at])
			if k == nil {
				break
			}
			operation, operands := string(out[from+k[2]:from+k[3]]), string(out[b.at+1:])
			expression := operation + "(" + operands
			value, ok := known[expression]
			if !ok {
				value = fmt.Sprintf("%%mlxc.tgx%d", len(known))
				known[expression] = value
				more = append(more, fmt.Sprintf("  %s = %s %s", value, operation, operands))
			}
			out = append(out[:from+k[2]], value...)
			hold()
			i++
			continue
		}
		out = append(out, l[i])
		i++
	}
	if !changed {
		return l, nil
	}
	return string(out), more
}

// inSymbol reports whether a name without quotes may have the character.
func inSymbol(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '$' || c == '.' || c == '_'
}

var alignment = regexp.MustCompile(`, align ([0-9]+)`)
