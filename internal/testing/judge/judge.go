package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Verdict says what a change did to the meaning of a graph.
type Verdict uint8

// The verdicts.
const (
	Harmless  Verdict = iota // no execution that was tried gives another result
	Harmful                  // some execution gives another result, or the interface differs
	Undecided                // the results differ only where the meaning of before is not defined
)

func (v Verdict) String() string { return [...]string{"harmless", "harmful", "undecided"}[v] }

// Judgement is a verdict with its reason.
type Judgement struct {
	Verdict Verdict
	Reason  string // empty for a harmless change
	// Remarks list what a stricter judge would hold against a harmless change: a race
	// whose outcomes are all equal, a dispatch without an image that has no effect,
	// stored effects that are too wide.
	Remarks []string
	// Replays says how consecutive replays were ordered: as asked or, if before itself
	// races between streamed replays, Waited. In that case no such race can be held
	// against after.
	Replays Order
}

// Order is the order of consecutive replays.
type Order uint8

// The possible orders.
const (
	// Streamed replays follow one another in one stream of command buffers. The end of
	// a graph is no commit, so a barrier there orders the next replay after this one.
	Streamed Order = iota
	// Committed replays end in a commit that orders nothing.
	Committed
	// Waited replays begin when the one before has ended.
	Waited
)

func (o Order) String() string { return [...]string{"streamed", "committed", "waited"}[o] }

// Options bound what a judgement tries. Zero values mean the defaults.
type Options struct {
	Replays    Order
	Count      int // replays in a row; default 3
	Valuations int // valuations of the params that are tried; default 6
	Random     int // random orders for each stream that has races; default 2
	Exhaustive int // number of races up to which both orders of each are tried in all combinations; default 6
	Pairs      int // races whose commands are interleaved byte by byte; default 24
	Seed       uint64

	// Terms lets the judge use what the norms, products and sums of the builtin library
	// compute, element by element, and that one times x is x.
	Terms bool
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

// Judge decides whether after means what before means. Both must have passed
// [ir.Graph.Check].
func Judge(before, after *ir.Graph, o Options) Judgement { return NewReferee(before, o).Judge(after) }

// Referee judges many rewrites of one graph, and remembers what that graph computes.
// Only one goroutine may use it at a time.
type Referee struct {
	o      Options
	before *ir.Graph
	vs     [][]uint32 // valuations of before's params
	lower  *lowerer
	rel    *schedule // of one replay
	// What before's commands do, by unit and strictness; and what before makes of
	// streams, by unit, strictness and params.
	machines map[machineKey]*machine
	wants    map[string]wanted
}

// wanted is the result of before for one stream.
type wanted struct {
	outcome
	values map[value]*instance // see machine
}

type machineKey struct {
	unit   int64
	strict bool
}

// NewReferee returns a referee for rewrites of before, which must have passed
// [ir.Graph.Check].
func NewReferee(before *ir.Graph, o Options) *Referee {
	o.setDefaults()
	r := &Referee{o: o, before: before, lower: newLowerer(before), machines: map[machineKey]*machine{}, wants: map[string]wanted{}}
	r.vs = valuations(before, o.Valuations, rand.New(rand.NewPCG(o.Seed, 1)))
	if len(r.vs) > 0 && o.Replays == Streamed && len(racesOf(r.lower, r.vs, o, 1)) > 0 {
		r.o.Replays = Waited
	}
	if len(r.vs) > 0 {
		r.rel = happensBefore(before, 1, r.o)
	}
	return r
}

// Judge judges after, a rewrite of the referee's graph.
func (r *Referee) Judge(after *ir.Graph) Judgement { return r.judgement(r.rewrite(after)) }

// withTerms returns a referee of the same graph that knows the terms of kernels.
func (r *Referee) withTerms() *Referee {
	out := *r
	out.o.Terms = true
	out.machines, out.wants = map[machineKey]*machine{}, map[string]wanted{}
	return &out
}

// rewrite returns a lowerer of after, a rewrite of the referee's graph.
func (r *Referee) rewrite(after *ir.Graph) *lowerer {
	la := newLowerer(after)
	la.names, la.recorded = namesOf(r.before, after), r.lower
	return la
}

// judgement judges the graph of la, which r.rewrite returned.
func (r *Referee) judgement(la *lowerer) Judgement {
	if d := interfaceDifference(r.before, la.g); d != "" {
		return Judgement{Verdict: Harmful, Reason: "interface: " + d, Replays: r.o.Replays}
	}
	j := r.judge(la, true)
	if j.Verdict == Harmful && (r.lower.unknown() || la.unknown()) {
		if k := r.judge(la, false); k.Verdict != Harmful {
			k.Verdict = Undecided
			k.Reason = "only if a command of unknown effects touches scratch that it does not bind: " + j.Reason
			return k
		}
	}
	return j
}

// unknown reports whether the graph has a command of unknown effects.
func (l *lowerer) unknown() bool {
	for _, n := range l.g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && l.declared[d] == nil && !d.Effects.Known() {
			return true
		}
	}
	return false
}

