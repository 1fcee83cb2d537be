package nvptx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// program is a random function of a few variables, which its text has as values: each block begins with
// a phi of each, changes one, and branches on one.
type program struct {
	next [][]int
	// A block sets variable sets to that with another, and goes by the value of by.
	sets, a, b, by, operation []int
	constant                  []uint32
	prev                      [][]int
	names                     [][variables + 1]string // of a block's values
}

const (
	variables = 3
	lanes     = 6
)

func randomProgram(r *rand.Rand, next [][]int) *program {
	n := len(next)
	p := &program{next: next, prev: make([][]int, n)}
	for i, to := range next {
		for _, x := range to {
			p.prev[x] = append(p.prev[x], i)
		}
		p.sets, p.a, p.b = append(p.sets, r.IntN(variables)), append(p.a, r.IntN(variables)), append(p.b, r.IntN(variables))
		p.by, p.operation = append(p.by, r.IntN(variables)), append(p.operation, r.IntN(4))
		p.constant = append(p.constant, r.Uint32N(7)+1)
		p.names = append(p.names, [variables + 1]string{})
		for v := range variables {
			p.names[i][v] = fmt.Sprintf("%%p%d.%d", i, v)
		}
		p.names[i][variables] = fmt.Sprintf("%%s%d", i)
	}
	return p
}

// blocks is the text. Variables 0 and 1 begin as what all lanes have, the last one as the lane.
func (p *program) blocks() []*llvm.Block {
	out := make([]*llvm.Block, len(p.next))
	for i := range p.next {
		b := &llvm.Block{Label: fmt.Sprint("b", i)}
		out[i] = b
		add := func(format string, args ...any) { b.Lines = append(b.Lines, "  "+fmt.Sprintf(format, args...)) }
		value := func(v, at int) string {
			if v == p.sets[at] {
				return fmt.Sprintf("%%s%d", at)
			}
			return fmt.Sprintf("%%p%d.%d", at, v)
		}
		for v := range variables {
			if i == 0 {
				add("%%p0.%d = add i32 %s, 0", v, []string{"%group", "5", "%lane"}[v])
				continue
			}
			var in []string
			for _, x := range p.prev[i] {
				in = append(in, fmt.Sprintf("[ %s, %%b%d ]", value(v, x), x))
			}
			if in == nil {
				in = []string{"[ 0, %b0 ]"} // nothing leads here
			}
			add("%%p%d.%d = phi i32 %s", i, v, strings.Join(in, ", "))
		}
		switch p.operation[i] {
		case 0:
			add("%%s%d = add i32 %%p%d.%d, %%p%d.%d", i, i, p.a[i], i, p.b[i])
		case 1:
			add("%%s%d = xor i32 %%p%d.%d, %d", i, i, p.a[i], p.constant[i])
		case 2:
			add("%%s%d = mul i32 %%p%d.%d, %d", i, i, p.a[i], p.constant[i])
		case 3:
			add("%%s%d = add i32 %d, 0", i, p.constant[i])
		}
		switch on := value(p.by[i], i); len(p.next[i]) {
		case 0:
			add("ret void")
		case 1:
			add("br label %%b%d", p.next[i][0])
		case 2:
			add("%%m%d = and i32 %s, 3", i, on)
			add("%%c%d = icmp ult i32 %%m%d, %d", i, i, 1+p.constant[i]%3)
			add("br i1 %%c%d, label %%b%d, label %%b%d", i, p.next[i][0], p.next[i][1])
		default:
			add("%%m%d = and i32 %s, 3", i, on)
			add("switch i32 %%m%d, label %%b%d [", i, p.next[i][0])
			for k, x := range p.next[i][1:] {
				b.Lines = append(b.Lines, fmt.Sprintf("    i32 %d, label %%b%d", k, x))
			}
			b.Lines = append(b.Lines, "  ]")
		}
	}
	return out
}

// visit is that of a block by a lane.
type visit struct {
	block, way int // way: which of next it leaves by
	to         int
	values     [variables + 1]uint32
	instance   string
}

