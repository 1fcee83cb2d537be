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
}

const (
	accessLoad = iota
	accessStore
	accessAtomic // that reads and writes
	accessAtomicLoad
	accessAtomicStore
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
)

// instrument puts a call before each access to memory that a kernel could miss: mlxc_touch or
// mlxc_private of the executor (host/check.c), which says where to go instead. extra are the
// lines that compute the addresses of threadgroup variables. It returns the places, and lines
// for the beginning of the function.
func (m *module) instrument(blocks []*block, extra []string, f *function, k *Kernel) (places []access, begin []string, err error) {
	o, begin, err := m.origins(blocks, extra, f, k)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range blocks {
		var out []string
		for _, l := range b.lines {
			lines, err := m.guard(l, o, &places)
			if err != nil {
				return nil, nil, err
			}
			out = append(out, lines...)
		}
		b.lines = out
	}
	if len(places) > 0xfffe {
		return nil, nil, fmt.Errorf("%d places touch memory, more than can be told apart", len(places))
	}
	return places, begin, nil
}

// guard is a line, with a call before each access in it.
func (m *module) guard(l string, from *origins, places *[]access) ([]string, error) {
	var out []string
	dbg := debugPlace.FindString(l)
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
		if strings.HasPrefix(value, "@") || o.kind == fromOwn || value == "null" || value == "undef" || value == "poison" {
			return value, nil
		}
		space := 0
		if s[1] != "" {
			space = int(s[1][0] - '0')
		}
		n := len(*places)
		*places = append(*places, access{kind, space, o, bytes, m.line(dbg)})
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
	case loadLine.MatchString(l):
		parts := splitTop(loadLine.FindStringSubmatch(l)[2])
		size, n := sized(parts[0])
		pointer := orderless(parts[1])
		kind := accessLoad
		if strings.Contains(l, " = load atomic ") {
			kind = accessAtomicLoad
		}
		by, err := check(kind, pointer, size, n)
		if err != nil {
			return nil, err
		}
		l = replace(l, pointer, by)
	case storeLine.MatchString(l):
		parts := splitTop(storeLine.FindStringSubmatch(l)[1])
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
		size := strings.TrimPrefix(parts[2], "i64 ")
		n, _ := strconv.Atoi(size)
		by, err := check(accessStore, parts[0], size, n)
		if err != nil {
			return nil, err
		}
		l = replace(l, parts[0], by)
		if c[1] != "memset" {
			by, err := check(accessLoad, parts[1], size, n)
			if err != nil {
				return nil, err
			}
			l = strings.Replace(l, ", "+parts[1], ", "+replace(parts[1], parts[1], by), 1)
		}
	}
	return append(out, l), nil
}

// orderless is an operand of an atomic load or store without the ordering behind it.
func orderless(operand string) string {
	for _, o := range []string{" unordered", " monotonic", " acquire", " release", " seq_cst"} {
		operand = strings.TrimSuffix(operand, o)
	}
	return operand
}

// arrayBytes is the size of an array type of scalars and vectors, 0 of any other.
func arrayBytes(typ string) int {
	if !strings.HasPrefix(typ, "[") || !strings.HasSuffix(typ, "]") {
		if n, elem := elements(typ); n == 3 && elem != typ {
			return 4 * bytesOf(elem) // a vector of three takes the room of four
		}
		return bytesOf(typ)
	}
	count, elem, ok := strings.Cut(typ[1:len(typ)-1], " x ")
	n, err := strconv.Atoi(count)
	if !ok || err != nil || n < 0 || n > 1<<16 {
		return 0
	}
	return min(n*arrayBytes(elem), 1<<16)
}
