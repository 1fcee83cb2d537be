package mslc

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// described matches an entry of the array msl_arguments_N.
var described = regexp.MustCompile(`%"struct\.msl::argument" \{ ptr (@[^ ,]+|addrspacecast \(ptr addrspace\(1\) (@[^ ,]+) to ptr\)), i64 (\d+), i64 (\d+) \}`)

// describe describes kernel n of a unit: its arguments as the source declares them, with the
// types that clang has found, and the rest as the module has it.
func (m *module) describe(tree *msltree.Unit, n int, e msltree.Entry) (*air.Kernel, error) {
	k := &air.Kernel{Name: e.Host, AIR: air.Version{Major: 2, Minor: 6}, Metal: air.Version{Major: 3, Minor: 1}, Options: m.options}
	list := m.get(fmt.Sprintf("@msl_arguments_%d", n))
	body := m.get(symbol(e.Host))
	if list == nil || body == nil {
		return nil, fmt.Errorf("the compiled module lacks it")
	}
	types := described.FindAllStringSubmatch(list.text, -1)
	if len(types) != len(e.Function.Params) {
		return nil, fmt.Errorf("%d arguments are described, it has %d", len(types), len(e.Function.Params))
	}
	used := map[string]bool{}
	for _, r := range body.refs {
		used[r] = true
	}
	bound, err := bind(tree, e.Function)
	if err != nil {
		return nil, err
	}
	for i, p := range e.Function.Params {
		b := bound[i]
		name := types[i][1]
		if types[i][2] != "" {
			name = types[i][2]
		}
		a := air.Arg{Name: p.Name, Attribute: b.attribute, Index: max(b.index, 0), If: b.condition}
		if a.Type, err = m.spelling(name); err != nil {
			return nil, err
		}
		if strings.Contains(tree.TypeText(p), "<") {
			// AIR leaves out template arguments that stand in the parameter, and no others.
			a.Type, _, _ = strings.Cut(a.Type, "<")
		}
		if b.kind != "value" {
			if a.TypeSize, err = strconv.ParseInt(types[i][3], 10, 64); err != nil {
				return nil, err
			}
			if a.TypeAlign, err = strconv.ParseInt(types[i][4], 10, 64); err != nil {
				return nil, err
			}
			switch p.Shape {
			case msltree.Reference:
				a.Size = a.TypeSize
			case msltree.Array:
				if n, err := msltree.Product(e.Substitute(p.Count)); err == nil {
					a.Size = n * a.TypeSize
				}
			}
			a.Space = map[string]air.Space{"device": air.Device, "constant": air.Constant, "threadgroup": air.Threadgroup}[b.kind]
			a.Access = air.ReadWrite
			if p.Constant {
				a.Access = air.Read
			}
		}
		// clang numbers parameters that have no name from %0 on.
		a.Unused = countUses(body.text, i) == 1
		k.Args = append(k.Args, a)
	}
	if mostThreads(e.Function) != "" {
		g := m.get(fmt.Sprintf("@msl_most_of_%d", n))
		if g == nil {
			return nil, fmt.Errorf("max_total_threads_per_threadgroup is missing")
		}
		_, text, _ := strings.Cut(g.text, " i64 ")
		text, _, _ = strings.Cut(text, ",")
		if k.MaxThreadgroup, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("max_total_threads_per_threadgroup: %w", err)
		}
	}
	return k, m.reached(k)
}

// reached adds to k what depends on the code that it reaches: function constants and threadgroup
// memory.
func (m *module) reached(k *air.Kernel) error {
	needed := m.closure(symbol(k.Name))
	conditions := map[string]bool{}
	for _, a := range k.Args {
		if a.If != "" {
			conditions[a.If] = true
		}
	}
	for _, c := range m.constants {
		if needed[symbol(c.symbol)] || conditions[c.name] {
			k.Constants = append(k.Constants, air.FunctionConstant{Name: c.name, Index: c.index, Type: c.typ})
			delete(conditions, c.name)
		}
	}
	for name := range conditions {
		return fmt.Errorf("there is no function constant %s", name)
	}
	for _, e := range m.entities {
		if !needed[e.name] || !strings.HasPrefix(e.name, "@") || !strings.Contains(e.text, " addrspace(3) global ") {
			continue
		}
		v, err := threadgroupVariable(e)
		if err != nil {
			return err
		}
		k.Threadgroup = append(k.Threadgroup, v)
	}
	return nil
}

