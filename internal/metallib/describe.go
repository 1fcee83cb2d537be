package metallib

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib/bitcode"
)

// Describe reads a kernel's interface from its bitcode: arguments, function constants and threadgroup memory.
func (l *Library) Describe(name string) (*air.Kernel, error) {
	k, err := l.Kernel(name)
	if err != nil {
		return nil, err
	}
	data, err := l.extract(k)
	if err != nil {
		return nil, err
	}
	m, err := bitcode.Read(data)
	if err != nil {
		return nil, l.within(k, err)
	}
	out, err := Describe(m)
	if err != nil {
		return nil, l.within(k, err)
	}
	if out.Name != name {
		return nil, l.within(k, fmt.Errorf("the bitcode has the kernel %q", out.Name))
	}
	listed, err := l.constants(k)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(listed, out.Constants) {
		return nil, l.within(k, fmt.Errorf("the library lists the function constants %v, the bitcode has %v", listed, out.Constants))
	}
	return out, nil
}

// Describe returns the interface of the only kernel in a module.
//
// The named metadata air.kernel lists a node for each kernel: the function, a node that is
// empty, a node of the arguments, and perhaps further nodes, of which one may be
// {"air.max_work_group_size", n}.
func Describe(m *bitcode.Module) (*air.Kernel, error) {
	kernels := m.Named("air.kernel")
	if len(kernels) != 1 {
		return nil, fmt.Errorf("metadata air.kernel lists %d kernels, one is expected", len(kernels))
	}
	node := kernels[0]
	f, ok := node.Operand(0).Function()
	if !ok {
		return nil, fmt.Errorf("metadata air.kernel names no function")
	}
	k := &air.Kernel{Name: f.Name, AIR: version(m, "air.version", 0), Metal: version(m, "air.language_version", 1)}
	args, ok := node.Operand(2).Node()
	if !ok {
		return nil, fmt.Errorf("metadata air.kernel has no arguments")
	}
	if args.Len() != f.Params {
		return nil, fmt.Errorf("metadata air.kernel has %d arguments, the function has %d", args.Len(), f.Params)
	}
	for i := range args.Len() {
		a, err := argument(args.Operand(i), i)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		k.Args = append(k.Args, a)
	}
	for i := 3; i < node.Len(); i++ {
		n, _ := node.Operand(i).Node()
		if key, _ := n.Operand(0).Text(); key == "air.max_work_group_size" {
			most, ok := n.Operand(1).Int()
			if !ok || most < 1 || most > 1<<20 {
				return nil, fmt.Errorf("metadata air.max_work_group_size has no number of threads")
			}
			k.MaxThreadgroup = int(most)
		}
	}
	if err := constants(m, k); err != nil {
		return nil, err
	}
	for _, n := range m.Named("air.compile_options") {
		if option, ok := text(n.Operand(0)); ok {
			k.Options = append(k.Options, strings.TrimPrefix(option, "air.compile."))
		}
	}
	for i := range m.Globals {
		g := &m.Globals[i]
		if g.AddressSpace != uint64(air.Threadgroup) {
			continue
		}
		if g.Size < 0 {
			return nil, fmt.Errorf("threadgroup variable %q has no size", g.Name)
		}
		k.Threadgroup = append(k.Threadgroup, air.ThreadgroupMemory{Name: g.Name, Size: g.Size, Align: g.Align})
	}
	return k, nil
}

// version reads {major, minor, patch} of a named node, from an operand on.
func version(m *bitcode.Module, name string, from int) (v air.Version) {
	nodes := m.Named(name)
	if len(nodes) == 0 {
		return v
	}
	for i, part := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if n, ok := nodes[0].Operand(from + i).Int(); ok && n >= 0 && n < 1<<16 {
			*part = int(n)
		}
	}
	return v
}

// constants reads the function constants: {variable, type, name, index, true} each.
func constants(m *bitcode.Module, k *air.Kernel) error {
	seen := map[int]bool{}
	for i, n := range m.Named("air.function_constants") {
		_, isGlobal := n.Operand(0).Global()
		t, hasType := text(n.Operand(1))
		name, hasName := text(n.Operand(2))
		index, hasIndex := n.Operand(3).Int()
		if !isGlobal || !hasType || !hasName || !hasIndex || index < 0 || index > 0xffff {
			return fmt.Errorf("function constant %d of metadata air.function_constants has no variable, type, name or index", i)
		}
		if seen[int(index)] {
			return fmt.Errorf("two function constants have index %d", index)
		}
		seen[int(index)] = true
		k.Constants = append(k.Constants, air.FunctionConstant{Name: name, Index: int(index), Type: t})
	}
	return nil
}
