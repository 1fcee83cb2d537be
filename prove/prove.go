package prove

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Options are the settings of a proof.
type Options struct {
	// Strict turns a proof that assumes something ([Result.Assumptions]) into "cannot
	// tell".
	Strict bool
	// Allow names the rewrites ([term.Rewrites]) that the proof may use although they
	// may change bits. They are tried only where terms are not equal to the bit. By
	// default none is allowed.
	Allow []string
	// Sources names those of the program's registered sources ([msl.Register]) whose
	// declarations the proof may believe. That they are right is then an assumption. A
	// graph with a kernel of any other registered source is "cannot tell".
	Sources []string
	// Budget is what the proof may take. A proof that takes more is "cannot tell".
	Budget Budget
}

// Budget bounds one proof. A zero field means no limit.
type Budget struct {
	Time time.Duration
	// Memory is how many bytes the live objects of the process may grow by during the
	// proof. Other work in the same process counts too.
	Memory int64
}

// Check decides whether the graph after computes what the graph before computes. Both
// must have passed [ir.Graph.Check]. The result is never nil: a cancelled ctx gives
// "cannot tell" with the cause in [Result.Err].
func Check(ctx context.Context, before, after *ir.Graph, o Options) *Result {
	within, done := interrupt.Budget(o.Budget).Within(ctx)
	r, err := check(within, before, after, o)
	if over := done(); err != nil && over != nil {
		r = &Result{}
		r.add(CannotTell, Stopped, nil, nil, "the proof took more than its budget of %s", over.What)
		return r
	}
	if err != nil {
		r = &Result{Err: err}
		r.add(CannotTell, Stopped, nil, nil, "the proof was ended: %v", err)
	}
	return r
}

func check(ctx context.Context, before, after *ir.Graph, o Options) (r *Result, err error) {
	defer interrupt.Catch(&err)
	defer catchCrowd(&r)
	r = &Result{}
	if err := term.CheckAllowed(o.Allow); err != nil {
		r.add(Refused, Interface, nil, nil, "%v", err)
		return r, nil
	}
	if checkInterface(before, after, r); r.Verdict != Proved {
		return r, nil
	}
	assumed := sourcesOf(before, after, o.Sources, r)
	if r.Verdict != Proved {
		return r, nil
	}
	if r, err = compare(ctx, before, after, o); err != nil {
		return r, err
	}
	p := proof{Result: r, opts: o}
	for _, text := range assumed {
		p.assume(Interface, nil, text)
	}
	return r, nil
}

// compare tries the ways in which a graph can be proved.
func compare(ctx context.Context, before, after *ir.Graph, o Options) (r *Result, err error) {
	b := recordedModel(ctx, before, nil)
	recorded := trace(b)
	m := byProvenance(b, after)
	if r = attempt(ctx, b, recorded, after, m, o); r.Verdict == Proved {
		return r, nil
	}
	// The provenance may be wrong, or one value may have several names.
	p := newProof(ctx, b, recorded, bySearch(ctx, b, recorded, after, m, o), o)
	p.merge = true
	p.build(after)
	if p.check(); p.Verdict < r.Verdict || p.Verdict == r.Verdict && r.Findings[0].Point == Coverage && len(p.Findings) < len(r.Findings) {
		r = p.Result
	}
	if r.Verdict != Proved {
		// If the values are proved in this direction, only checks of the commands of A can still
		// fail.
		if back := reversed(ctx, b, recorded, after, o); back != nil && (back.Verdict < r.Verdict || back.Verdict == r.Verdict && r.Findings[0].Point == Coverage && len(back.Findings) <= len(r.Findings)) {
			r = back
		}
	}
	return r, nil
}

// recordedModel returns the model of a graph whose stored effects are believed for kernels without
// declaration.
func recordedModel(ctx context.Context, g *ir.Graph, other *model) *model {
	m := newModel(ctx, g, other)
	return m.build(func(_ int, d *ir.Dispatch) *ir.Effects { return m.listed(d) }, nil)
}

// attempt tries to prove A with one matching of commands.
func attempt(ctx context.Context, b *model, recorded *readings, after *ir.Graph, m *matching, o Options) *Result {
	p := newProof(ctx, b, recorded, m, o)
	p.build(after)
	p.check()
	return p.Result
}

