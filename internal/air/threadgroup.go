package air

import (
	"fmt"
	"regexp"
	"strings"
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
func (m *module) threadgroupVariables(blocks []*block) (lines []string, count int, err error) {
	var fields []string
	local := map[string]string{} // by global, with its @
	kept := m.globals[:0]
	for _, g := range m.globals {
		v := threadgroupVariable.FindStringSubmatch(g.text)
		if v == nil {
			kept = append(kept, g)
			continue
		}
		typ := typeOf(v[1])
		at := fmt.Sprintf("%%mlxc.tg%d", len(fields))
		local["@"+g.name] = at
		lines = append(lines, fmt.Sprintf("  %s = getelementptr %s, ptr addrspace(3) %%mlxc.memory, i32 0, i32 %d, i32 1", at, memoryType, len(fields)))
		// The array without elements makes the variable begin at a multiple of 16. What stands
		// behind it keeps what leaves it from the next one.
		fields = append(fields, fmt.Sprintf("{ [0 x <4 x i32>], %s, [16 x i8] }", typ))
		if a := alignment.FindStringSubmatch(g.text); a != nil && len(a[1]) > 1 && a[1] != "16" {
			return nil, 0, fmt.Errorf("the threadgroup variable @%s asks for an alignment of %s, more than 16", g.name, a[1])
		}
	}
	m.globals = kept
	m.types = append(m.types, memoryType+" = type { "+strings.Join(fields, ", ")+" }")
	if len(fields) == 0 {
		return nil, 0, nil
	}
	known := map[string]string{} // names of expressions
	for _, b := range blocks {
		for i, l := range b.lines {
			for {
				begin, end := findLocal(l, local)
				if begin < 0 {
					break
				}
				l = l[:begin] + local[l[begin:end]] + l[end:]
				// An expression of constants with the variable in it, and what that is part of in
				// turn, become instructions.
				for {
					open := enclosing(l, begin)
					if open < 0 {
						break
					}
					k := constantExpression.FindStringSubmatchIndex(l[:open])
					if k == nil {
						break
					}
					end := matching(l, open)
					if end < 0 {
						return nil, 0, fmt.Errorf("this line is not understood: %.120q", l)
					}
					expression := l[k[2] : end+1]
					value, ok := known[expression]
					if !ok {
						value = fmt.Sprintf("%%mlxc.tgx%d", len(known))
						known[expression] = value
						lines = append(lines, fmt.Sprintf("  %s = %s %s", value, l[k[2]:k[3]], l[open+1:end]))
					}
					l = l[:k[2]] + value + l[end+1:]
					begin = k[2]
				}
			}
			b.lines[i] = l
		}
	}
	return lines, len(fields), nil
}

var alignment = regexp.MustCompile(`, align ([0-9]+)`)

var globalUse = regexp.MustCompile(`@` + symbol)

// findLocal returns where the first use of one of the globals stands in a line, or -1.
func findLocal(l string, local map[string]string) (begin, end int) {
	for from := 0; ; {
		at := globalUse.FindStringIndex(l[from:])
		if at == nil {
			return -1, -1
		}
		if _, ok := local[l[from+at[0]:from+at[1]]]; ok {
			return from + at[0], from + at[1]
		}
		from += at[1]
	}
}

// enclosing returns the bracket ( that is open at a place of a line, or -1.
func enclosing(l string, at int) int {
	depth := 0
	for i := at - 1; i >= 0; i-- {
		switch l[i] {
		case ')', ']', '}':
			depth++
		case '[', '{':
			depth--
		case '(':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}