// judgeRun is one judgement.
type judgeRun struct {
	*Referee
	after     *ir.Graph
	strict    bool
	rng       *rand.Rand
	la        *lowerer
	unit      int64
	mb, ma    *machine
	schedules map[int]*schedule // of after, by the number of replays
	out       Judgement
}

// judge judges the graph of la.
func (r *Referee) judge(la *lowerer, strict bool) Judgement {
	after := la.g
	j := &judgeRun{Referee: r, after: after, strict: strict, rng: rand.New(rand.NewPCG(r.o.Seed, 1)), la: la,
		schedules: map[int]*schedule{}, out: Judgement{Replays: r.o.Replays}}
	j.unit = j.commonUnit()
	key := machineKey{j.unit, strict}
	if j.mb = r.machines[key]; j.mb == nil {
		j.mb = newMachine(r.before, namesOf(r.before, r.before), r.o.Terms, j.unit, strict)
		r.machines[key] = j.mb
	}
	j.ma = newMachine(after, la.names, r.o.Terms, j.unit, strict)
	for _, seq := range j.sequences() {
		if j.stream(seq); j.out.Verdict == Harmful {
			break
		}
	}
	return j.out
}

// sequences returns the params of consecutive replays that are tried: each valuation
// alone, each followed by the next ones and by itself, and each pair of valuations
// between which after races.
func (j *judgeRun) sequences() (out [][][]uint32) {
	vs := j.vs
	for i := range vs {
		out = append(out, vs[i:i+1])
	}
	if j.o.Count < 2 {
		return out
	}
	seen := map[[2]int]bool{}
	add := func(ks ...int) {
		var seq [][]uint32
		for n, k := range ks {
			seq = append(seq, vs[k])
			if n > 0 {
				seen[[2]int{ks[n-1], k}] = true
			}
		}
		out = append(out, seq)
	}
	for i := range vs {
		ks := make([]int, j.o.Count) // i, i, i+1, i+2, …
		for n := range ks {
			ks[n] = (i + max(n-1, 0)) % len(vs)
		}
		add(ks...)
	}
	if j.o.Replays != Waited && len(vs) > 1 {
		ws := make([][]uint32, len(vs))
		for i, v := range vs {
			ws[i] = translate(j.before, j.after, v)
		}
		for _, x := range racesOf(j.la, ws, j.o, 1) {
			if !seen[[2]int{x.v, x.w}] {
				ks := make([]int, j.o.Count)
				for n := range ks {
					ks[n] = x.w
				}
				ks[0] = x.v
				add(ks...)
			}
		}
	}
	return out
}

