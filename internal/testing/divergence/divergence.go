// Package divergence makes random Metal kernels whose threads diverge and reconverge, in conditions, loops that they
// leave in different iterations, and returns, with simdgroup operations on the way. It computes the results: active
// in an operation are the threads that structured control flow brings to it together.
package divergence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// uniform is the value of the constant argument of all kernels, which bounds some loops.
const uniform = 5

// Uniform is the value to bind to slot 1.
const Uniform = uniform

// Program is a kernel: out[[buffer(0)]] gets a uint of each thread, rounds[[buffer(1)]] must be [Uniform]. Grid and
// threadgroups have one dimension.
type Program struct {
	Name string
	body []statement
}

type kind uint8

const (
	exchange kind = iota
	condition
	loop
	leave // breaks the innermost loop
	finish
	barrier
)

// statement is a statement of a program. The numbers a, b and c determine its condition, bound or value.
type statement struct {
	kind       kind
	a, b, c    uint32
	then, rest []statement
	depth      int // number of loops around it
}

// Random returns a random program.
func Random(name string, r *rand.Rand) *Program {
	g := generator{r}
	p := &Program{Name: name}
	for range 3 {
		p.body = append(p.body, g.some(3, 0, false)...)
		if r.IntN(2) == 0 {
			p.body = append(p.body, g.statement(barrier, 0))
		}
	}
	p.body = append(p.body, g.statement(finish, 0), g.statement(exchange, 0))
	p.body = append(p.body, g.some(2, 0, false)...)
	return p
}

type generator struct{ *rand.Rand }

func (g generator) statement(k kind, depth int) statement {
	return statement{kind: k, a: g.Uint32N(7), b: 1 + g.Uint32N(6), c: g.Uint32N(40), depth: depth}
}

func (g generator) some(most, depth int, leaves bool) (out []statement) {
	for range 1 + g.IntN(2) {
		switch k := g.IntN(6); {
		case k < 2 && most > 0:
			s := g.statement(condition, depth)
			s.then = g.some(most-1, depth, false)
			if k == 0 {
				s.rest = g.some(most-1, depth, false)
			}
			out = append(out, s)
		case k < 4 && most > 0 && depth < 2:
			s := g.statement(loop, depth)
			s.then = g.some(most-1, depth+1, true)
			out = append(out, s)
		case k == 4 && leaves:
			out = append(out, g.statement(leave, depth))
		}
		out = append(out, g.statement(exchange, depth))
	}
	return out
}

// Source returns a source file with the kernels of programs.
func Source(programs []*Program) string {
	var b strings.Builder
	b.WriteString("#include <metal_stdlib>\nusing namespace metal;\n")
	for _, p := range programs {
		fmt.Fprintf(&b, `
[[kernel]] void %s(
    device uint* out [[buffer(0)]], constant uint& rounds [[buffer(1)]], uint at [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  uint h = lane + 1;
`, p.Name)
		write(&b, p.body, "  ")
		b.WriteString("  out[at] = h;\n}\n")
	}
	return b.String()
}

func write(b *strings.Builder, list []statement, indent string) {
	for _, s := range list {
		line := func(format string, args ...any) { b.WriteString(indent + fmt.Sprintf(format, args...) + "\n") }
		round := "0"
		if s.depth > 0 {
			round = fmt.Sprint("k", s.depth-1)
		}
		on := fmt.Sprintf("(%s + %s * %d) %% %d < %d", []string{"lane", "lane", "simd", "group"}[s.c%4], round, s.a, s.b+1, 1+s.c%s.b)
		switch s.kind {
		case exchange:
			value := fmt.Sprintf("(lane * %d + %s + %d)", s.a, round, s.c)
			switch s.c % 4 {
			case 0:
				line("h = h * 33 + simd_sum(%s);", value)
			case 1:
				line("h = h * 33 + simd_max(%s);", value)
			case 2:
				line("h = h * 33 + simd_prefix_exclusive_sum(%s);", value)
			default:
				line("h = h * 33 + simd_broadcast_first(%s) + simd_sum(1u);", value)
			}
		case condition:
			line("if (%s) {", on)
			write(b, s.then, indent+"  ")
			if s.rest != nil {
				line("} else {")
				write(b, s.rest, indent+"  ")
			}
			line("}")
		case loop:
			line("for (uint k%d = 0; k%[1]d < %s; k%[1]d++) {", s.depth, s.bound())
			write(b, s.then, indent+"  ")
			line("}")
		case leave:
			line("if (%s) break;", on)
		case finish:
			line("if (lane %% %d == %d) {\n%s  out[at] = h;\n%[3]s  return;\n%[3]s}", s.b+1, s.a%(s.b+1), indent)
		case barrier:
			line("threadgroup_barrier(mem_flags::mem_threadgroup);")
		}
	}
}

