package judge

import (
	"fmt"
	"slices"
)

func said(s string) func() string { return func() string { return s } }

// race is two commands that conflict and that nothing orders.
type race struct {
	i, j int
	on   []addr
}

// explore runs the executions that a schedule allows, until check returns false.
//
// Commands that do not conflict commute, so two orders that order every race alike have
// the same outcome, and trying both orders of all races covers every order. If there
// are too many races, each is turned around alone, and a few random orders are tried.
// Finally the commands of each race are interleaved byte by byte.
func (j *judgeRun) explore(m *machine, xs []*instance, s *schedule, assumed [][2]int, check func(how func() string, got outcome) bool) {
	replays := 0
	for _, x := range xs {
		replays = max(replays, x.replay+1)
	}
	if len(xs) == 0 {
		check(said("without a command"), m.run(nil, 1))
		return
	}
	whole := func(order []int) []event {
		es := make([]event, len(order))
		for k, i := range order {
			es[k] = event{x: xs[i], reads: true, write: true}
		}
		return es
	}
	// An assumption that contradicts after's own order is void.
	var extra [][2]int
	for _, e := range assumed {
		if !s.after[e[1]][e[0]] && !s.after[e[0]][e[1]] {
			extra = append(extra, e)
		}
	}
	order := s.extension(extra, written)
	if order == nil {
		extra, order = nil, s.extension(nil, written)
	}
	isAssumed := map[[2]int]bool{}
	for _, e := range extra {
		isAssumed[e] = true
	}
	if !check(said("in written order"), m.run(whole(order), replays)) {
		return
	}
	var races []race
	for a := range xs {
		for b := a + 1; b < len(xs); b++ {
			if s.after[a][b] || s.after[b][a] || isAssumed[[2]int{a, b}] || isAssumed[[2]int{b, a}] {
				continue
			}
			if !conflict(xs[a].command, xs[b].command) {
				continue
			}
			if on := shared(xs[a], xs[b]); len(on) > 0 { // a command that is not strict conflicts with less
				races = append(races, race{a, b, on})
			}
		}
	}
	name := func(i int) string { return fmt.Sprintf("%s of replay %d", xs[i].id, xs[i].replay+1) }
	if len(races) <= j.o.Exhaustive {
		for turn := 1; turn < 1<<len(races); turn++ {
			edges := slices.Clone(extra)
			how := ""
			for k, r := range races {
				e := [2]int{r.i, r.j}
				if turn>>k&1 == 1 {
					e = [2]int{r.j, r.i}
					how += " " + name(r.j) + " before " + name(r.i)
				}
				edges = append(edges, e)
			}
			if order := s.extension(edges, written); order != nil && !check(said("with"+how), m.run(whole(order), replays)) {
				return
			}
		}
	} else {
		for _, r := range races {
			edges := append(slices.Clone(extra), [2]int{r.j, r.i})
			if order := s.extension(edges, written); order != nil && !check(func() string { return "with " + name(r.j) + " before " + name(r.i) }, m.run(whole(order), replays)) {
				return
			}
		}
	}
	for range j.o.Random {
		if len(races) == 0 {
			return // all orders that s allows differ only in commands that commute
		}
		if !check(said("in a random order"), m.run(whole(s.extension(extra, randomly(j.rng))), replays)) {
			return
		}
	}
	for k, r := range races {
		if k == j.o.Pairs {
			break
		}
		order, at := s.adjacent(r.i, r.j, extra)
		if order == nil {
			continue
		}
		es := whole(order)
		for n, mixed := range interleavings(xs[r.i], xs[r.j], r.on) {
			all := slices.Concat(es[:at], mixed, es[at+2:])
			if !check(func() string {
				return fmt.Sprintf("with the bytes of %s and %s interleaved (%d)", name(r.i), name(r.j), n)
			}, m.run(all, replays)) {
				return
			}
		}
	}
	if len(races) > 0 {
		j.remark("%s and %s conflict and nothing orders them; every outcome is the same", xs[races[0].i].id, xs[races[0].j].id)
	}
}

// interleavings returns ways to run two commands at the same time: both read before
// either writes; one writes between two halves of the other's writes; one runs between
// two halves of the other's reads. The halves are every other shared byte, and the
// first half of them.
func interleavings(a, b *instance, on []addr) (out [][]event) {
	index := map[addr]int{}
	for i, x := range on {
		index[x] = i
	}
	halves := []func(addr) bool{
		func(x addr) bool { i, ok := index[x]; return !ok || i%2 == 0 },
		func(x addr) bool { i, ok := index[x]; return !ok || i < (len(on)+1)/2 },
	}
	not := func(f func(addr) bool) func(addr) bool { return func(x addr) bool { return !f(x) } }
	r := func(x *instance, f func(addr) bool) event { return event{x: x, reads: true, only: f} }
	w := func(x *instance, f func(addr) bool) event { return event{x: x, write: true, only: f} }
	for _, p := range [][2]*instance{{a, b}, {b, a}} {
		x, y := p[0], p[1]
		out = append(out, []event{r(x, nil), r(y, nil), w(x, nil), w(y, nil)})
		for _, h := range halves {
			out = append(out,
				[]event{r(x, nil), r(y, nil), w(x, h), w(y, nil), w(x, not(h))},
				[]event{r(x, h), r(y, nil), w(y, nil), r(x, nil), w(x, nil)},
				[]event{r(x, nil), w(x, h), r(y, nil), w(y, nil), w(x, not(h))})
		}
	}
	return out
}
