package judge

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// Answer is what a prover says about a pair of graphs.
type Answer uint8

// The possible answers.
const (
	Accepted Answer = iota
	Refused
	CannotTell
)

func (a Answer) String() string { return [...]string{"accepted", "refused", "cannot tell"}[a] }

// CampaignOptions say how much a campaign tries. Zero values mean the defaults.
type CampaignOptions struct {
	Graphs   int // graphs to generate; default 80
	PerClass int // the least number of mutations of each class; default 300
	Seed     uint64
	Workers  int         // default GOMAXPROCS
	Also     []*ir.Graph // graphs that are mutated in addition to the generated ones
	// Classes are the mutations to use; default [Mutations].
	Classes []Mutation
	Judge   Options // Terms is ignored, because it follows from the class
	// Judged, if not nil, is called with every case, from several goroutines at once.
	Judged func(before, after *ir.Graph, j Judgement)
}

// Campaign draws graphs and mutations of them, half of them after an honest rewrite,
// judges each one, and asks check, which must be safe for concurrent use. The report
// depends on the options only. If a class makes the same graph from the same graph
// again, that does not count.
func Campaign(o CampaignOptions, check func(before, after *ir.Graph) (Answer, string)) (*Report, error) {
	for _, d := range []struct {
		v *int
		n int
	}{{&o.Graphs, 80}, {&o.PerClass, 300}, {&o.Workers, runtime.GOMAXPROCS(0)}} {
		if *d.v == 0 {
			*d.v = d.n
		}
	}
	if o.Classes == nil {
		o.Classes = Mutations
	}
	c := &campaign{CampaignOptions: o, check: check}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	report := newReport(o.Classes)
	report.Graphs = len(c.subjects)
	for round := range mostRounds {
		want := make([]int, len(o.Classes)) // by class: number of mutations to try in this round per graph that has a place for the class
		for k := range o.Classes {
			if missing := o.PerClass - report.Classes[k].Total(); missing > 0 {
				places := max(c.places(k), 1)
				want[k] = (missing*(1+round) + places) / places
			}
		}
		for _, cases := range c.round(round, want) {
			for _, x := range cases {
				report.add(x)
			}
		}
	}
	return report, nil
}

// mostRounds bounds how often classes that found too few places try again.
const mostRounds = 32

type campaign struct {
	CampaignOptions
	check    func(before, after *ir.Graph) (Answer, string)
	subjects []*subject
}

// subject is a graph that is mutated. Only one goroutine uses it at a time.
type subject struct {
	graph         *ir.Graph
	plain, fusing *Referee
	has           []bool            // by class: it finds a place
	seen          []map[string]bool // by class: the texts of the graphs made so far
}

// prepare generates the graphs, in parallel.
func (c *campaign) prepare() error {
	c.subjects = make([]*subject, c.Graphs+len(c.Also))
	errs := make([]error, len(c.subjects))
	c.each(func(i int) {
		var g *ir.Graph
		if i < c.Graphs {
			rng := rand.New(rand.NewPCG(c.Seed, uint64(i)))
			if g, errs[i] = Generate(rng, c.Judge, placeBarriers); errs[i] != nil {
				return
			}
			if i%9 == 4 { // a graph of a serial encoder, whose barriers mean nothing
				g.SetOrdering(ir.Serial)
				loosen(rng, g)
			}
			if i%7 == 6 { // a recording whose host waits between replays
				dropWraparound(rng, g)
			}
		} else {
			g = c.Also[i-c.Graphs].Clone()
			g.Source = nil
			if Judge(g, g, Options{Replays: Waited, Valuations: 2}).Verdict != Harmless {
				PlaceBarriers(g) // a racy recording gets barriers, because nothing can be held against mutations of a racy graph
			}
		}
		o := c.Judge
		if len(g.Nodes) > 25 {
			o.Valuations = 2 // a transformer layer is slow to judge
		}
		s := &subject{graph: g, plain: NewReferee(g, o), seen: make([]map[string]bool, len(c.Classes))}
		s.fusing = s.plain.withTerms()
		rng := rand.New(rand.NewPCG(c.Seed^1, uint64(i)))
		for k, m := range c.Classes {
			_, ok := m.Apply(rng, g)
			for n := 0; n < 3 && !ok && !m.Fuses; n++ { // perhaps after a rewrite
				if h := g.Clone(); honestOrder(rng, h) && h.Check() == nil {
					_, ok = m.Apply(rng, h)
				}
			}
			s.has, s.seen[k] = append(s.has, ok), map[string]bool{}
		}
		c.subjects[i] = s
	})
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("graph %d: %w", i, err)
		}
	}
	return nil
}

