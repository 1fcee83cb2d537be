package air

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// waitMarker is the function of a source that says: from here on a thread may access what other
// dispatches write (docs/kernels.md). It does nothing but in an entry that is launched before the grids
// that it depends on have ended, where it waits for them.
const waitMarker = "air.wait_for_dispatches"

// prefetchMarker is the function of a source that says: what lies at an address will be read. It does nothing
// but on a GPU, whose cache then asks the memory for the line.
const prefetchMarker = "air.will_read"

// declaresMarker reports whether a module declares a marker.
func (m *module) declaresMarker(name string) bool {
	return slices.ContainsFunc(m.declares, func(d declaration) bool { return strings.Trim(d.name, `"`) == name })
}

// without takes the calls of a marker out, whose lines are these.
func (m *module) without(name string, is func(string) bool) {
	if !m.declaresMarker(name) {
		return
	}
	for _, f := range m.funcs {
		f.lines = slices.DeleteFunc(f.lines, is)
	}
	m.declares = slices.DeleteFunc(m.declares, func(d declaration) bool { return strings.Trim(d.name, `"`) == name })
}

// withoutWaits takes the calls of the marker of waits out, withoutPrefetches those of the other.
func (m *module) withoutWaits()      { m.without(waitMarker, isMarker) }
func (m *module) withoutPrefetches() { m.without(prefetchMarker, isPrefetch) }

// isAirMarker reports whether a function of AIR is a marker: nothing is exchanged there.
func isAirMarker(name string) bool { return name == waitMarker || name == prefetchMarker }

var markerCall = regexp.MustCompile(`^  (?:tail |musttail |notail )?call void @"?` + regexp.QuoteMeta(waitMarker) + `"?\(\)`)

func isMarker(l string) bool { return strings.Contains(l, waitMarker) && markerCall.MatchString(l) }

var prefetchCall = regexp.MustCompile(`^  (?:tail |musttail |notail )?call void @"?` + regexp.QuoteMeta(prefetchMarker) + `"?\((.*)\)`)

func isPrefetch(l string) bool {
	return strings.Contains(l, prefetchMarker) && prefetchCall.MatchString(l)
}

// prefetching has the cache ask for what lies at the address of a call of the marker, which is one of any space.
func prefetching(l string) string {
	operand := prefetchCall.FindStringSubmatch(l)[1]
	return fmt.Sprintf(`  call void asm sideeffect "prefetch.L2 [$0];", "l"(ptr %s) #990`, valueOf(operand, "ptr"))
}

// wait puts the wait for the grids before this one where a kernel, whose helper functions have been
// inlined, calls the marker, and before the end of threads that have not waited until then. It returns
// the arguments that may be read before. If threads may do anything else before they wait, there is a
// reason, and the kernel is left as it is: it has to wait before all that it does.
//
// A block's threads have waited when all that come to it have, on any way. What may be done before is to
// read device memory whose address is computed from arguments, which are then early, and to access
// memory of the threadgroup or the thread.
func (c *controlFlow) wait(f *function, k *Kernel) (early []int, reason string) {
	if len(k.Args) > maxOrigins {
		return nil, fmt.Sprintf("it has %d arguments, of at most %d", len(k.Args), maxOrigins)
	}
	marked := false
	for b := range c.blocks {
		marked = marked || slices.ContainsFunc(c.blocks[b].lines, isMarker)
	}
	if !marked {
		return nil, notMarked
	}
	waited := c.waited()
	from := c.memories(f, k)
	var read memories
	for b := range c.blocks {
		if b > 0 && !c.before.has(b) {
			continue
		}
		done := waited[b]
		for _, l := range c.blocks[b].lines {
			counted(1)
			switch {
			case done:
			case isMarker(l):
				done = true
			default:
				of, ok := from.touched(l)
				if !ok {
					return nil, fmt.Sprintf("before the wait stands %q", strings.TrimSpace(l))
				}
				read |= of
			}
		}
	}
	for i := range k.Args {
		if read&(1<<i) != 0 {
			early = append(early, i)
		}
	}
	for b, x := range c.blocks {
		done := waited[b]
		out := make([]string, 0, len(x.lines)+1)
		for i, l := range x.lines {
			switch {
			case isMarker(l):
				if !done {
					out = append(out, waitForGrids)
				}
				done = true
				continue
			case i == c.ends[b].line && !done && len(c.next[b]) == 0:
				out = append(out, waitForGrids)
			}
			out = append(out, l)
		}
		c.ends[b].line += len(out) - len(x.lines)
		x.lines = out
	}
	return early, ""
}

