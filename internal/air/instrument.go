package air

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
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
	loadLine   = regexp.MustCompile(`^  (%\S+) = load (?:atomic )?(?:volatile )?(.*)$`)
	storeLine  = regexp.MustCompile(`^  store (?:atomic )?(?:volatile )?(.*)$`)
	atomicLine = regexp.MustCompile(`^  (%\S+) = (?:atomicrmw (?:volatile )?[a-z_]+|cmpxchg (?:weak )?(?:volatile )?)\s*(.*)$`)
	moveLine   = regexp.MustCompile(`^  (?:tail )?call void @llvm\.(memcpy|memmove|memset)\.[a-z0-9.]*\((.*)\)`)
	// Calls of AIR's atomic functions are left where the body takes a pointer of another space.
	atomicCall = regexp.MustCompile(`^  (?:%\S+ = )?(?:tail )?call [^@]*@"?air\.atomic\.(?:global|local|generic)\.([a-z]+)[a-z.]*\.[if]([0-9]+)"?\(`)
	spaceOf    = regexp.MustCompile(`^ptr(?: addrspace\(([0-9])\))?`)
	debugPlace = regexp.MustCompile(`, !dbg (![0-9]+)`)
	alignedTo  = regexp.MustCompile(`, align ([0-9]+)`)
)

// instrument puts a call before each access to memory that a kernel could miss: mlxc_touch or
// mlxc_private of the executor (host/check.c), which says where to go instead. extra are the
// lines that compute the addresses of threadgroup variables. It returns the places, and lines
// for the beginning of the function.
func (m *module) instrument(blocks []*block, extra []string, f *function, k *Kernel, declared map[string]declaration) (places []access, begin []string, err error) {
	o, begin, err := m.origins(blocks, extra, f, k)
	if err != nil {
		return nil, nil, err
	}
	u := m.follow(blocks, declared, o)
	for _, b := range blocks {
		var out []string
		for _, l := range b.lines {
			n := len(places)
			lines, err := m.guard(l, o, &places)
			if err != nil {
				return nil, nil, err
			}
			before, after := u.lines(l, len(places) > n, &places)
			out = append(append(append(out, before...), lines...), after...)
		}
		b.lines = out
	}
	m.definedUnset()
	if len(places) > 0xfffe {
		return nil, nil, fmt.Errorf("%d places touch memory, more than can be told apart", len(places))
	}
	return places, begin, nil
}

