package host

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// access is a place at which a kernel touches memory.
type access struct {
	kind   int // accessLoad…, as abi.h has them
	space  int
	origin origin
	bytes  int // 0: varies
	line   int // of the source, 0 if unknown
	align  int // what Metal asks the address to be a multiple of; 0 if it is not known
}

const (
	accessLoad = iota
	accessStore
	accessAtomic // that reads and writes
	accessAtomicLoad
	accessAtomicStore
	accessCopy // that reads what goes elsewhere as it is
	// No accesses, but places at which a value must not be undefined (undefined.go).
	accessValue
	accessBranch
	accessAddress
)

var (
	// Calls of AIR's atomic functions are left where the body takes a pointer of another space.
	atomicName = regexp.MustCompile(`^air\.atomic\.(?:global|local|generic)\.([a-z]+)[a-z.]*\.[if]([0-9]+)$`)
	alignedTo  = regexp.MustCompile(`, align ([0-9]+)`)
	// touching is a line that accesses memory.
	touching = regexp.MustCompile(`^ +(?:%\S+ = )?(?:load|store|atomicrmw|cmpxchg) `)
)

// instrument puts a call before each access to memory that a kernel could miss: mlxc_touch or
// mlxc_private of the executor (host/check.c), which says where to go instead. extra are the
// lines that compute the addresses of threadgroup variables. It returns the places, and lines
// for the beginning of the function.
func (m *hostModule) instrument(blocks []*llvm.Block, extra []string, f *llvm.Function, k *air.Kernel, declared map[string]llvm.Declaration) (places []access, begin []string, err error) {
	o, begin, err := m.origins(blocks, extra, f, k)
	if err != nil {
		return nil, nil, err
	}
	u := m.follow(blocks, declared, o)
	for _, b := range blocks {
		var out []string
		for _, l := range b.Lines {
			n := len(places)
			lines, err := m.guard(l, o, &places)
			if err != nil {
				return nil, nil, err
			}
			before, after := u.lines(l, len(places) > n, &places)
			out = append(append(append(out, before...), lines...), after...)
		}
		b.Lines = out
	}
	m.DefinedUnset()
	if len(places) > 0xfffe {
		return nil, nil, fmt.Errorf("%d places touch memory, more than can be told apart", len(places))
	}
	return places, begin, nil
}