// bound returns the expression for the number of iterations of a loop.
func (s *statement) bound() string {
	switch s.c % 4 {
	case 0:
		return "rounds"
	case 1:
		return fmt.Sprint(s.b)
	}
	return fmt.Sprintf("(lane + %d) %% %d", s.a, s.b+1)
}

// Run returns what the kernel writes to out, for a grid of so many threads.
func (p *Program) Run(threads, threadgroup int) []uint32 {
	out := make([]uint32, threads)
	for group := 0; group*threadgroup < threads; group++ {
		begin := group * threadgroup
		for first := begin; first < min(begin+threadgroup, threads); first += 32 {
			n := min(32, begin+threadgroup-first, threads-first)
			w := warp{simd: uint32(first-begin) / 32, group: uint32(group), h: make([]uint32, n), ended: make([]bool, n), at: make([][2]uint32, n)}
			all := make([]int, n)
			for i := range all {
				all[i], w.h[i] = i, uint32(i)+1
			}
			w.run(p.body, all)
			copy(out[first:], w.h)
		}
	}
	return out
}

// warp is the state of a running simdgroup. Lists of lanes are in ascending order.
type warp struct {
	simd, group uint32
	h           []uint32
	at          [][2]uint32 // iterations of the loops in which a lane is
	ended       []bool
}

// run executes statements for the active lanes. It returns the lanes that leave the innermost loop.
func (w *warp) run(list []statement, lanes []int) (left []int) {
	out := func(more []int) { // lanes that leave
		left = append(left, more...)
		lanes = slices.DeleteFunc(slices.Clone(lanes), func(l int) bool { return w.ended[l] || slices.Contains(left, l) })
	}
	for i := range list {
		s := &list[i]
		if len(lanes) == 0 {
			return left
		}
		round := func(l int) uint32 {
			if s.depth > 0 {
				return w.at[l][s.depth-1]
			}
			return 0
		}
		var yes, no []int
		for _, l := range lanes {
			x := []uint32{uint32(l), uint32(l), w.simd, w.group}[s.c%4]
			if (x+round(l)*s.a)%(s.b+1) < 1+s.c%s.b {
				yes = append(yes, l)
			} else {
				no = append(no, l)
			}
		}
		switch s.kind {
		case exchange:
			value := func(l int) uint32 { return uint32(l)*s.a + round(l) + s.c }
			sum, most := uint32(0), uint32(0)
			for _, l := range lanes {
				most = max(most, value(l))
			}
			for _, l := range lanes {
				got := sum
				switch s.c % 4 {
				case 0:
					got = 0
					for _, o := range lanes {
						got += value(o)
					}
				case 1:
					got = most
				case 3:
					got = value(lanes[0]) + uint32(len(lanes))
				}
				sum += value(l)
				w.h[l] = w.h[l]*33 + got
			}
		case condition:
			more := w.run(s.then, yes)
			out(append(more, w.run(s.rest, no)...))
		case loop:
			inside := slices.Clone(lanes)
			for k := uint32(0); ; k++ {
				inside = slices.DeleteFunc(inside, func(l int) bool {
					most := (uint32(l) + s.a) % (s.b + 1)
					switch s.c % 4 {
					case 0:
						most = uniform
					case 1:
						most = s.b
					}
					w.at[l][s.depth] = k
					return k >= most || w.ended[l]
				})
				if len(inside) == 0 {
					break
				}
				gone := w.run(s.then, inside)
				inside = slices.DeleteFunc(inside, func(l int) bool { return slices.Contains(gone, l) })
			}
			out(nil)
		case leave:
			out(yes)
		case finish:
			for _, l := range lanes {
				w.ended[l] = w.ended[l] || uint32(l)%(s.b+1) == s.a%(s.b+1)
			}
			out(nil)
		}
	}
	return left
}