// notMarked is the reason of a kernel that does not say where it may wait.
const notMarked = "it does not say where"

// waited says of each block whether all threads that come to it have waited.
func (c *controlFlow) waited() []bool {
	n := len(c.blocks)
	in, out := make([]bool, n), make([]bool, n)
	marks := make([]bool, n)
	for b, x := range c.blocks {
		marks[b] = slices.ContainsFunc(x.lines, isMarker)
		in[b], out[b] = b > 0, b > 0 || marks[b]
	}
	work := []int{0}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if out[b] {
			continue
		}
		// INVARIANT: a block comes here once, when it becomes known that a thread may leave it without
		// having waited.
		for _, to := range c.next[b] {
			counted(1)
			if in[to] {
				in[to] = false
				if !marks[to] {
					out[to] = false
					work = append(work, to)
				}
			}
		}
	}
	return in
}

// memories are those that an address may be computed from: arguments by their numbers, and two more.
type memories uint64

const (
	maxOrigins           = 62
	ownMemory   memories = 1 << 62 // of the thread, the threadgroup, or constants of the module
	otherMemory memories = 1 << 63 // it is not known which
)

// addresses are where the addresses in a kernel come from, by the names of values.
type addresses map[string]memories

var (
	anyPointer   = regexp.MustCompile(`\bptr\b`)
	memoryAccess = regexp.MustCompile(`^  (?:%\S+ = )?(load|store|atomicrmw|cmpxchg|fence) (atomic |volatile )*`)
	copying      = regexp.MustCompile(`^  (?:tail |musttail |notail )?call void @llvm\.(memcpy|memmove|memset)\.`)
	// harmlessCall calls a function of LLVM or one in which threads exchange. Neither gets at memory but by
	// addresses that it is given.
	harmlessCall = regexp.MustCompile(`^  (?:%\S+ = )?(?:tail |musttail |notail )?call [^@%"]*@"?(?:llvm|air)\.[-a-zA-Z$._0-9]+"?\(`)
)

// memories finds out where the addresses in a kernel come from. A value learns from those that it is
// computed from, each time these have learned something; there are not many things to learn.
func (c *controlFlow) memories(f *function, k *Kernel) addresses {
	a := addresses{}
	users := map[string][]string{}
	var changed []string
	learn := func(name string, more memories) {
		if had := a[name]; had|more != had {
			a[name] = had | more
			changed = append(changed, name)
		}
	}
	for i, p := range f.params {
		switch x := &k.Args[i]; {
		case x.Attribute != "":
		case x.Space == Threadgroup:
			learn(p.name, ownMemory)
		default:
			learn(p.name, 1<<i)
		}
	}
	for _, b := range c.blocks {
		for _, l := range b.lines {
			m := assigned.FindStringSubmatch(l)
			if m == nil {
				continue
			}
			counted(1)
			name, operation, rest := m[1], m[2], m[3]
			switch operation {
			case "alloca":
				learn(name, ownMemory)
			case "getelementptr", "select", "phi", "bitcast", "addrspacecast", "freeze":
				if !anyPointer.MatchString(rest) {
					continue
				}
				of, ok := operandsOf(operation, rest)
				if !ok {
					learn(name, otherMemory)
					continue
				}
				for _, o := range of {
					if strings.HasPrefix(o, "%") {
						users[o] = append(users[o], name)
						if from, ok := a[o]; ok {
							learn(name, from)
						}
					} else {
						learn(name, constantMemory(o))
					}
				}
			default:
				// Any other value is either no address, or of an address that is not known.
				learn(name, otherMemory)
			}
		}
	}
	for len(changed) > 0 {
		name := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		for _, u := range users[name] {
			counted(1)
			learn(u, a[name])
		}
	}
	return a
}

