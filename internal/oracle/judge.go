package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Verdict is what became of a graph's meaning.
type Verdict uint8

// The verdicts.
const (
	Harmless  Verdict = iota // no execution that was tried gives another result
	Harmful                  // some execution gives another result, or the interface differs
	Undecided                // the results differ where before's meaning is not defined
)

func (v Verdict) String() string { return [...]string{"harmless", "harmful", "undecided"}[v] }

// Judgement is a verdict and its reason.
type Judgement struct {
	Verdict Verdict
	Reason  string // empty for a harmless change
	// Remarks say what a stricter judge would hold against a harmless change: a
	// race whose outcomes are all equal, a dispatch without an image that does
	// nothing, a claim that is too wide.
	Remarks []string
}

// Order of consecutive replays.
type Order uint8

// The orders.
const (
	// Streamed replays follow one another in one stream of command buffers: the
	// end of a graph is no commit, so a barrier there orders the next replay
	// after this one.
	Streamed Order = iota
	// Committed replays end in a bare commit, which orders nothing.
	Committed
	// Waited replays begin when the one before has ended.
	Waited
)

// Options are the limits of a judgement; zero values mean the defaults.
type Options struct {
	Replays Order
	// Cumulative: an ordered commit orders all earlier command buffers before
	// the later ones, not its own alone.
	Cumulative bool
	Count      int // replays that are run in a row, 3
	Valuations int // of the params, 6; all of them if there are no more
	Random     int // random extensions for each stream, 2
	Exhaustive int // races up to which every orientation is tried, 6
	Pairs      int // races that are interleaved byte by byte, 24
	Seed       uint64

	Equivalences []Equivalence
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		v *int
		n int
	}{{&o.Count, 3}, {&o.Valuations, 6}, {&o.Random, 2}, {&o.Exhaustive, 6}, {&o.Pairs, 24}} {
		if *d.v == 0 {
			*d.v = d.n
		}
	}
}

// Judge compares what two graphs mean. Both must have passed [ir.Graph.Check].
func Judge(before, after *ir.Graph, o Options) Judgement {
	o.setDefaults()
	if d := interfaceDifference(before, after); d != "" {
		return Judgement{Verdict: Harmful, Reason: "interface: " + d}
	}
	j := judge(before, after, o, true)
	if j.Verdict == Harmful && hasUnknown(before, after) {
		if k := judge(before, after, o, false); k.Verdict != Harmful {
			k.Verdict = Undecided
			k.Reason = "only if a command of unknown effects touches scratch that it does not bind: " + j.Reason
			return k
		}
	}
	return j
}

func hasUnknown(gs ...*ir.Graph) bool {
	for _, g := range gs {
		l := newLowerer(g)
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok && l.declared[d] == nil && !d.Effects.Known() {
				return true
			}
		}
	}
	return false
}

// judgeRun is one comparison.
type judgeRun struct {
	o             Options
	before, after *ir.Graph
	ts            *tokens
	strict        bool
	rng           *rand.Rand
	lb, la        *lowerer
	stands        map[*ir.Dispatch]Stand
	out           Judgement
}

func judge(before, after *ir.Graph, o Options, strict bool) Judgement {
	j := &judgeRun{o: o, before: before, after: after, ts: newTokens(), strict: strict,
		rng: rand.New(rand.NewPCG(o.Seed, 1)), lb: newLowerer(before), la: newLowerer(after), stands: map[*ir.Dispatch]Stand{}}
	for _, n := range after.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			for _, e := range o.Equivalences {
				if s, ok := e(before, after, d); ok {
					j.stands[d] = s
					break
				}
			}
		}
	}
	vs := valuations(before, o.Valuations, j.rng)
	for i := range vs {
		// Params may change from replay to replay, or stay.
		seqs := [][][]uint32{repeat(vs[i:i+1], o.Count)}
		if len(vs) > 1 {
			seqs = append(seqs, repeat(append(slices.Clone(vs[i:]), vs[:i]...), o.Count))
		}
		for k, seq := range seqs {
			for n := 1 + k; n <= o.Count; n++ { // the first replay is that of the other sequence
				if j.stream(seq[:n]); j.out.Verdict == Harmful {
					return j.out
				}
			}
		}
	}
	return j.out
}

func repeat(vs [][]uint32, n int) (out [][]uint32) {
	for i := range n {
		out = append(out, vs[i%len(vs)])
	}
	return out
}

