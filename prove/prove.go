package prove

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Options of a proof.
type Options struct {
	// Strict turns a proof that assumes the recording free of races somewhere, or
	// that replays wait for one another, into "cannot tell".
	Strict bool
	// Allow names the rewrites that may change bits ([term.Rewrites]) and may be
	// used, only where terms are not equal to the bit. By default none is.
	Allow []string
}

// Check decides whether after computes what before does. Both graphs must have
// passed [ir.Graph.Check].
func Check(before, after *ir.Graph, o Options) *Result {
	r := &Result{}
	if err := term.CheckAllowed(o.Allow); err != nil {
		r.add(Refused, Interface, nil, nil, "%v", err)
		return r
	}
	if checkInterface(before, after, r); r.Verdict != Proved {
		return r
	}
	b := newModel(before, func(_ int, d *ir.Dispatch) *ir.Effects { return d.Effects })
	recorded := trace(b)
	m := byProvenance(b, after)
	if r = attempt(b, recorded, after, m, o); r.Verdict == Proved {
		return r
	}
	// Provenance may be what is wrong.
	guess := byStructure(b, after)
	if slices.EqualFunc(guess, m, slices.Equal[[]int32]) {
		return r
	}
	if again := attempt(b, recorded, after, guess, o); again.Verdict < r.Verdict {
		return again
	}
	return r
}

// attempt proves after with one matching of commands.
func attempt(b *model, recorded *readings, after *ir.Graph, m matching, o Options) *Result {
	p := newProof(b, recorded, m, o)
	p.build(after)
	p.check()
	return p.Result
}

func newProof(b *model, recorded *readings, m matching, o Options) *proof {
	return &proof{differs: map[string]bool{}, fusions: map[string]*outcome{}, forms: map[*decl.Form]int64{}, b: b, recorded: recorded, sets: m, Result: &Result{}, opts: o}
}

// check goes through the points of the proof.
func (p *proof) check() {
	p.Commands = len(p.a.ops)
	p.findDead()
	if p.checkCoverage(); p.Verdict != Proved {
		return
	}
	p.checkValues()
	p.checkOrder()
	p.checkAliasing()
	p.checkClaims()
}

// proof is the state of one attempt.
type proof struct {
	*Result
	opts     Options
	b, a     *model
	recorded *readings
	current  *readings       // of the graph after
	sets     matching        // by command after
	dead     []bool          // commands after whose results reach nobody
	differs  map[string]bool // memories that held other bytes at the last pillar
	// recordedNames are those of the writes before: their numbers, one number for
	// writes that are known to have equal bytes. images names each write after by
	// the write before that has the same bytes; noWrite where there is none, or
	// none was found yet.
	recordedNames, images names
	// told are the effects of commands after whose kernels have no declaration; nil
	// if none.
	told []*ir.Effects
	same []likeness // by command after
	// Comparing the terms of a fusion is slow, and layers repeat them.
	fusion  fusion
	fusions map[string]*outcome // by signature
	forms   map[*decl.Form]int64
	key     []byte
}

const noWrite = -2

// likeness remembers whether a command is its image, by sameCommand.
type likeness uint8

const (
	unasked likeness = iota
	alike
	unlike
)

// build makes the model of the graph after.
func (p *proof) build(after *ir.Graph) {
	p.same = make([]likeness, len(p.sets))
	p.a = newModel(after, func(i int, d *ir.Dispatch) *ir.Effects {
		if len(p.sets[i]) != 1 {
			return nil
		}
		was, ok := p.b.ops[p.sets[i][0]].node.(*ir.Dispatch)
		if !ok || sameCommand(p.b.g, after, was, d) != "" {
			return nil
		}
		p.same[i] = alike
		e, _ := translate(p.b.g, after, was, d)
		if p.told == nil {
			p.told = make([]*ir.Effects, len(p.sets))
		}
		p.told[i] = e
		return e
	})
	p.current = trace(p.a)
	p.recordedNames = make(names, len(p.b.writes))
	for i := range p.recordedNames {
		p.recordedNames[i] = int32(i)
	}
	p.images = make(names, len(p.a.writes))
	for i := range p.images {
		p.images[i] = noWrite
	}
}