func newProof(ctx context.Context, b *model, recorded *readings, m *matching, o Options) *proof {
	return &proof{ctx: ctx, differs: map[string]bool{}, fusions: map[string]*outcome{}, b: b, recorded: recorded, sets: m, Result: &Result{}, opts: o}
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
	ctx context.Context
	*Result
	opts     Options
	b, a     *model
	recorded *readings
	current  *readings       // what the commands of A read
	sets     *matching       // by command of A: its image
	dead     []bool          // by command of A: its results reach nobody
	differs  map[string]bool // by name: the memory held other bytes at the last pillar than in B
	// recordedNames names the writes of B, with one name for writes that are known to
	// have equal bytes. images names each write of A by the write of B that has the
	// same bytes: noWrite if there is none, or none was found yet.
	recordedNames, images names
	merge                 bool // call mergeEqual first

	same  []bool  // by command of A: its image is one command, the same by sameCommand
	pairs []pair  // by kind of A
	usual []usual // by command of A
	moved *translation
	twins *twins
	// Comparing the terms of a fusion is slow, and layers repeat the same fusions, so outcomes are
	// kept.
	fusion  fusion
	fusions map[string]*outcome // by signature
	key     []byte
}

const noWrite = -2

// usual is a set of checks that a command was found to pass while the model was built, when
// everything about the command was at hand. A check whose bit is not set is made later.
type usual uint8

const (
	claimed   usual = 1 << iota // by checkClaims
	unaliased                   // by checkAliasing
	stayed                      // by checkPinned
)

// pair remembers whether the commands of a kind of A are the same, by sameCommand, as
// those of a kind of B. The kind determines everything that sameCommand compares (the
// kernel, the grid, the threadgroup, its memory, the slots and kinds of the bindings,
// inline bytes, scalars, and the lengths of views), except for bytes in argument
// memory.
type pair struct {
	before int32 // 1 + the kind of B; 0: none yet
	same   bool
}

// build makes the model of A.
func (p *proof) build(after *ir.Graph) {
	p.a = newModel(p.ctx, after, p.b)
	p.moved, p.twins = newTranslation(p.b, p.a), newTwins(p.b.g, after)
	p.a.twins = p.twins
	commands := cap(p.a.ops)
	p.same, p.usual = make([]bool, commands), make([]usual, commands)
	p.a.build(func(i int, d *ir.Dispatch) *ir.Effects { return p.foreignEffects(int32(i), d) }, p.look)
	if p.begin(); p.merge {
		p.mergeEqual()
	}
}

// begin finds what the commands of A read. No write of A has an image yet.
func (p *proof) begin() {
	p.current = traceLike(p.a, p.recorded.h)
	classes := make([]int32, len(p.b.writes))
	for i := range classes {
		classes[i] = int32(i)
	}
	images := make([]int32, len(p.a.writes), len(p.a.writes)+1) // not nil
	for i := range images {
		images[i] = noWrite
	}
	p.recordedNames, p.images = names{classes: classes, m: p.b}, names{images: images, classes: classes, m: p.b}
	p.b.trace, p.b.copySources = p.recorded, nil
}

// foreignEffects is recordedEffects. It also finds which usual checks the command passes.
func (p *proof) foreignEffects(i int32, d *ir.Dispatch) *ir.Effects {
	e := p.recordedEffects(i, d)
	if invariants.Caches && p.a.sameEffects(e, p.a.listed(d)) {
		p.usual[i] |= claimed
	}
	if invariants.Caches && p.moved.stayed {
		p.usual[i] |= stayed
	}
	return e
}

// recordedEffects returns what d, command i of A, touches according to the recording. It
// returns nil if the recording does not say. The next call overwrites them.
func (p *proof) recordedEffects(i int32, d *ir.Dispatch) (e *ir.Effects) {
	p.moved.stayed = false
	if set := p.sets.of(i); len(set) == 1 {
		if was, ok := p.b.ops[set[0]].node.(*ir.Dispatch); ok && p.twins.sameCommand(was, d).none() {
			p.same[i] = true
			e, _ = p.moved.effects(was, d)
		}
	}
	return e
}

// look compares command i of A with its image, and sets the bits of p.usual[i].
func (p *proof) look(i int32) {
	o := &p.a.ops[i]
	if set := p.sets.of(i); len(set) == 1 && !p.same[i] {
		p.same[i] = p.sameAs(o, &p.b.ops[set[0]])
	}
	d, ok := o.node.(*ir.Dispatch)
	if !invariants.Caches || !ok || o.inst == nil {
		return
	}
	if !d.Effects.Known() || p.a.claimsThat(o, d.Effects) {
		p.usual[i] |= claimed
	}
	if p.a.overlap(o, d) == nil {
		p.usual[i] |= unaliased
	}
}

// sameAs reports whether o is the same command as `was` of B, by sameCommand.
func (p *proof) sameAs(o, was *op) bool {
	if o.kind < 0 || was.kind < 0 || p.a.bindsArguments(o.node) || p.b.bindsArguments(was.node) {
		return p.twins.sameCommand(was.node, o.node).none()
	}
	for len(p.pairs) <= int(o.kind) {
		p.pairs = append(p.pairs, pair{})
	}
	x := &p.pairs[o.kind]
	if !invariants.Caches || x.before != was.kind+1 {
		*x = pair{was.kind + 1, p.twins.sameCommand(was.node, o.node).none()}
	}
	return x.same
}