// Undefined says which output or state of g depends on undefined bytes, by way
// of commands of known effects, or "". Bytes of an output that nothing writes do
// not count.
func Undefined(g *ir.Graph, o Options) string {
	o.setDefaults()
	ts, l := newTokens(), newLowerer(g)
	for _, v := range valuations(g, o.Valuations, rand.New(rand.NewPCG(o.Seed, 1))) {
		var all [][]*command
		for range o.Count {
			all = append(all, l.commands(v))
		}
		m := newMachine(g, namesOf(g, g), ts, common(all, nil, false), true)
		var es []event
		for r, cs := range all {
			for _, c := range cs {
				es = append(es, event{x: m.instance(c, r), reads: true, write: true})
			}
		}
		for _, f := range m.run(es, o.Count) {
			for c, t := range f.cells {
				if ts.tainted[t] && t != ts.leaf(leafPoison, f.name, int64(c), f.replay) {
					return fmt.Sprintf("params %v: %%%s depends on undefined bytes at byte %d", v, f.name, int64(c)*m.unit)
				}
			}
		}
	}
	return ""
}

// found records a difference; harm outweighs doubt.
func (j *judgeRun) found(v Verdict, format string, args ...any) {
	if j.out.Verdict != Harmful && (v == Harmful || j.out.Verdict == Harmless) {
		j.out.Verdict, j.out.Reason = v, fmt.Sprintf(format, args...)
	}
}

func (j *judgeRun) remark(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); len(j.out.Remarks) < 20 && !slices.Contains(j.out.Remarks, s) {
		j.out.Remarks = append(j.out.Remarks, s)
	}
}

// stream compares the outcome after consecutive replays with the given params.
func (j *judgeRun) stream(params [][]uint32) {
	var cb, ca [][]*command
	for _, v := range params {
		cb = append(cb, j.lb.commands(v))
		ca = append(ca, j.la.commands(translate(j.before, j.after, v)))
	}
	j.compareCommands(cb[0], ca[0])
	if j.out.Verdict == Harmful {
		return
	}
	unit := common(cb, ca, len(j.stands) > 0)

	mb := newMachine(j.before, namesOf(j.before, j.before), j.ts, unit, j.strict)
	var recorded []event
	for r, cs := range cb {
		for _, c := range cs {
			recorded = append(recorded, event{x: mb.instance(c, r), reads: true, write: true})
		}
	}
	want := mb.run(recorded, len(params))

	ma := newMachine(j.after, namesOf(j.before, j.after), j.ts, unit, j.strict)
	var xs []*instance
	for r, cs := range ca {
		for _, c := range cs {
			x := ma.instance(c, r)
			if d, ok := c.node.(*ir.Dispatch); ok {
				if s, ok := j.stands[d]; ok {
					x.steps = ma.steps(s, cb[r], j.la)
				}
			}
			xs = append(xs, x)
		}
	}
	s := happensBefore(j.after, ca, j.o)
	assumed := j.assume(cb, ca)
	j.explore(ma, xs, s, assumed, func(how string, got outcome) bool {
		return j.compare(fmt.Sprintf("params %v, %s", params, how), unit, want, got)
	})
}

// common is the greatest length that divides every boundary of every run.
func common(cb, ca [][]*command, bases bool) int64 {
	unit := int64(0)
	add := func(v int64) {
		for v != 0 {
			unit, v = v, unit%v
		}
	}
	for _, cs := range append(slices.Clone(cb), ca...) {
		for _, c := range cs {
			for _, a := range slices.Concat(c.reads, c.writes) {
				for _, r := range a.runs {
					add(r.lo)
					add(r.hi)
				}
				if bases {
					add(a.base.off)
				}
			}
		}
	}
	return max(unit, 1)
}

// compareCommands looks for what no execution shows: claims that are false.
func (j *judgeRun) compareCommands(b, a []*command) {
	had := map[string]int{}
	lied := map[string]bool{}
	for _, c := range b {
		had[c.text]++
		if c.lie != "" {
			lied[c.text+c.lie] = true
		}
	}
	for _, c := range a {
		if c.lie != "" && !lied[c.text+c.lie] {
			j.found(Harmful, "%s: %s", c.id, c.lie)
		}
		if c.boast != "" {
			j.remark("%s: %s", c.id, c.boast)
		}
		if had[c.text]--; had[c.text] < 0 {
			j.remark("%s computes what no command of before computes, or once more", c.id)
		}
	}
}

