package infer

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// study is the observation of one class: the shapes that have run, and what they have shown.
type study struct {
	x    *Observer
	c    *class
	r    *rand.Rand
	most uint32 // integers in memory, which may be indices, are below it
	// tolerated are the kinds of findings that the graph's own dispatches have.
	tolerated  []string
	only       func(*shape) bool // which shapes may be made up; nil: any
	seen       []*observation    // observations that are used
	have       map[string]bool
	declared   bool   // the checker compares accesses with the kernel's declaration
	depends    []bool // by view: what is touched depends on the contents of memory
	skips      []bool // by view: that depends on contents, but on no index
	counts     Counts
	notes      []string
	clash      bool // threads race if equal views share their memory
	endless    int
	flat       bool              // most shapes are refused: sizes of the grid that are 1 stay so, since threads of one more dimension race
	fixed      []bool            // by symbol: it is not varied, since that did not end
	tables     map[string]*table // of shapes, by their numbers
	relevances map[relevance]uint64
}

// maxEndless is how many shapes may take too long before no more are made up.
const maxEndless = 3

func (x *Observer) study(c *class) *study {
	h := fnv.New64a()
	// The library's path is left out, so that the same kernel has the same shapes wherever it lies.
	fmt.Fprint(h, c.kernel.Function, c.kind, c.group, c.names)
	return &study{x: x, c: c, r: rand.New(rand.NewPCG(x.o.Seed, h.Sum64())), most: 8, have: map[string]bool{}, depends: make([]bool, len(c.views)), skips: make([]bool, len(c.views)), fixed: make([]bool, len(c.names)), relevances: map[relevance]uint64{}}
}

// note keeps a sentence, unless it was kept before.
func (s *study) note(format string, args ...any) {
	if n := quote(fmt.Sprintf(format, args...)); !slices.Contains(s.notes, n) && len(s.notes) < 16 {
		s.notes = append(s.notes, n)
	}
}

// real observes the graph's own shapes, at sample values of its params.
func (s *study) real(ctx context.Context) error {
	for _, f := range s.c.forms {
		s.counts.Dispatches += 1 + len(f.others)
		samples := f.graph.Samples(6)
		if len(samples) == 0 {
			samples = [][]uint32{f.graph.Greatest()}
		}
		// Add values between the extremes.
		for range 2 {
			mid := make([]uint32, len(f.graph.Params))
			for i := range mid {
				lo, hi := samples[0][i], samples[min(1, len(samples)-1)][i]
				mid[i] = lo
				if hi > lo && f.graph.Params[i].Type == ir.U32 {
					mid[i] += uint32(s.r.Uint64N(uint64(hi-lo) + 1))
				}
			}
			if keeps(f.graph, mid) {
				samples = append(samples, mid)
			}
		}
		for _, params := range samples {
			vals, lens := s.c.values(f, params)
			sh := &shape{vals: vals, lens: lens, form: f, params: params, real: true}
			if s.have[fmt.Sprint(vals, lens)] {
				continue
			}
			s.have[fmt.Sprint(vals, lens)] = true
			if s.c.threads(sh) == 0 {
				s.note("%s has no threads", s.c.say(sh))
				continue
			}
			if err := s.one(ctx, sh); err != nil {
				return err
			}
		}
	}
	return nil
}

// keeps reports whether values of the params satisfy the graph's constraints.
func keeps(g *ir.Graph, params []uint32) bool {
	for i := range g.Constraints {
		if g.Constraints[i].LHS.Eval(params) > g.Constraints[i].Max {
			return false
		}
	}
	return true
}

// one observes a shape of the graph. It lowers the bound of integers in memory until no access leaves a view.
func (s *study) one(ctx context.Context, sh *shape) error {
	var beyond []int
	far := false
	for most := s.most; ; most = smaller(most) {
		s.counts.Runs += int(allKinds)
		o, err := s.x.observe(ctx, s.c, sh, varied(allKinds, most), nil, s.declared)
		var no *refused
		switch {
		case errors.As(err, &no):
			if no.ends {
				s.endless++
			}
			far = far || no.far
			if (len(no.beyond) > 0 || no.far) && smaller(most) > 0 {
				beyond = append(beyond, no.beyond...) // each time others may be the first
				continue
			}
			s.note("%s was not observed: %s", s.c.say(sh), no.why)
			return nil
		case err != nil:
			return err
		}
		if s.most = most; len(beyond) > 0 {
			// With larger integers, accesses left these views: they are addressed by indices in memory.
			for _, v := range beyond {
				s.depends[v] = true
			}
		}
		for v := range s.depends { // all indices are 0: who knows what others do
			s.depends[v] = s.depends[v] || far && most&^asWords == 1
		}
		for _, k := range kindsOf(o.findings) {
			if !slices.Contains(s.tolerated, k) {
				s.tolerated = append(s.tolerated, k)
				s.note("%s: the checker finds: %s", s.c.say(sh), k)
			}
		}
		if o, err = s.skipped(ctx, o); err != nil {
			return err
		}
		s.counts.Real++
		s.accept(o)
		return s.oneView(ctx, sh)
	}
}

