package air

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// originKind is what an address is computed from; the numbers are those of abi.h, but for the
// last.
type originKind uint8

const (
	fromNowhere  originKind = iota // it is not known, or of several
	fromArgument                   // index: its slot
	fromVariable                   // of threadgroup space; index: its number
	fromPrivate                    // a private array; index: its number
	fromTable                      // a constant array; index: its number
	fromOwn                        // what the kernel cannot miss: a local without parts, a constant
)

// origin is where an address comes from.
type origin struct {
	kind  originKind
	index int
}

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

// private is an array of the kernel's own.
type private struct {
	base  string // its address
	size  string // of the array in bytes, an expression
	shade string // the address of a byte for each of its bytes, which says whether it was written
	bytes int    // how many there are
}

var (
	roomyAlloca   = regexp.MustCompile(fmt.Sprintf(`^  (%%\S+) = alloca (\{ \[%d x i8\], (.*), \[%d x i8\], \[([0-9]+) x i8\] \})`, slack, slack))
	anyAlloca     = regexp.MustCompile(`^  (%\S+) = alloca `)
	constantArray = regexp.MustCompile(`\bconstant (.*)$`)
	pointerTo     = regexp.MustCompile(`ptr(?: addrspace\([0-9]\))? (%[-a-zA-Z$._0-9]+|%"[^"]*"|@` + symbol + `)`)
	derived       = regexp.MustCompile(`^  (%\S+) = (getelementptr|phi|select|bitcast|addrspacecast|freeze) (.*)$`)
	inPhi         = regexp.MustCompile(`\[ ([^,]+), %`)
	loadLine      = regexp.MustCompile(`^  (%\S+) = load (?:atomic )?(?:volatile )?(.*)$`)
	storeLine     = regexp.MustCompile(`^  store (?:atomic )?(?:volatile )?(.*)$`)
	atomicLine    = regexp.MustCompile(`^  (%\S+) = (?:atomicrmw (?:volatile )?[a-z_]+|cmpxchg (?:weak )?(?:volatile )?)\s*(.*)$`)
	moveLine      = regexp.MustCompile(`^  (?:tail )?call void @llvm\.(memcpy|memmove|memset)\.[a-z0-9.]*\((.*)\)`)
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
	from := map[string]origin{}
	for i, p := range f.params {
		if a := &k.Args[i]; a.Attribute == "" {
			from[p.name] = origin{fromArgument, a.Index}
		}
	}
	privates := map[string]*private{} // by the name of the array's address
	var list []*private
	// Names of what has slack around it, until the address behind the slack is met.
	roomyOnes := map[string]*private{}
	for _, b := range blocks {
		for _, l := range b.lines {
			if r := roomyAlloca.FindStringSubmatch(l); r != nil {
				p := &private{size: fmt.Sprintf("ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i64)", r[3])}
				p.bytes, _ = strconv.Atoi(r[4])
				p.shade = fmt.Sprintf("%%mlxc.shade%d", len(list))
				begin = append(begin, fmt.Sprintf("  %s = getelementptr %s, ptr %s, i32 0, i32 3", p.shade, r[2], r[1]))
				if p.bytes > 0 {
					begin = append(begin, fmt.Sprintf("  call void @llvm.memset.p0.i64(ptr %s, i8 0, i64 %d, i1 false)", p.shade, p.bytes))
				} else {
					p.shade = "null"
				}
				roomyOnes[r[1]] = p
				list = append(list, p)
			} else if r := anyAlloca.FindStringSubmatch(l); r != nil {
				from[r[1]] = origin{kind: fromOwn}
			}
		}
	}
	tables := map[string]*private{} // constant arrays of the module, by their names with the @
	for _, g := range m.globals {
		if a := constantArray.FindStringSubmatch(g.text); a != nil {
			typ := typeOf(a[1])
			if !strings.HasPrefix(typ, "[") {
				continue
			}
			p := &private{base: "@" + g.name, size: fmt.Sprintf("ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i64)", typ), shade: "null"}
			if strings.Contains(g.text[:len(g.text)-len(a[1])], "addrspace(2)") {
				p.base = fmt.Sprintf("addrspacecast (ptr addrspace(2) @%s to ptr)", g.name)
			}
			tables["@"+g.name] = p
			list = append(list, p)
		}
	}
	number := map[*private]int{}
	for i, p := range list {
		number[p] = i
	}
	variable := regexp.MustCompile(`^%mlxc\.tg([0-9]+)$`)
	// Addresses are followed until nothing new is learnt: a phi may come before what it joins.
	all := append([]*block{{lines: extra}}, blocks...)
	join := func(name string, o origin, known bool) bool {
		if !known {
			return false
		}
		had, ok := from[name]
		switch {
		case !ok:
			from[name] = o
		case had == o || had.kind == fromNowhere:
			return false
		default:
			from[name] = origin{}
		}
		return true
	}
	originOf := func(value string) (origin, bool) {
		if p := tables[value]; p != nil {
			return origin{fromTable, number[p]}, true
		}
		if strings.HasPrefix(value, "@") {
			return origin{kind: fromOwn}, true
		}
		o, ok := from[value]
		return o, ok
	}
	for changed := true; changed; {
		changed = false
		for _, b := range all {
			for _, l := range b.lines {
				d := derived.FindStringSubmatch(l)
				if d == nil {
					continue
				}
				if v := variable.FindStringSubmatch(d[1]); v != nil {
					n, _ := strconv.Atoi(v[1])
					changed = join(d[1], origin{fromVariable, n}, true) || changed
					continue
				}
				if d[2] == "phi" {
					if !strings.HasPrefix(d[3], "ptr") {
						continue
					}
					for _, in := range inPhi.FindAllStringSubmatch(d[3], -1) {
						o, ok := originOf(in[1])
						changed = join(d[1], o, ok) || changed
					}
					continue
				}
				for i, p := range pointerTo.FindAllStringSubmatch(d[3], -1) {
					if i > 0 && d[2] != "select" {
						break
					}
					if r := roomyOnes[p[1]]; r != nil {
						if r.base == "" {
							r.base = d[1]
							privates[d[1]] = r
						}
						changed = join(d[1], origin{fromPrivate, number[r]}, true) || changed
						continue
					}
					o, ok := originOf(p[1])
					changed = join(d[1], o, ok) || changed
				}
			}
		}
	}
	for _, b := range blocks {
		var out []string
		for _, l := range b.lines {
			lines, err := m.guard(l, from, list, &places)
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
func (m *module) guard(l string, from map[string]origin, list []*private, places *[]access) ([]string, error) {
	var out []string
	dbg := debugPlace.FindString(l)
	check := func(kind int, operand, size string, bytes int) (string, error) {
		s := spaceOf.FindStringSubmatch(operand)
		if s == nil {
			return "", fmt.Errorf("this address is not understood: %.120q", operand)
		}
		typ := s[0]
		fields := strings.Fields(operand)
		value := fields[len(fields)-1] // attributes stand between
		if i := strings.Index(operand, "("); i >= 0 && strings.HasSuffix(operand, ")") && !strings.HasPrefix(operand[i:], "(1)") && !strings.HasPrefix(operand[i:], "(2)") && !strings.HasPrefix(operand[i:], "(3)") {
			return value, nil // an expression of constants: a table of the kernel's
		}
		o := from[value]
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
			p := list[o.index]
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
		return fmt.Sprintf("ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i64)", typ), 0
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
