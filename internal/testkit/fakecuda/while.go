//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unsafe"
)

// conditional is what a kernel sets, and a node of a graph goes by.
type conditional struct {
	of    *graph
	first uint32 // what it is when a launch begins
	value uint32
	used  bool // by a node
}

// while is a node that runs a graph again and again.
type while struct {
	condition *conditional
	body      *graph
	bodies    [1]uintptr // its handle, where the caller reads it
}

// turns is what is to do of a while node: nothing yet, or a turn that was done.
type turns struct {
	condition *conditional
	body      *exec
	begun     bool
}

// turn begins the next turn of a while node, whose op has come to its end, in the op's place; false: the
// node has ended. g.mu is held.
func (g *GPU) turn(o *op) bool {
	w := o.turns
	if !w.begun {
		w.begun, w.condition.value = true, w.condition.first
	}
	if w.condition.value == 0 {
		return false
	}
	next := g.add(&op{turns: w}, g.expand(w.body, nil)...)
	next.after = append(next.after, o.after...)
	for _, x := range o.after {
		for i, b := range x.before {
			if b == o {
				x.before[i] = next
			}
		}
	}
	o.after = nil
	if o.needed {
		next.need()
	}
	return true
}

// nodeParams is CUgraphNodeParams with CUDA_CONDITIONAL_NODE_PARAMS in it.
type nodeParams struct {
	kind     int32
	zero     [3]int32
	handle   uintptr
	what     int32
	size     uint32
	bodies   uintptr
	context  uintptr
	rest     [232 - 32]byte
	reserved int64
}

func init() {
	const assignDefault, kindConditional, typeWhile = 1, 13, 1
	register(inside, "cuGraphConditionalHandleCreate", 5, func(g *GPU, a []uintptr) uint32 {
		x := object[graph](g, a[1])
		if x == nil {
			return invalidHandle
		}
		if a[0] == 0 || a[2] != g.context || uint32(a[4]) != assignDefault {
			return invalidValue
		}
		h := g.handle(&conditional{of: x, first: uint32(a[3])})
		x.own = append(x.own, h)
		return give(a[0], h)
	})
	register(inside, "cuGraphAddNode", 5, func(g *GPU, a []uintptr) uint32 {
		x := object[graph](g, a[1])
		if x == nil {
			return invalidHandle
		}
		if a[0] == 0 || a[3] != 0 || a[4] == 0 {
			return invalidValue
		}
		p := at[nodeParams](a[4])
		c := object[conditional](g, p.handle)
		switch {
		case c == nil:
			return invalidHandle
		case p.kind != kindConditional || p.what != typeWhile || p.size != 1 || p.context != g.context || p.zero != [3]int32{} || p.reserved != 0:
			return invalidValue
		case c.of != x || c.used || p.rest != [232 - 32]byte{}:
			return invalidValue
		}
		c.used = true
		w := &while{condition: c, body: &graph{inner: true}}
		w.bodies[0] = g.handle(w.body)
		x.own = append(x.own, w.bodies[0])
		p.bodies = uintptr(unsafe.Pointer(&w.bodies[0]))
		return g.grow(a[0], a[1], 0, 0, nil, w)
	})
}

// A script is the PTX of a kernel without branches that one thread runs: the loads, stores and numbers that it
// takes to set a condition.
type script struct {
	params []string // their names
	lines  [][]string
}

var (
	entryLine = regexp.MustCompile(`(?s)\.visible \.entry (\w+)\s*\((.*?)\)\s*\{(.*)\}`)
	wordParam = regexp.MustCompile(`^\.param \.u64 (\w+)$`)
	setCall   = regexp.MustCompile(`^call\.uni cudaGraphSetConditional, \((\w+), (\w+)\)$`)
)

const setConditional = "cudaGraphSetConditional"

// parseScript reads the PTX of a kernel that sets a condition.
func parseScript(text string) (*script, error) {
	if !strings.Contains(text, ".extern .func "+setConditional) {
		return nil, fmt.Errorf("%s is not declared", setConditional)
	}
	m := entryLine.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("there is no entry")
	}
	s := &script{}
	for p := range strings.SplitSeq(m[2], ",") {
		w := wordParam.FindStringSubmatch(strings.TrimSpace(p))
		if w == nil {
			return nil, fmt.Errorf("parameter %q", p)
		}
		s.params = append(s.params, w[1])
	}
	for line := range strings.SplitSeq(m[3], ";") {
		line = strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "{}"))
		switch {
		case line == "" || strings.HasPrefix(line, ".reg ") || strings.HasPrefix(line, ".param "):
		case line == "ret":
			return s, nil
		case setCall.MatchString(line):
			s.lines = append(s.lines, append([]string{"call"}, setCall.FindStringSubmatch(line)[1:]...))
		default:
			s.lines = append(s.lines, strings.Fields(strings.NewReplacer(",", " ", "[", " ", "]", " ").Replace(line)))
		}
	}
	return nil, fmt.Errorf("the entry has no end")
}

// perform runs a script. It locks g.mu.
func (g *GPU) perform(l *launch) uint32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := map[string]uint64{}
	for i, p := range l.script.params {
		v[p] = l.params[i]
	}
	of := func(s string) uint64 {
		if n, err := strconv.ParseUint(s, 10, 32); err == nil {
			return n
		}
		return v[s]
	}
	word := func(at uint64) []byte {
		if m := g.memory.span(at, 4); m != nil && at%4 == 0 {
			return m.bytes()[at-m.at:][:4]
		}
		return nil
	}
	for _, x := range l.script.lines {
		switch x[0] {
		case "ld.param.u64", "st.param.b64", "st.param.b32":
			v[x[1]] = of(x[2])
		case "ld.global.u32":
			b := word(of(x[2]))
			if b == nil {
				return illegalAddress
			}
			v[x[1]] = uint64(binary.LittleEndian.Uint32(b))
		case "st.global.u32":
			b := word(of(x[1]))
			if b == nil {
				return illegalAddress
			}
			binary.LittleEndian.PutUint32(b, uint32(of(x[2])))
		case "sub.u32":
			v[x[1]] = uint64(uint32(of(x[2]) - of(x[3])))
		case "setp.ne.u32":
			v[x[1]] = 0
			if of(x[2]) != of(x[3]) {
				v[x[1]] = 1
			}
		case "selp.u32":
			v[x[1]] = of(x[3])
			if of(x[4]) != 0 {
				v[x[1]] = of(x[2])
			}
		case "call":
			c, ok := g.objects[uintptr(of(x[1]))].(*conditional)
			if !ok {
				g.note("%s: there is no condition %#x, or no longer", setConditional, of(x[1]))
				return illegalAddress
			}
			c.value = uint32(of(x[2]))
		default:
			g.note("a kernel that sets a condition has the instruction %v, which nothing here runs", x)
			return launchFailed
		}
	}
	return success
}

// newScripted is a launch of a script.
func (g *GPU) newScripted(c *code, grid, block [3]uint32, shared uint32, params, extra uintptr) (*launch, uint32) {
	if one := [3]uint32{1, 1, 1}; grid != one || block != one || shared != 0 || params == 0 || extra != 0 {
		return nil, invalidValue
	}
	l := &launch{code: c, grid: grid, block: block}
	for _, p := range list[uintptr](params, uintptr(len(c.script.params))) {
		if p == 0 {
			return nil, invalidValue
		}
		l.params = append(l.params, *at[uint64](p))
	}
	return l, success
}

// scripted reports whether text is that of a script.
func scripted(text []byte) bool { return bytes.Contains(text, []byte(setConditional)) }