// operandsOf are the addresses that an address is computed from; false if they are not understood.
func operandsOf(operation, rest string) (out []string, ok bool) {
	if i := strings.Index(rest, ", !dbg "); i >= 0 {
		rest = rest[:i]
	}
	switch operation {
	case "phi":
		if !strings.HasPrefix(rest, "ptr") {
			return nil, false
		}
		for _, in := range incoming.FindAllStringSubmatch(rest, -1) {
			out = append(out, in[1])
		}
		return out, len(out) > 0
	case "select":
		parts := splitTop(rest)
		if len(parts) != 3 {
			return nil, false
		}
		for _, p := range parts[1:] {
			v, ok := pointerIn(p)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, true
	case "getelementptr":
		parts := splitTop(rest)
		if len(parts) < 2 {
			return nil, false
		}
		v, ok := pointerIn(parts[1])
		return []string{v}, ok
	}
	v, ok := pointerIn(strings.Split(rest, " to ")[0])
	return []string{v}, ok
}

// pointerIn is the value of an operand whose type is an address: ptr addrspace(1) noundef %x.
func pointerIn(operand string) (string, bool) {
	operand = strings.TrimSpace(operand)
	typ := typeOf(operand)
	if !strings.HasPrefix(typ, "ptr") || !strings.HasPrefix(operand, "ptr") {
		return "", false
	}
	v := valueOf(operand, typ)
	return v, v != ""
}

// constantMemory is the memory that an address which is a constant lies in: a global of the module, or an
// expression of such.
func constantMemory(v string) memories {
	switch {
	case v == "undef", v == "poison":
		return ownMemory // nothing may be accessed there
	case strings.HasPrefix(v, "@"):
		return ownMemory
	case strings.HasPrefix(v, "getelementptr"), strings.HasPrefix(v, "addrspacecast"), strings.HasPrefix(v, "bitcast"):
		if strings.Contains(v, "@") && !strings.Contains(v, "inttoptr") && !strings.Contains(v, "%") {
			return ownMemory
		}
	}
	return otherMemory
}

// of is the memory that an operand, whose type is an address, may lie in.
func (a addresses) of(operand string) memories {
	v, ok := pointerIn(operand)
	switch {
	case !ok:
		return otherMemory
	case v[0] != '%':
		return constantMemory(v)
	}
	if m, ok := a[v]; ok {
		return m
	}
	return otherMemory
}

// touched says which arguments an instruction reads before the wait; false if it does what may not be
// done there.
func (a addresses) touched(l string) (memories, bool) {
	if !anyPointer.MatchString(l) && !strings.Contains(l, "call ") && !strings.Contains(l, "invoke ") && !strings.Contains(l, "callbr ") {
		return 0, true
	}
	reads := func(m memories) (memories, bool) { return m &^ ownMemory, m&otherMemory == 0 }
	if i := strings.Index(l, ", !dbg "); i >= 0 {
		l = l[:i]
	}
	if isPrefetch(l) { // L2, which all multiprocessors share, holds what others write from now on, too
		return 0, true
	}
	if m := memoryAccess.FindStringSubmatchIndex(l); m != nil {
		operation, rest := l[m[2]:m[3]], l[m[1]:]
		parts := splitTop(rest)
		switch {
		case operation == "fence":
			return 0, true
		case operation == "load" && m[4] < 0 && len(parts) >= 2:
			return reads(a.of(parts[1]))
		case operation == "load" && len(parts) >= 2, operation == "store" && len(parts) >= 2:
			return 0, a.of(parts[1]) == ownMemory
		case len(parts) >= 1:
			return 0, a.of(parts[0]) == ownMemory
		}
		return 0, false
	}
	if m := copying.FindStringSubmatchIndex(l); m != nil {
		open := strings.IndexByte(l[m[1]:], '(') + m[1]
		end := matching(l, open)
		if end < 0 {
			return 0, false
		}
		args := splitTop(l[open+1 : end])
		if len(args) < 2 || a.of(args[0]) != ownMemory {
			return 0, false
		}
		if l[m[2]:m[3]] == "memset" {
			return 0, true
		}
		return reads(a.of(args[1]))
	}
	if strings.Contains(l, "call ") || strings.Contains(l, "invoke ") || strings.Contains(l, "callbr ") {
		m := harmlessCall.FindStringSubmatchIndex(l)
		if m == nil {
			return 0, false
		}
		end := matching(l, m[1]-1)
		if end < 0 {
			return 0, false
		}
		for _, p := range splitTop(l[m[1]:end]) {
			if anyPointer.MatchString(p) && a.of(p) != ownMemory {
				return 0, false
			}
		}
		return 0, true
	}
	return 0, true // computes with addresses
}