// run is what a lane does; nil if it does not end soon. at says what distinguishes the rounds of loops.
func (p *program) run(lane uint32, at func(from, to int) string) []visit {
	v := [variables]uint32{1, 5, lane}
	var out []visit
	b, last := 0, -1
	for range 120 {
		x := visit{block: b, to: -1, instance: at(last, b)}
		copy(x.values[:], v[:])
		s := v[p.a[b]]
		switch p.operation[b] {
		case 0:
			s += v[p.b[b]]
		case 1:
			s ^= p.constant[b]
		case 2:
			s *= p.constant[b]
		case 3:
			s = p.constant[b]
		}
		v[p.sets[b]] = s
		x.values[variables] = s
		m := v[p.by[b]] & 3
		switch k := len(p.next[b]); k {
		case 0:
			return append(out, x)
		case 1:
			x.way = 0
		case 2:
			if m >= 1+p.constant[b]%3 {
				x.way = 1
			}
		default:
			if int(m)+1 < k {
				x.way = int(m) + 1
			}
		}
		x.to = p.next[b][x.way]
		out = append(out, x)
		b, last = x.to, b
	}
	return nil
}

// structured makes random control flow of loops and conditions, with ways out of the middle.
type structured struct {
	*rand.Rand
	next  [][]int
	loops [][2]int // where continue and break lead
}

func (s *structured) block() int {
	s.next = append(s.next, nil)
	return len(s.next) - 1
}

// some adds statements behind a block, and returns the block behind them; −1 if nothing comes there.
func (s *structured) some(b, depth int) int {
	for range 1 + s.IntN(3) {
		if b < 0 || len(s.next) > 40 {
			return b
		}
		switch k := s.IntN(8); {
		case k < 2 && depth > 0: // if, or if and else
			then, join := s.block(), s.block()
			other := join
			if k == 1 {
				other = s.block()
			}
			s.next[b] = []int{then, other}
			if e := s.some(then, depth-1); e >= 0 {
				s.next[e] = []int{join}
			}
			if k == 1 {
				if e := s.some(other, depth-1); e >= 0 {
					s.next[e] = []int{join}
				}
			}
			b = join
		case k < 4 && depth > 0: // a loop, tested at its beginning or its end
			head, behind := s.block(), s.block()
			s.next[b] = []int{head}
			s.loops = append(s.loops, [2]int{head, behind})
			e := 0
			if k == 2 {
				body := s.block()
				s.next[head] = []int{body, behind}
				if e = s.some(body, depth-1); e >= 0 {
					s.next[e] = []int{head}
				}
			} else if e = s.some(head, depth-1); e >= 0 {
				s.next[e] = []int{head, behind}
			}
			s.loops = s.loops[:len(s.loops)-1]
			b = behind
		case k == 4 && len(s.loops) > 0: // break or continue, perhaps
			l := s.loops[len(s.loops)-1]
			on := s.block()
			s.next[b] = []int{on, l[s.IntN(2)]}
			b = on
		case k == 5 && depth > 0: // a switch
			join := s.block()
			s.next[b] = []int{join}
			for range 2 + s.IntN(2) {
				c := s.block()
				s.next[b] = append(s.next[b], c)
				if e := s.some(c, depth-1); e >= 0 {
					s.next[e] = []int{join}
				}
			}
			b = join
		case k == 6: // return, perhaps
			on, end := s.block(), s.block()
			s.next[b] = []int{on, end}
			b = on
		case k == 7: // a || b
			second, then, join := s.block(), s.block(), s.block()
			s.next[b], s.next[second], s.next[then] = []int{then, second}, []int{then, join}, []int{join}
			b = join
		}
	}
	return b
}