// assume returns the edges that after may take from before: two commands that
// before left unordered within one replay, one of them of unknown effects, are
// taken not to touch the same bytes, and stand in before's order.
func (j *judgeRun) assume(cb, ca [][]*command) (edges [][2]int) {
	sb := happensBefore(j.before, cb[:1], j.o)
	base := 0
	for r := range ca {
		image := images(cb[r], ca[r])
		for p, x := range ca[r] {
			for q, y := range ca[r] {
				bp, bq := image[p], image[q]
				if (x.unknown || y.unknown) && bp >= 0 && bq >= 0 && bp < bq && !sb.after[bp][bq] && !sb.after[bq][bp] {
					edges = append(edges, [2]int{base + p, base + q})
				}
			}
		}
		base += len(ca[r])
	}
	return edges
}

// images pairs the commands of after with those of before that have the same
// text, in written order.
func images(b, a []*command) []int {
	places := map[string][]int{}
	for i, c := range b {
		places[c.text] = append(places[c.text], i)
	}
	out := make([]int, len(a))
	for i, c := range a {
		out[i] = -1
		if p := places[c.text]; len(p) > 0 {
			out[i], places[c.text] = p[0], p[1:]
		}
	}
	return out
}

// race is two commands that conflict and that nothing orders.
type race struct {
	i, j int
	on   []addr
}

// explore runs the executions that a schedule allows, until check says stop.
//
// Commands that do not conflict commute, so that two extensions which order
// every race alike have one outcome: trying each orientation of the races tries
// every extension. Past the limit, each race is turned round alone, and a few
// random extensions are tried. Then the commands of each race are run byte by
// byte through one another.
func (j *judgeRun) explore(m *machine, xs []*instance, s *schedule, assumed [][2]int, check func(how string, got outcome) bool) {
	replays := 0
	for _, x := range xs {
		replays = max(replays, x.replay+1)
	}
	if len(xs) == 0 {
		check("without a command", m.run(nil, 1))
		return
	}
	whole := func(order []int) []event {
		es := make([]event, len(order))
		for k, i := range order {
			es[k] = event{x: xs[i], reads: true, write: true}
		}
		return es
	}
	// An assumption that after's own order contradicts is void.
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
	if !check("in written order", m.run(whole(order), replays)) {
		return
	}
	var races []race
	for a := range xs {
		for b := a + 1; b < len(xs); b++ {
			if s.after[a][b] || s.after[b][a] || isAssumed[[2]int{a, b}] || isAssumed[[2]int{b, a}] {
				continue
			}
			if on := shared(xs[a], xs[b]); len(on) > 0 {
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
			if order := s.extension(edges, written); order != nil && !check("with"+how, m.run(whole(order), replays)) {
				return
			}
		}
	} else {
		for _, r := range races {
			edges := append(slices.Clone(extra), [2]int{r.j, r.i})
			if order := s.extension(edges, written); order != nil && !check("with "+name(r.j)+" before "+name(r.i), m.run(whole(order), replays)) {
				return
			}
		}
	}
	for range j.o.Random {
		if !check("in a random order", m.run(whole(s.extension(extra, randomly(j.rng))), replays)) {
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
			if !check(fmt.Sprintf("with the bytes of %s and %s interleaved (%d)", name(r.i), name(r.j), n), m.run(all, replays)) {
				return
			}
		}
	}
	if len(races) > 0 {
		j.remark("%s and %s conflict and nothing orders them; every outcome is the same", xs[races[0].i].id, xs[races[0].j].id)
	}
}

// interleavings are ways to run two commands at once: both read before either
// writes; one writes between two halves of the other's writes; one runs between
// two halves of the other's reads. Halves are every other shared byte, and the
// first ones.
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

// compare holds an outcome against before's. It returns false once the change
// is known to be harmful.
func (j *judgeRun) compare(how string, unit int64, want, got outcome) bool {
	for i, w := range want {
		for c, t := range w.cells {
			if g := got[i].cells[c]; g == t {
				continue
			}
			if j.ts.tainted[t] {
				j.found(Undecided, "%s: %%%s after replay %d differs at byte %d, where before leaves it undefined", how, w.name, w.replay+1, int64(c)*unit)
				continue
			}
			j.found(Harmful, "%s: %%%s after replay %d differs at byte %d", how, w.name, w.replay+1, int64(c)*unit)
			return false
		}
	}
	return true
}