// guard is a line, with a call before each access in it.
func (m *hostModule) guard(l string, from *origins, places *[]access) ([]string, error) {
	asked, in := llvm.Read(l), llvm.Read(air.Unaligned(l)) // with its alignments, and without
	if in == nil {
		return []string{l}, nil
	} else if in.Op == "" && touching.MatchString(l) {
		return nil, fmt.Errorf("this line is not understood: %.120q", l)
	}
	var out []string
	dbg := in.Place
	align := 0
	if a := alignedTo.FindStringSubmatch(l); a != nil {
		align, _ = strconv.Atoi(a[1])
	}
	// check asks about an access to an operand, and returns the change of the line to where it is to go instead.
	check := func(kind int, operand llvm.Operand, size string, bytes int) (llvm.Change, error) {
		typ, value := operand.Type, operand.Value
		same := llvm.Change{At: operand.ValueAt, End: operand.End(), Text: value}
		if !operand.IsPointer() {
			return same, fmt.Errorf("this address is not understood: %.120q", typ+" "+value)
		}
		o := from.of[value]
		if strings.HasSuffix(value, ")") { // an expression of constants: a place in a table of the kernel's
			return same, nil
		}
		if strings.HasPrefix(value, "@") || o.kind == fromOwn || o.kind == fromUnsetMemory || value == "null" || value == "undef" || value == "poison" {
			return same, nil
		}
		space := 0
		_, _ = fmt.Sscanf(typ, "ptr addrspace(%d)", &space)
		n := len(*places)
		*places = append(*places, access{kind, space, o, bytes, m.Line(dbg), align})
		name := fmt.Sprintf("%%mlxc.at%d", n)
		plain, to := value, name
		if typ != "ptr" {
			plain, to = name+".from", name+".to"
			out = append(out, fmt.Sprintf("  %s = addrspacecast %s %s to ptr%s", plain, typ, value, dbg))
		}
		if o.kind == fromPrivate || o.kind == fromTable {
			p := from.arrays[o.index]
			out = append(out, fmt.Sprintf("  %s = call ptr @mlxc_private(ptr %%mlxc.lane, ptr %s, i64 %s, ptr %s, i64 %s, i32 %d, ptr %s)%s", to, p.base, p.size, plain, size, n, p.shade, dbg))
		} else {
			out = append(out, fmt.Sprintf("  %s = call ptr @mlxc_touch(ptr %%mlxc.lane, ptr %s, i64 %s, i32 %d)%s", to, plain, size, n, dbg))
		}
		if typ != "ptr" {
			out = append(out, fmt.Sprintf("  %s = addrspacecast ptr %s to %s%s", name, to, typ, dbg))
		}
		return llvm.Change{At: same.At, End: same.End, Text: name}, nil
	}
	// one is the line whose only access is to an operand, of a value of a type.
	one := func(kind int, operand llvm.Operand, typ string) ([]string, error) {
		size, n := sizeOf(typ), llvm.BytesOf(typ)
		if n > 0 {
			size = strconv.Itoa(n)
		}
		to, err := check(kind, operand, size, n)
		return append(out, in.With(to)), err
	}
	atomic := strings.Contains(in.Flags, "atomic ")
	switch {
	case strings.HasPrefix(in.Callee, air.UnsetCall):
		return []string{air.SomeValue(in.Result, in.Type, dbg)}, nil
	case in.Op == "load" && from.unset(in.Operands[0]):
		return []string{air.SomeValue(in.Result, in.Type, dbg)}, nil
	case in.Op == "load" && atomic:
		return one(accessAtomicLoad, in.Operands[0], in.Type)
	case in.Op == "load" && from.setInParts(in.Type, in.Operands[0]):
		return one(accessCopy, in.Operands[0], in.Type)
	case in.Op == "load":
		return one(accessLoad, in.Operands[0], in.Type)
	case in.Op == "store" && atomic:
		return one(accessAtomicStore, in.Operands[1], in.Type)
	case in.Op == "store":
		return one(accessStore, in.Operands[1], in.Type)
	case in.Op == "atomicrmw", in.Op == "cmpxchg":
		return one(accessAtomic, in.Operands[0], in.Operands[1].Type)
	case atomicName.MatchString(in.Callee) && len(in.Operands) > 0:
		a := atomicName.FindStringSubmatch(in.Callee)
		kind, ok := map[string]int{"load": accessAtomicLoad, "store": accessAtomicStore}[a[1]]
		if !ok {
			kind = accessAtomic
		}
		return one(kind, in.Operands[0], "i"+a[2])
	case air.MoveName.MatchString(in.Callee):
		if len(in.Operands) < 3 {
			return nil, fmt.Errorf("this line is not understood: %.120q", l)
		}
		into, of, size := in.Operands[0], in.Operands[1], in.Operands[2].Value
		n, _ := strconv.Atoi(size)
		align = air.Promised(asked, 0)
		reads := air.MoveName.FindStringSubmatch(in.Callee)[1] != "memset"
		if reads && from.unset(of) {
			if o := from.of[into.Value]; o.kind == fromPrivate {
				a := from.arrays[o.index]
				return []string{fmt.Sprintf("  call void @mlxc_forget(ptr %s, i64 %s, ptr %s, i64 %s, ptr %s)%s", a.base, a.size, into.Value, size, a.shade, dbg)}, nil
			}
			return nil, nil
		}
		to, err := check(accessStore, into, size, n)
		if err != nil || !reads {
			return append(out, in.With(to)), err
		}
		kind := accessLoad
		if from.of[of.Value].kind == fromPrivate && to.Text != into.Value {
			kind = accessCopy
		}
		align = air.Promised(asked, 1)
		by, err := check(kind, of, size, n)
		if err != nil {
			return nil, err
		}
		out = append(out, in.With(to, by))
		if kind == accessCopy {
			*places = append(*places, access{kind: accessValue, origin: origin{index: fromUnset}, line: m.Line(dbg)})
			out = append(out, fmt.Sprintf("  call void @mlxc_copied(ptr %%mlxc.lane, i32 %d)%s", len(*places)-1, dbg))
		}
		return out, nil
	}
	return []string{in.Line}, nil
}

// setInParts reports whether a load is one of a vector in private memory. A compiler sets an element of it
// by reading all of it, so that what is read need not have been set.
func (o *origins) setInParts(typ string, from llvm.Operand) bool {
	if !strings.HasPrefix(typ, "<") || from.Type != "ptr" || !strings.HasPrefix(from.Value, "%") {
		return false
	}
	k := o.of[from.Value].kind
	return k == fromPrivate || k == fromNowhere
}

// unset reports whether an operand is an address of what nothing has set.
func (o *origins) unset(operand llvm.Operand) bool {
	return air.IsUndefined(operand.Value) || o.of[operand.Value].kind == fromUnsetMemory
}
