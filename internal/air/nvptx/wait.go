package nvptx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// prefetching has the cache ask for what lies at the address of a call of the marker, which is one of any space.
func prefetching(l string) string {
	return fmt.Sprintf(`  call void asm sideeffect "prefetch.L2 [$0];", "l"(ptr %s) #990`, llvm.Read(l).Operands[0].Value)
}

// wait puts the wait for the grids before this one where a kernel, whose helper functions have been
// inlined, calls the marker, and before the end of threads that have not waited until then. It returns
// the arguments that may be read before. If threads may do anything else before they wait, there is a
// reason, and the kernel is left as it is: it has to wait before all that it does.
//
// A block's threads have waited when all that come to it have, on any way. What may be done before is to
// read device memory whose address is computed from arguments, which are then early, and to access
// memory of the threadgroup or the thread.
func wait(c *llvm.Flow, f *llvm.Function, k *air.Kernel) (early []int, reason string) {
	if len(k.Args) > maxOrigins {
		return nil, fmt.Sprintf("it has %d arguments, of at most %d", len(k.Args), maxOrigins)
	}
	marked := false
	for b := range c.Blocks {
		marked = marked || slices.ContainsFunc(c.Blocks[b].Lines, air.IsMarker)
	}
	if !marked {
		return nil, notMarked
	}
	waited := waited(c)
	from := addressesOf(c, f, k)
	var read memories
	for b := range c.Blocks {
		if b > 0 && !c.Before.Has(b) {
			continue
		}
		done := waited[b]
		for _, l := range c.Blocks[b].Lines {
			llvm.Counted(1)
			switch {
			case done:
			case air.IsMarker(l):
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
	for b, x := range c.Blocks {
		done := waited[b]
		out := make([]string, 0, len(x.Lines)+1)
		for i, l := range x.Lines {
			switch {
			case air.IsMarker(l):
				if !done {
					out = append(out, waitForGrids)
				}
				done = true
				continue
			case i == c.Ends[b].Line && !done && len(c.Next[b]) == 0:
				out = append(out, waitForGrids)
			}
			out = append(out, l)
		}
		c.Ends[b].Line += len(out) - len(x.Lines)
		x.Lines = out
	}
	return early, ""
}

// notMarked is the reason of a kernel that does not say where it may wait.
const notMarked = "it does not say where"

// waited says of each block whether all threads that come to it have waited.
func waited(c *llvm.Flow) []bool {
	n := len(c.Blocks)
	in, out := make([]bool, n), make([]bool, n)
	marks := make([]bool, n)
	for b, x := range c.Blocks {
		marks[b] = slices.ContainsFunc(x.Lines, air.IsMarker)
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
		for _, to := range c.Next[b] {
			llvm.Counted(1)
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

// anyPointer is the type of an address.
var anyPointer = regexp.MustCompile(`\bptr\b`)

// addressesOf finds out where the addresses in a kernel come from. A value learns from those that it is
// computed from, each time these have learned something; there are not many things to learn.
func addressesOf(c *llvm.Flow, f *llvm.Function, k *air.Kernel) addresses {
	a := addresses{}
	users := map[string][]string{}
	var changed []string
	learn := func(name string, more memories) {
		if had := a[name]; had|more != had {
			a[name] = had | more
			changed = append(changed, name)
		}
	}
	for i, p := range f.Params {
		switch x := &k.Args[i]; {
		case x.Attribute != "":
		case x.Space == air.Threadgroup:
			learn(p.Name, ownMemory)
		default:
			learn(p.Name, 1<<i)
		}
	}
	for _, b := range c.Blocks {
		for _, l := range b.Lines {
			in := llvm.Read(l)
			if in == nil || in.Result == "" {
				continue
			}
			llvm.Counted(1)
			of := in.Operands
			switch in.Op {
			case "alloca":
				learn(in.Result, ownMemory)
				continue
			case "getelementptr", "bitcast", "addrspacecast", "freeze":
				of = of[:1]
			case "select":
				of = of[1:]
			case "phi":
			default:
				// Any other result is no address, or an address in a memory that is not known.
				learn(in.Result, otherMemory)
				continue
			}
			if !anyPointer.MatchString(in.Type) {
				continue
			}
			for _, o := range of {
				if strings.HasPrefix(o.Value, "%") && o.IsPointer() {
					users[o.Value] = append(users[o.Value], in.Result)
					if from, ok := a[o.Value]; ok {
						learn(in.Result, from)
					}
				} else {
					learn(in.Result, a.of(o))
				}
			}
		}
	}
	for len(changed) > 0 {
		name := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		for _, u := range users[name] {
			llvm.Counted(1)
			learn(u, a[name])
		}
	}
	return a
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
func (a addresses) of(o llvm.Operand) memories {
	switch {
	case !o.IsPointer():
		return otherMemory
	case !strings.HasPrefix(o.Value, "%"):
		return constantMemory(o.Value)
	}
	if m, ok := a[o.Value]; ok {
		return m
	}
	return otherMemory
}

// touched says which arguments an instruction reads before the wait; false if it does what may not be
// done there.
func (a addresses) touched(l string) (memories, bool) {
	in := llvm.Read(l)
	if in == nil || in.Op == "" {
		return 0, !anyPointer.MatchString(l) && !strings.Contains(l, "call")
	}
	reads := func(o llvm.Operand) (memories, bool) {
		m := a.of(o)
		return m &^ ownMemory, m&otherMemory == 0
	}
	switch {
	case air.IsPrefetch(l): // L2, which all multiprocessors share, holds what others write from now on, too
		return 0, true
	case in.Op == "load" && !strings.Contains(in.Flags, "atomic") && !strings.Contains(in.Flags, "volatile"):
		return reads(in.Operands[0])
	case in.Op == "load", in.Op == "atomicrmw", in.Op == "cmpxchg":
		return 0, a.of(in.Operands[0]) == ownMemory
	case in.Op == "store":
		return 0, a.of(in.Operands[1]) == ownMemory
	case in.Op != "call": // it computes with addresses, if with any
		return 0, true
	}
	if moves := air.MoveName.FindStringSubmatch(in.Callee); moves != nil {
		if len(in.Operands) < 2 || a.of(in.Operands[0]) != ownMemory {
			return 0, false
		}
		if moves[1] == "memset" {
			return 0, true
		}
		return reads(in.Operands[1])
	}
	// Functions of LLVM, and those in which threads exchange, get at memory only by addresses that they are given.
	if !strings.HasPrefix(in.Callee, "llvm.") && !strings.HasPrefix(in.Callee, "air.") {
		return 0, false
	}
	return 0, !slices.ContainsFunc(in.Operands, func(o llvm.Operand) bool { return anyPointer.MatchString(o.Type) && a.of(o) != ownMemory })
}