// guard is a line, with a call before each access in it.
func (m *module) guard(l string, from *origins, places *[]access) ([]string, error) {
	var out []string
	dbg := debugPlace.FindString(l)
	align := 0
	if a := alignedTo.FindStringSubmatch(l); a != nil {
		align, _ = strconv.Atoi(a[1])
	}
	asked := l // with its alignments
	l = unaligned(l)
	check := func(kind int, operand, size string, bytes int) (string, error) {
		s := spaceOf.FindStringSubmatch(operand)
		if s == nil {
			return "", fmt.Errorf("this address is not understood: %.120q", operand)
		}
		typ := s[0]
		value := operand[strings.LastIndexByte(operand, ' ')+1:] // attributes stand between
		if strings.HasSuffix(strings.TrimSpace(operand[len(typ):]), ")") {
			return value, nil // an expression of constants: a place in a table of the kernel's
		}
		o := from.of[value]
		if strings.HasPrefix(value, "@") || o.kind == fromOwn || o.kind == fromUnsetMemory || value == "null" || value == "undef" || value == "poison" {
			return value, nil
		}
		space := 0
		if s[1] != "" {
			space = int(s[1][0] - '0')
		}
		n := len(*places)
		*places = append(*places, access{kind, space, o, bytes, m.line(dbg), align})
		name := fmt.Sprintf("%%mlxc.at%d", n)
		plain := value
		if typ != "ptr" {
			out = append(out, fmt.Sprintf("  %s.from = addrspacecast %s %s to ptr%s", name, typ, value, dbg))
			plain = name + ".from"
		}
		to := name
		if typ != "ptr" {
			to = name + ".to"
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
		return name, nil
	}
	sized := func(typ string) (string, int) {
		if n := bytesOf(typ); n > 0 {
			return strconv.Itoa(n), n
		}
		return sizeOf(typ), 0
	}
	replace := func(l, operand, by string) string {
		fields := strings.Fields(operand)
		value := fields[len(fields)-1]
		return strings.Replace(l, operand, operand[:len(operand)-len(value)]+by, 1)
	}
	switch {
	case unsetLine.MatchString(l):
		s := unsetLine.FindStringSubmatch(l)
		return []string{someValue(s[1], s[2], dbg)}, nil
	case loadLine.MatchString(l):
		parts := splitTop(loadLine.FindStringSubmatch(l)[2])
		if len(parts) < 2 {
			return nil, fmt.Errorf("this line is not understood: %.120q", l)
		}
		size, n := sized(parts[0])
		pointer := orderless(parts[1])
		if from.unset(pointer) {
			return []string{someValue(loadLine.FindStringSubmatch(l)[1], parts[0], dbg)}, nil
		}
		kind := accessLoad
		if strings.Contains(l, " = load atomic ") {
			kind = accessAtomicLoad
		} else if from.setInParts(parts[0], pointer) {
			kind = accessCopy
		}
		by, err := check(kind, pointer, size, n)
		if err != nil {
			return nil, err
		}
		l = replace(l, pointer, by)
	case storeLine.MatchString(l):
		parts := splitTop(storeLine.FindStringSubmatch(l)[1])
		if len(parts) < 2 {
			return nil, fmt.Errorf("this line is not understood: %.120q", l)
		}
		size, n := sized(typeOf(parts[0]))
		pointer := orderless(parts[1])
		kind := accessStore
		if strings.HasPrefix(l, "  store atomic ") {
			kind = accessAtomicStore
		}
		by, err := check(kind, pointer, size, n)
		if err != nil {
			return nil, err
		}
		l = strings.Replace(l, ", "+pointer, ", "+replace(pointer, pointer, by), 1)
	case atomicLine.MatchString(l):
		parts := splitTop(atomicLine.FindStringSubmatch(l)[2])
		if len(parts) < 2 {
			return nil, fmt.Errorf("this line is not understood: %.120q", l)
		}
		size, n := sized(typeOf(parts[1]))
		by, err := check(accessAtomic, parts[0], size, n)
		if err != nil {
			return nil, err
		}
		l = replace(l, parts[0], by)
	case atomicCall.MatchString(l):
		at := atomicCall.FindStringSubmatchIndex(l)
		end := matching(l, at[1]-1)
		bits, _ := strconv.Atoi(l[at[4]:at[5]])
		kind := accessAtomic
		switch l[at[2]:at[3]] {
		case "load":
			kind = accessAtomicLoad
		case "store":
			kind = accessAtomicStore
		}
		if end < 0 {
			return nil, fmt.Errorf("this line is not understood: %.120q", l)
		}
		pointer := splitTop(l[at[1]:end])[0]
		by, err := check(kind, pointer, strconv.Itoa(bits/8), bits/8)
		if err != nil {
			return nil, err
		}
		l = l[:at[1]] + replace(pointer, pointer, by) + l[at[1]+len(pointer):]
	case moveLine.MatchString(l):
		c := moveLine.FindStringSubmatch(l)
		parts := splitTop(c[2])
		if len(parts) < 3 {
			return nil, fmt.Errorf("this line is not understood: %.120q", l)
		}
		size := strings.TrimPrefix(parts[2], "i64 ")
		n, _ := strconv.Atoi(size)
		aligns := argumentAlignments(asked)
		align = aligns[0]
		if c[1] != "memset" && from.unset(parts[1]) {
			to := parts[0][strings.LastIndexByte(parts[0], ' ')+1:]
			if o := from.of[to]; o.kind == fromPrivate {
				a := from.arrays[o.index]
				return []string{fmt.Sprintf("  call void @mlxc_forget(ptr %s, i64 %s, ptr %s, i64 %s, ptr %s)%s", a.base, a.size, to, size, a.shade, dbg)}, nil
			}
			return nil, nil
		}
		by, err := check(accessStore, parts[0], size, n)
		if err != nil {
			return nil, err
		}
		l = replace(l, parts[0], by)
		if c[1] != "memset" {
			kind := accessLoad
			if from.of[parts[1][strings.LastIndexByte(parts[1], ' ')+1:]].kind == fromPrivate && len(*places) > 0 && by != parts[0][strings.LastIndexByte(parts[0], ' ')+1:] {
				kind = accessCopy
			}
			align = aligns[1]
			by, err := check(kind, parts[1], size, n)
			if err != nil {
				return nil, err
			}
			l = strings.Replace(l, ", "+parts[1], ", "+replace(parts[1], parts[1], by), 1)
			if kind == accessCopy {
				*places = append(*places, access{kind: accessValue, origin: origin{index: fromUnset}, line: m.line(dbg)})
				return append(out, l, fmt.Sprintf("  call void @mlxc_copied(ptr %%mlxc.lane, i32 %d)%s", len(*places)-1, dbg)), nil
			}
		}
	}
	return append(out, l), nil
}

// argumentAlignments are what the addresses of a copy are promised to be multiples of, 0 where nothing is.
func argumentAlignments(l string) (out [2]int) {
	for i, p := range splitTop(moveLine.FindStringSubmatch(l)[2]) {
		if i == len(out) {
			break
		}
		if a := argumentAlign.FindString(p); a != "" {
			out[i], _ = strconv.Atoi(strings.TrimPrefix(a, " align "))
		}
	}
	return out
}

// unaligned is a line that accesses memory, in which vectors lie where their elements may. A checked kernel keeps
// until then what its compiler was told.
func unaligned(l string) string {
	if v := vectorAccess.FindStringSubmatch(l); v != nil {
		return v[1] + elementAlign[v[2]] + l[len(v[0]):]
	}
	if strings.Contains(l, "call void @llvm.mem") {
		return argumentAlign.ReplaceAllString(l, "")
	}
	return l
}

// setInParts reports whether a load is one of a vector in private memory. A compiler sets an element of it
// by reading all of it, so that what is read need not have been set.
func (o *origins) setInParts(typ, pointer string) bool {
	if !strings.HasPrefix(typ, "<") || !strings.HasPrefix(pointer, "ptr %") {
		return false
	}
	k := o.of[pointer[len("ptr "):]].kind
	return k == fromPrivate || k == fromNowhere
}

// unset reports whether an operand is an address of what nothing has set.
func (o *origins) unset(operand string) bool {
	return isUndefined(operand) || o.of[operand[strings.LastIndexByte(operand, ' ')+1:]].kind == fromUnsetMemory
}

// orderless is an operand of an atomic load or store without the ordering behind it.
func orderless(operand string) string {
	for _, o := range []string{" unordered", " monotonic", " acquire", " release", " seq_cst"} {
		operand = strings.TrimSuffix(operand, o)
	}
	return operand
}