// bytes matches the definition of a threadgroup variable, which the rewriter has made an array of
// bytes. LLVM may have replaced it by a scalar.
var bytes = regexp.MustCompile(` addrspace\(3\) global (?:\[(\d+) x i8\]|(i8|i16|half|bfloat|i32|float|i64|double)) [^ ,]+(?:, align (\d+))?`)

func threadgroupVariable(e entity) (air.ThreadgroupMemory, error) {
	g := bytes.FindStringSubmatch(e.text)
	if g == nil {
		return air.ThreadgroupMemory{}, fmt.Errorf("the threadgroup variable %q has no size", clip(e.text))
	}
	v := air.ThreadgroupMemory{Name: strings.Trim(e.name[1:], `"`), Align: 1}
	switch g[2] {
	case "":
		v.Size, _ = strconv.ParseInt(g[1], 10, 64)
	case "i8":
		v.Size = 1
	case "i16", "half", "bfloat":
		v.Size = 2
	case "i32", "float":
		v.Size = 4
	default:
		v.Size = 8
	}
	if g[3] != "" {
		v.Align, _ = strconv.ParseInt(g[3], 10, 64)
	}
	return v, nil
}

// spelling returns the type that the function msl::spelling<T> names, whose own name the global
// holds.
func (m *module) spelling(global string) (string, error) {
	e := m.get(global)
	if e == nil {
		return "", fmt.Errorf("the type's name is missing")
	}
	_, text, ok := strings.Cut(e.text, "[T = ")
	end := strings.LastIndex(text, `]\00"`)
	if !ok || end < 0 {
		return "", fmt.Errorf("%q names no type", clip(e.text))
	}
	return metalType(text[:end]), nil
}

// scalars maps clang's names of types to Metal's.
var scalars = map[string]string{
	"unsigned char": "uchar", "signed char": "char", "unsigned short": "ushort", "unsigned int": "uint", "unsigned long": "ulong",
	"_Float16": "half", "__bf16": "bfloat",
}

var vector = regexp.MustCompile(`^(?:metal::)?(packed_)?vec<(.*), ([234])>$`)

// metalType is the name that Metal has for a type that clang has spelled.
func metalType(t string) string {
	t = strings.TrimPrefix(t, "metal::")
	if v := vector.FindStringSubmatch(t); v != nil {
		return v[1] + metalType(v[2]) + v[3]
	}
	if s, ok := scalars[t]; ok {
		return s
	}
	if name, args, ok := strings.Cut(strings.TrimSuffix(t, ">"), "<"); ok {
		list := strings.Split(args, ", ")
		for i := range list {
			list[i] = metalType(list[i])
		}
		return name + "<" + strings.Join(list, ", ") + ">"
	}
	return t
}

// countUses counts the mentions of parameter i of a function's definition.
func countUses(text string, i int) int {
	name := fmt.Sprintf("%%%d", i)
	n := 0
	for at := 0; ; {
		j := strings.Index(text[at:], name)
		if j < 0 {
			return n
		}
		at += j + len(name)
		if at == len(text) || text[at] < '0' || text[at] > '9' {
			n++
		}
	}
}

// closure returns the names of all entities that root reaches.
func (m *module) closure(root string) map[string]bool {
	seen := map[string]bool{}
	todo := []string{root}
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		e := m.get(name)
		if seen[name] || e == nil {
			continue
		}
		seen[name] = true
		todo = append(todo, e.refs...)
	}
	return seen
}