// TestMembers runs random programs lane by lane, and holds the mask of each block against the lanes that
// come to it in the same rounds of its loops, and of each uniform value that they have the same.
func TestMembers(t *testing.T) {
	sample.Seldom(t)
	r := rand.New(rand.NewPCG(30, 41))
	f := &llvm.Function{Params: []llvm.Param{{Typ: "i32", Name: "%group"}, {Typ: "i32", Name: "%lane"}}}
	k := &air.Kernel{Args: []air.Arg{{Attribute: "threadgroup_position_in_grid"}, {Attribute: "thread_index_in_simdgroup"}}}
	kinds := map[maskKind]int{}
	ran, uniform, diverse, rounds := 0, 0, 0, 0
	for n := range 5000 {
		var next [][]int
		if n%2 == 0 {
			s := &structured{Rand: r}
			s.some(s.block(), 3)
			next = s.next
		} else {
			next = make([][]int, 2+r.IntN(8))
			for i := range next {
				for range r.IntN(4) {
					next[i] = append(next[i], 1+r.IntN(len(next)-1))
				}
			}
		}
		p := randomProgram(r, next)
		blocks := p.blocks()
		c, err := llvm.NewFlow(blocks)
		if err != nil {
			require.Equal(t, 1, n%2, "%v", err)
			require.ErrorIs(t, err, llvm.ErrFlow)
			continue
		}
		place := make([]int, len(blocks)) // of the program's blocks in the flow
		for i, b := range c.Blocks {
			var number int
			_, err := fmt.Sscanf(b.Label, "b%d", &number)
			require.NoError(t, err)
			place[number] = i
		}
		trace := make([][]visit, lanes)
		ended := true
		for lane := range trace {
			counts := make([]int, len(c.Loops))
			trace[lane] = p.run(uint32(lane), func(from, to int) string {
				to = place[to]
				if l := c.HeaderOf[to]; l >= 0 {
					if from >= 0 && c.Within(place[from], l) {
						counts[l]++
					} else {
						counts[l] = 0
					}
				}
				name := strconv.Itoa(to)
				for l := c.LoopOf[to]; l >= 0; l = c.Loops[l].Parent {
					name += " " + strconv.Itoa(counts[l])
				}
				return name
			})
			ended = ended && trace[lane] != nil
		}
		if !ended {
			continue
		}
		ran++
		text := func() string {
			var b strings.Builder
			for _, x := range p.blocks() {
				fmt.Fprintf(&b, "%s:\n%s\n", x.Label, strings.Join(x.Lines, "\n"))
			}
			return b.String()
		}
		u := newUniformity(c, f, k, nil)
		m := newMembers(c, u)
		together := map[string][]int{} // lanes, by instance
		visits := map[string]map[int]*visit{}
		for lane := range trace {
			for i := range trace[lane] {
				x := &trace[lane][i]
				together[x.instance] = append(together[x.instance], lane)
				if visits[x.instance] == nil {
					visits[x.instance] = map[int]*visit{}
				}
				visits[x.instance][lane] = x
			}
		}
		for instance, all := range visits {
			one := all[together[instance][0]]
			for i, value := range one.values {
				name := p.names[one.block][i]
				if u.diverse[u.values[name]] {
					diverse++
					continue
				}
				uniform++
				for _, x := range all {
					if value != x.values[i] {
						require.Fail(t, "not uniform", "%s at %s:\n%s", name, instance, text())
					}
				}
			}
		}
		// mask is the mask that a lane finds at a visit, by what it is made of; or, if enters, on the way
		// into the loop whose header it visits.
		known := map[[3]int][]int{}
		var mask func(lane, at, node int) []int
		mask = func(lane, at, node int) []int {
			key := [3]int{lane, at, node}
			if got, ok := known[key]; ok {
				return got
			}
			from := m.from[node]
			kinds[from.kind]++
			before := at
			if from.kind == maskLoop {
				if at > 0 && c.Within(place[trace[lane][at-1].block], c.HeaderOf[node]) {
					from = m.round[c.HeaderOf[node]]
					before--
					rounds++
				} else {
					from.kind = maskSame
				}
			} else if node < len(blocks) && from.block < len(blocks) {
				before--
			}
			var out []int
			if from.kind == maskEntry {
				for i := range lanes {
					out = append(out, i)
				}
			} else {
				at := from.block
				if l := at - len(blocks); l >= 0 { // the last time that the lane came into the loop
					for place[trace[lane][before].block] != c.Loops[l].Header || c.Within(place[trace[lane][before-1].block], l) {
						before--
					}
				} else {
					for place[trace[lane][before].block] != from.block {
						before--
					}
				}
				out = mask(lane, before, at)
				if from.kind == maskVote {
					instance := trace[lane][before].instance
					out = slices.DeleteFunc(slices.Clone(out), func(other int) bool { return place[visits[instance][other].to] != from.to })
				}
			}
			known[key] = out
			return out
		}
		for lane := range trace {
			for at, x := range trace[lane] {
				b := place[x.block]
				if !m.known[b] {
					kinds[maskUnknown]++
					continue
				}
				if want, got := together[x.instance], mask(lane, at, b); !slices.Equal(want, got) {
					require.Fail(t, "another mask", "lane %d at %s of b%d: %v, want %v:\n%s", lane, x.instance, x.block, got, want, text())
				}
			}
		}
	}
	t.Log(ran, kinds, uniform, diverse, rounds)
	for _, kind := range []maskKind{maskUnknown, maskEntry, maskSame, maskVote, maskLoop} {
		assert.Positive(t, kinds[kind])
	}
	assert.Greater(t, ran, 1000)
	assert.Positive(t, rounds)
	assert.Positive(t, uniform)
	assert.Positive(t, diverse)
}