// skipped finds the views of which a shape of the graph touches other bytes with other contents, but none because of an index: the kernel may
// skip some of its bytes, so that of all contents together there may be an expression. It returns the observation with more contents if there
// are any.
func (s *study) skipped(ctx context.Context, o *observation) (*observation, error) {
	var views []int
	for v := range o.views {
		if o.views[v].varies && !s.depends[v] {
			views = append(views, v)
		}
	}
	if s.declared || len(views) == 0 {
		return o, nil
	}
	s.counts.Runs += int(alike + 1)
	all, err := s.x.observe(ctx, s.c, o.shape, varied(alike+1, s.most), nil, false)
	var no *refused
	switch {
	case errors.As(err, &no):
		return o, nil
	case err != nil:
		return nil, err
	}
	for _, v := range views {
		s.skips[v] = true
	}
	words, n := s.most&asWords, s.most&^asWords
	for _, same := range []uint32{n, 4*n - 1} { // greater than all so far
		s.counts.Runs++
		other, err := s.x.observe(ctx, s.c, o.shape, []content{{alike, same + 1 | words}}, nil, false)
		if err != nil && !errors.As(err, &no) {
			return nil, err
		}
		for _, v := range views {
			if err != nil || len(other.views[v].all().minus(all.views[v].all())) > 0 {
				s.skips[v], s.depends[v] = false, true
			}
		}
	}
	return all, nil
}

// oneView runs a shape of the graph once more, with views that are equal there in one memory: some races occur only
// then.
func (s *study) oneView(ctx context.Context, sh *shape) error {
	same := false
	for i := range s.c.views {
		for j := range i {
			same = same || s.c.sameView(sh, i, j)
		}
	}
	if !same || s.declared {
		return nil
	}
	s.counts.Runs++
	o, _, err := s.x.run(ctx, s.c, sh, content{ordinary, s.most}, true, false)
	var no *refused
	if err != nil && !errors.As(err, &no) {
		return err
	}
	if err == nil {
		for _, k := range kindsOf(o.Findings) {
			if !slices.Contains(s.tolerated, k) {
				no = &refused{why: "the checker finds: " + k}
			}
		}
	}
	if no != nil {
		s.clash = true
		s.note("%s binds one view twice, and %s: the proposal does not allow that", s.c.say(sh), no.why)
	}
	return nil
}

func (s *study) accept(o *observation) {
	o.number = len(s.seen)
	s.seen = append(s.seen, o)
	for v := range o.views {
		s.depends[v] = s.depends[v] || o.views[v].varies && !s.skips[v]
	}
}

// realShapes are the shapes of the graph that were observed.
func (s *study) realShapes() (out []*shape) {
	for _, o := range s.seen {
		if o.real {
			out = append(out, o.shape)
		}
	}
	return out
}

// make observes made-up shapes that satisfy the conditions, until there are n or too many were refused, and returns
// the observations. With each, the first of them change one symbol only.
func (s *study) make(ctx context.Context, n int, ks []condition, each bool) (out []*observation, err error) {
	real := s.realShapes()
	if len(real) == 0 {
		return nil, nil
	}
	alone, tries := n/2, 4*n+8
	if s.many() {
		if each {
			alone, n = max(alone, 2*len(s.c.names)), max(n, 2*len(s.c.names)+n/2)
		}
		tries = 8*n + 16
	}
	threads, before := int64(0), s.counts.Refused
	for try := 0; len(out) < n && try < tries && s.endless < maxEndless; try++ {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if s.many() && threads >= allThreads && (len(out) >= enough || threads >= 4*allThreads) {
			break
		}
		s.flat = s.flat || s.counts.Refused-before > 3*len(out)+16
		one := -1
		if each && try < alone {
			one = try % len(s.c.names)
		}
		sh := s.vary(real[s.r.IntN(len(real))], ks, one)
		key := fmt.Sprint(sh.vals, sh.lens)
		if s.have[key] || !all(ks, sh.vals) || !s.c.cheap(sh) || s.c.threads(sh) == 0 {
			continue
		}
		s.have[key] = true
		if s.only != nil && !s.only(sh) {
			continue
		}
		kinds := allKinds
		switch {
		case slices.Contains(s.skips, true):
			kinds = alike + 1
		case try%3 > 0:
			kinds = 1
		}
		s.counts.Runs += int(kinds)
		threads += int64(kinds) * s.c.threads(sh)
		o, err := s.x.observe(ctx, s.c, sh, varied(kinds, s.most), s.tolerated, s.declared)
		var no *refused
		switch {
		case errors.As(err, &no):
			s.counts.Refused++
			if no.ends {
				if s.endless++; one >= 0 { // it is the end of a loop
					s.fixed[one] = true
				}
				s.note("%s: %s", s.c.say(sh), no.why)
			}
			continue
		case err != nil:
			return nil, err
		}
		s.counts.Made++
		out = append(out, o)
	}
	return out, nil
}
