//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// worthwhile is how many launches of a replay have to share what is known of their parameters, so that the
// driver compiles an entry for them, which takes it milliseconds. The layers of a model do.
const worthwhile = 8

// specialise has steps that share what is known of their parameters launch an entry in which it stands: the
// sizes of matrices, the threads of the grid. The driver then unrolls loops and leaves out divisions, and
// no block begins by reading how long its rows are.
func (c *code) specialise() {
	type group struct {
		kernel *kernel
		key    string
	}
	groups := map[group][]int{}
	known := make([]map[int]uint64, len(c.steps))
	for n := range c.steps {
		s := &c.steps[n]
		var key string
		known[n], key = c.known(s)
		groups[group{s.kernel, key}] = append(groups[group{s.kernel, key}], n)
	}
	for g, steps := range groups {
		if len(steps) < worthwhile {
			continue
		}
		e := g.kernel.entry(c.steps[steps[0]].form(), g.key)
		e.known = known[steps[0]]
		for _, n := range steps {
			c.steps[n].entry = e
		}
	}
}

// known are the parameters of a step, by number, that are the same in each replay. Equal keys have equal
// ones.
func (c *code) known(s *step) (out map[int]uint64, key string) {
	var value, shared [slots]uint64
	for i := s.first; i < s.dispatch; i++ {
		switch o := &c.Ops[i]; {
		case o.Kind == plan.SetThreadgroupMemory:
			shared[o.Slot] = uint64(o.Len)
		case o.Kind == plan.SetBytes && s.given(o.Slot):
			if v := c.vars(i); len(v) == 0 || v[0].Op != i {
				value[o.Slot] = word(c.Words[c.Word[i]:][:o.Len])
			}
		}
	}
	out = map[int]uint64{}
	var b strings.Builder
	add := func(n int, v uint64) {
		out[n] = v
		fmt.Fprintf(&b, " %d=%d", n, v)
	}
	at, begin := 0, uint64(0)
	for i := range s.kernel.kernel.Args {
		a := &s.kernel.kernel.Args[i]
		switch {
		case a.Attribute != "":
			continue
		case a.Space == air.Threadgroup:
			add(at, begin)
			begin += (shared[a.Index] + 15) &^ 15
		case a.ByValue() && s.values:
			add(at, value[a.Index]) // 0 where a table adds it
		}
		at++
	}
	g := &c.Grids[c.Ops[s.dispatch].Index]
	var varies [3]bool
	for _, v := range c.vars(s.dispatch) {
		if v.Op != s.dispatch {
			break
		}
		varies[v.Part-plan.Extent0] = true
	}
	for i := range 3 {
		threads := g.Size[i]
		if g.Unit == ir.Threadgroups {
			threads *= uint64(g.Group[i])
		}
		switch {
		case s.most[i] > 0:
			add(at+i, 0) // a table adds it
		case !varies[i]:
			add(at+i, threads)
		}
		add(at+3+i, uint64(g.Group[i]))
	}
	if s.additions > 0 {
		add(at+7, s.moves)
	}
	return out, b.String()
}

// parameterRead is where an entry reads one of its parameters, or a part of it.
var parameterRead = regexp.MustCompile(`ld\.param\.([busf])(8|16|32|64)(\s+)(%\w+), \[` + air.PTXEntry + `_param_(\d+)(?:\+(\d+))?\];`)

// specialised is a text in which known parameters stand where they were read.
func specialised(text []byte, known map[int]uint64) []byte {
	var out bytes.Buffer
	last := 0
	for _, m := range parameterRead.FindAllSubmatchIndex(text, -1) {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return string(text[m[2*i]:m[2*i+1]])
		}
		n, _ := strconv.Atoi(part(5))
		v, ok := known[n]
		if !ok {
			continue
		}
		if off, _ := strconv.Atoi(part(6)); off > 0 {
			v >>= 8 * off
		}
		width, _ := strconv.Atoi(part(2))
		v &= 1<<width - 1
		out.Write(text[last:m[0]])
		last = m[1]
		switch {
		case part(1) == "f" && width == 32:
			fmt.Fprintf(&out, "mov.f32%s%s, 0f%08X;", part(3), part(4), v)
		case part(1) == "f":
			fmt.Fprintf(&out, "mov.f64%s%s, 0d%016X;", part(3), part(4), v)
		case part(1) == "s" && width < 64: // whose register is wider where it has 8 bits
			fmt.Fprintf(&out, "mov.s%d%s%s, %d;", max(16, width), part(3), part(4), int64(v)<<(64-width)>>(64-width))
		default:
			fmt.Fprintf(&out, "mov.b%d%s%s, %d;", max(16, width), part(3), part(4), v)
		}
	}
	out.Write(text[last:])
	return out.Bytes()
}