func placeBarriers(g *ir.Graph) error {
	PlaceBarriers(g)
	return nil
}

// each calls f with the index of every subject, on the campaign's workers.
func (c *campaign) each(f func(i int)) {
	next := make(chan int)
	var wait sync.WaitGroup
	for range c.Workers {
		wait.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range c.subjects {
		next <- i
	}
	close(next)
	wait.Wait()
}

// places returns in how many graphs a class finds a place.
func (c *campaign) places(class int) (n int) {
	for _, s := range c.subjects {
		if s.has[class] {
			n++
		}
	}
	return n
}

// round makes want[class] mutations of each class from every graph.
func (c *campaign) round(round int, want []int) [][]testCase {
	out := make([][]testCase, len(c.subjects))
	c.each(func(i int) {
		s := c.subjects[i]
		for k, m := range c.Classes {
			if !s.has[k] {
				continue
			}
			for n := range want[k] {
				rng := rand.New(rand.NewPCG(c.Seed+uint64(i)<<32, uint64(round)<<48|uint64(k)<<32|uint64(n)))
				if x, ok := c.try(rng, s, k, m); ok {
					out[i] = append(out[i], x)
				}
			}
		}
	})
	return out
}

// rewrites are the honest rewrites after which a mutation may be made.
var rewrites = []func(*rand.Rand, *ir.Graph) bool{honestBarriers, honestEdges, honestOrder, honestRename, honestAll}

func (c *campaign) try(rng *rand.Rand, s *subject, class int, m Mutation) (testCase, bool) {
	from := s.graph
	if rng.IntN(2) == 0 && !m.Fuses {
		g := from.Clone()
		if f, _ := pick(rng, rewrites); f(rng, g) && g.Check() == nil {
			from = g
		}
	}
	after, ok := m.Apply(rng, from)
	if !ok && from != s.graph { // a graph ordered by edges has no barriers to drop
		after, ok = m.Apply(rng, s.graph)
	}
	if !ok {
		return testCase{}, false
	}
	if rng.IntN(8) == 0 && !m.Honest && !m.Fuses { // and one more
		if other := c.Classes[rng.IntN(len(c.Classes))]; !other.Fuses {
			if again, ok := other.Apply(rng, after); ok {
				after = again
			}
		}
	}
	t := text(after)
	if s.seen[class][t] {
		return testCase{}, false
	}
	s.seen[class][t] = true
	x := testCase{class: class}
	referee := s.plain
	if m.Fuses {
		referee = s.fusing
	}
	rewrite := referee.rewrite(after)
	x.judgement = referee.judgement(rewrite)
	if !m.Fuses && x.judgement.Verdict == Harmful && len(s.graph.Kernels) > 0 {
		// A change that only terms show to be harmless is no example of a harmful
		// change.
		if j := s.fusing.judgement(rewrite); j.Verdict == Harmless {
			x.judgement = Judgement{Verdict: Undecided, Reason: "equal by the terms of its kernels; otherwise " + x.judgement.Reason, Replays: j.Replays}
		}
	}
	if j := &x.judgement; j.Verdict == Harmful && m.Inert {
		if SameBits(s.graph, after, c.Judge) {
			j.Verdict, j.Reason = Undecided, "equal bits on the CPU; by values "+j.Reason
		}
	}
	if c.Judged != nil {
		c.Judged(s.graph, after, x.judgement)
	}
	x.answer, x.reason = c.check(s.graph, after)
	x.before, x.after = s.graph, t
	return x, true
}

func text(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }

// testCase is one mutation, its judgement and the prover's answer.
type testCase struct {
	class     int
	judgement Judgement
	answer    Answer
	reason    string
	before    *ir.Graph
	after     string
}

// label returns the row of the report that a case counts in.
func (x testCase) label() Label {
	switch {
	case x.judgement.Verdict == Harmless && len(x.judgement.Remarks) > 0:
		return RemarkedLabel
	case x.judgement.Verdict == Harmless:
		return HarmlessLabel
	case x.judgement.Verdict == Harmful:
		return HarmfulLabel
	}
	return UndecidedLabel
}

// byText orders examples by size, and then by text.
func byText(a, b Example) int {
	if n := len(a.Before) + len(a.After) - len(b.Before) - len(b.After); n != 0 {
		return n
	}
	return slices.Compare([]byte(a.Before+a.After), []byte(b.Before+b.After))
}