// Undefined returns which output or state of g depends on undefined bytes through
// commands of known effects, or "" if none does. Bytes of an output that nothing writes
// do not count.
func Undefined(g *ir.Graph, o Options) string {
	o.setDefaults()
	l := newLowerer(g)
	vs := valuations(g, o.Valuations, rand.New(rand.NewPCG(o.Seed, 1)))
	u := unitFinder{}
	for _, v := range vs {
		u.add(l.commands(v))
	}
	m := newMachine(g, namesOf(g, g), o.Terms, u.cell(o.Terms), true)
	for _, v := range vs {
		for _, f := range m.written(l, slices.Repeat([][]uint32{v}, o.Count)) {
			for c, t := range f.cells {
				if t&tainted != 0 && t != leaf(undefined, ofText(f.name), int64(c), f.replay) {
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
	if len(j.out.Remarks) >= 20 {
		return
	}
	if s := fmt.Sprintf(format, args...); !slices.Contains(j.out.Remarks, s) {
		j.out.Remarks = append(j.out.Remarks, s)
	}
}

// stream compares the outcomes of consecutive replays with the given params.
func (j *judgeRun) stream(params [][]uint32) {
	var cb, ca [][]*command
	for _, v := range params {
		cb = append(cb, j.lower.commands(v))
		ca = append(ca, j.la.commands(translate(j.before, j.after, v)))
	}
	j.compareCommands(cb[0], ca[0])
	if j.out.Verdict == Harmful {
		return
	}
	key := fmt.Sprint(j.unit, j.strict, params)
	want, ok := j.wants[key]
	if !ok {
		j.mb.values = map[value]*instance{}
		want = wanted{j.mb.written(j.lower, params), j.mb.values}
		j.wants[key] = want
	}
	var xs []*instance
	var odd []ir.ID // commands whose values before does not compute
	for r := range ca {
		for _, c := range ca[r] {
			xs = append(xs, j.ma.instance(c, r))
		}
	}
	s := j.schedules[len(params)]
	if s == nil {
		s = happensBefore(j.after, len(params), j.o)
		j.schedules[len(params)] = s
	}
	j.ma.values = map[value]*instance{} // the values of the first execution
	j.explore(j.ma, xs, s, j.assume(cb, ca), func(how func() string, got outcome) bool {
		for t, x := range j.ma.values {
			if want.values[t] == nil {
				odd = append(odd, x.id)
			}
		}
		j.ma.values = nil
		return j.compare(func() string { return fmt.Sprintf("params %v, %s", params, how()) }, j.unit, want.outcome, got)
	})
	slices.Sort(odd)
	for _, id := range slices.Compact(odd) {
		j.remark("%s computes a value that before does not compute, which nothing needs", id)
	}
}

// unitFinder finds the greatest length that divides all boundaries that it has seen.
type unitFinder struct{ unit int64 }

func (u *unitFinder) addLength(v int64) {
	for v != 0 {
		u.unit, v = v, u.unit%v
	}
}

func (u *unitFinder) add(cs []*command) {
	for _, c := range cs {
		for _, as := range [2][]area{c.reads, c.writes} {
			for _, a := range as {
				for _, r := range a.runs {
					if r.bytes != "" { // argument memory has no cells, but a copy of it fills some
						u.addLength(int64(len(r.bytes)))
						continue
					}
					u.addLength(r.lo)
					u.addLength(r.hi)
				}
			}
		}
	}
}

// cell returns the length of a cell. With terms it divides an element.
func (u *unitFinder) cell(terms bool) int64 {
	if terms {
		u.addLength(element)
	}
	return max(u.unit, 1)
}

// commonUnit returns the greatest length that divides every boundary of both graphs.
func (j *judgeRun) commonUnit() int64 {
	u := unitFinder{}
	for _, v := range j.vs {
		u.add(j.lower.commands(v))
		u.add(j.la.commands(translate(j.before, j.after, v)))
	}
	return u.cell(j.o.Terms)
}

// compareCommands looks for false claims, which no execution shows.
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
		if _, same := had[c.text]; !same && !c.unknown && slices.ContainsFunc(c.writes, func(w area) bool { return w.slot < 0 && len(w.runs) > 0 }) {
			j.found(Harmful, "%s: stored effects say that it writes what it does not bind", c.id)
		}
		if c.boast != "" {
			j.remark("%s: %s", c.id, c.boast)
		}
		if had[c.text]--; had[c.text] < 0 && !j.o.Terms {
			j.remark("%s computes what no command of before computes, or once more", c.id)
		}
	}
}

// assume returns the edges that after may take from before. If before leaves two
// commands of one replay unordered and one of them has unknown effects, they are
// assumed not to touch the same bytes, and are ordered as before lists them.
func (j *judgeRun) assume(cb, ca [][]*command) (edges [][2]int) {
	if !slices.ContainsFunc(ca[0], func(c *command) bool { return c.unknown }) {
		return nil
	}
	base := 0
	for r := range ca {
		image := images(cb[r], ca[r])
		for p, x := range ca[r] {
			for q, y := range ca[r] {
				bp, bq := image[p], image[q]
				if (x.unknown || y.unknown) && bp >= 0 && bq >= 0 && bp < bq && !j.rel.after[bp][bq] && !j.rel.after[bq][bp] {
					edges = append(edges, [2]int{base + p, base + q})
				}
			}
		}
		base += len(ca[r])
	}
	return edges
}

// images pairs commands of after with commands of before that have the same text, in
// written order.
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

// compare compares an outcome with that of before. It returns false once the change is
// known to be harmful.
func (j *judgeRun) compare(how func() string, unit int64, want, got outcome) bool {
	for i, w := range want {
		for c, t := range w.cells {
			if g := got[i].cells[c]; g == t {
				continue
			}
			if t&tainted != 0 {
				j.found(Undecided, "%s: %%%s after replay %d differs at byte %d, where before leaves it undefined", how(), w.name, w.replay+1, int64(c)*unit)
				continue
			}
			j.found(Harmful, "%s: %%%s after replay %d differs at byte %d", how(), w.name, w.replay+1, int64(c)*unit)
			return false
		}
	}
	return true
}
