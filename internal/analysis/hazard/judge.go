package hazard

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Judgement is what [Table.Judge] finds out about a recording.
type Judgement struct {
	// Races are pairs of commands that nothing orders, with bytes that both touch for
	// the values Params (nil: for all values of the params). What an output or state
	// holds may depend on which of the two comes first.
	Races []Race
	// Undefined are reads, by commands whose results may reach an output or state, of
	// bytes that nothing has written in the replay.
	Undefined []Undefined
	// Unsure are pairs of commands that nothing orders and whose ranges were neither
	// proved to be apart nor shown to meet; their bytes are those that they may share.
	// MoreUnsure counts the pairs that are not listed.
	Unsure     []Race
	MoreUnsure int
	// Unknown are pairs that nothing orders and of which one command has unknown
	// effects. For each such command, only the pair with the latest other command is
	// listed. MoreUnknown counts the pairs that are not listed.
	Unknown     []Pair
	MoreUnknown int
}

// Pair is two commands of a table, by number.
type Pair struct{ Earlier, Later int32 }

// Race is a pair of commands that conflict.
type Race struct {
	Pair
	Kind    Kind
	Mem     ir.MemID // a root memory
	Lo, End int64
	Params  []uint32
}

// Undefined is a read of bytes [Lo, End) of root memory Mem.
type Undefined struct {
	Command int32
	Mem     ir.MemID
	Lo, End int64
	Params  []uint32
}

// maxJudged bounds each list of a Judgement, because a few findings are enough.
const maxJudged = 10

// maxDeferred bounds the pairs that are kept until it is known whether anybody sees
// their bytes. Pairs beyond it are unsure.
const maxDeferred = 1 << 16

// gap is the set of what stands between a command and the one before it in the list.
type gap uint8

const (
	gapBarrier gap = 1 << iota
	gapCommit
	gapOrdered // a commit that orders what follows after it
)

// judge holds what the parts of a judgement share.
type judge struct {
	*Judgement
	t        *Table
	gaps     []gap
	live     *liveness
	deferred []deferred
	points   [][]uint32
	have     bool // points is filled
}

// Judge says whether a graph has one meaning: one result, whatever order its barriers
// and commits, or its edges, leave open. The table must not have been reordered. Judge
// takes time in proportion to the accesses and their conflicts. It does not look at
// what is between two replays, because a graph denotes one.
func (t *Table) Judge() *Judgement {
	j := &judge{Judgement: &Judgement{}, t: t, live: t.liveness()}
	switch t.g.Ordering {
	case ir.ByEdges:
		j.racesByEdges()
		j.decide()
	case ir.ByBarriers:
		j.gaps = gapsOf(t)
		j.races()
		j.decide()
	}
	j.undefined()
	return j.Judgement
}

func gapsOf(t *Table) []gap {
	out := make([]gap, 0, t.Len())
	var now gap
	for _, n := range t.g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			now |= gapBarrier
		case *ir.Commit:
			now |= gapCommit
			if n.Order != ir.OrderNone {
				now |= gapOrdered
			}
		case ir.Command:
			out = append(out, now)
			now = 0
		}
	}
	return out
}

// concurrent holds the accesses of the commands that the next command may run
// concurrently with.
type concurrent struct {
	s      *bytestate.State
	first  int32 // the only command, while it is not entered in s; none: there is no such command
	last   int32 // the latest command
	pillar int32 // the latest of unknown effects
	used   bool  // s holds something
}

func newConcurrent(t *Table) *concurrent {
	return &concurrent{s: t.sweep(), first: none, last: none, pillar: none}
}

func (c *concurrent) reset() {
	if c.used {
		c.s.Reset()
	}
	c.first, c.last, c.pillar, c.used = none, none, none, false
}

// races finds the pairs that nothing orders, with three sweeps. The first holds the
// current epoch. A command buffer that ends in a commit without order runs concurrently
// with what follows. Its writes are entered in the second sweep and its reads in the
// third. They are kept apart because a write of the buffer is ordered after an earlier
// read of it and would hide that read, but what follows is concurrent with both.
func (j *judge) races() {
	t := j.t
	epoch, reads, writes := newConcurrent(t), newConcurrent(t), newConcurrent(t)
	for _, c := range []*concurrent{epoch, reads, writes} {
		defer t.done(c.s)
	}
	buffer := int32(0) // the first command of the current command buffer
	var as []bytestate.Access
	var at []int32
	var polls interrupt.Every
	for i := range int32(t.Len()) {
		polls.Poll(t.ctx, 64)
		if g := j.gaps[i]; g != 0 {
			epoch.reset()
			switch {
			case g&gapOrdered != 0:
				reads.reset()
				writes.reset()
				buffer = i
			case g&gapCommit != 0:
				for k := buffer; k < i; k++ {
					j.open(k, reads, writes)
				}
				buffer = i
			}
		}
		if t.commands[i].pillar {
			if with := max(epoch.last, writes.last); with != none {
				j.unknown(Pair{with, i})
			}
			epoch.last, epoch.pillar = i, i
			continue
		}
		if with := max(epoch.pillar, writes.pillar); with != none {
			j.unknown(Pair{with, i})
		}
		if epoch.last == none && !reads.used && !writes.used {
			epoch.first, epoch.last = i, i // with a single command there is nothing to compare
			continue
		}
		if k := epoch.first; k != none {
			as, at = j.relevant(k, as[:0], at[:0])
			epoch.s.Begin()
			epoch.s.Enter(as, k)
			epoch.used, epoch.first = true, none
		}
		as, at = j.relevant(i, as[:0], at[:0])
		epoch.s.Begin()
		j.meet(epoch.s, i, as, at)
		epoch.s.Enter(as, i)
		epoch.used, epoch.last = true, i
		if reads.used || writes.used {
			reads.s.Begin()
			j.meet(reads.s, i, as, at)
			writes.s.Begin()
			j.meet(writes.s, i, as, at)
		}
		if len(j.Races) >= maxJudged {
			return
		}
	}
}

// relevant appends to as the accesses of command i that can be part of a race, and to
// at their numbers. Reads do not matter if the results of the command reach nobody.
func (j *judge) relevant(i int32, as []bytestate.Access, at []int32) ([]bytestate.Access, []int32) {
	c := &j.t.commands[i]
	for k := c.first; k < c.end; k++ {
		if a := &j.t.accesses[k]; a.Write || j.live.command[i] {
			as, at = append(as, *a), append(at, k)
		}
	}
	return as, at
}

// open enters command k, which runs concurrently with everything up to the next ordered
// commit.
func (j *judge) open(k int32, reads, writes *concurrent) {
	writes.last = k
	if j.t.commands[k].pillar {
		writes.pillar = k
		return
	}
	c := &j.t.commands[k]
	for n := c.first; n < c.end; n++ {
		a := &j.t.accesses[n]
		if a.Write {
			writes.s.Begin()
			writes.s.AddWrite(0, a, k)
			writes.used = true
		}
		if j.live.command[k] && (!a.Write || !a.Must) {
			reads.s.Begin()
			reads.s.AddRead(0, a, k)
			reads.used = true
		}
	}
}

// meet looks for commands in s that conflict with command i, whose accesses are as,
// with the numbers at.
func (j *judge) meet(s *bytestate.State, i int32, as []bytestate.Access, at []int32) {
	for k := range as {
		a := &as[k]
		for _, h := range s.Look(a) {
			c := s.Cell(h)
			switch {
			case !a.Write:
				if c.W != none {
					j.conflict(RAW, c.W, i, a, c, at[k])
				}
				continue
			case c.R != none && c.R != i:
				j.conflict(WAR, c.R, i, a, c, at[k])
			}
			if c.W == none {
				continue
			}
			if !a.Must && j.live.command[i] {
				j.conflict(RAW, c.W, i, a, c, at[k])
				continue
			}
			if x := j.hidden(c.W, a); x != nil {
				j.conflict(WAR, c.W, i, a, &bytestate.Cell{Lo: x.Lo, End: x.End, Region: x.Region}, at[k])
			}
			if j.live.seen[at[k]] {
				j.conflict(WAW, c.W, i, a, c, at[k])
			}
		}
	}
}

// hidden returns an access of command i by which its results depend on what it finds in
// bytes of a, or nil. In the sweep a write of the same command has replaced that
// access.
func (j *judge) hidden(i int32, a *bytestate.Access) *bytestate.Access {
	if !j.live.command[i] {
		return nil
	}
	as := j.t.of(int(i))
	for k := range as {
		if x := &as[k]; !x.Must && j.t.facts.Meet(x, a) {
			return x
		}
	}
	return nil
}

// conflict notes a hazard of access a, which is number n of the table, with the
// commands that cell c stands for.
func (j *judge) conflict(kind Kind, from, to int32, a *bytestate.Access, c *bytestate.Cell, n int32) {
	r := Race{Pair: Pair{from, to}, Kind: kind, Mem: ir.MemID(a.Root), Lo: max(a.Lo, c.Lo), End: min(a.End, c.End)}
	if j.t.facts.At(a.Region).Crowd || j.t.facts.At(c.Region).Crowd {
		// It is not known which bytes of a crowd were touched, nor by which of its
		// members.
		if kind == WAW {
			j.deferRace(r, true)
		} else {
			j.unsure(r)
		}
		return
	}
	if a.Region == 0 && c.Region == 0 {
		switch x := &j.t.accesses[n]; {
		case r.Lo >= r.End:
		case kind != WAW || r.Lo == x.Lo && r.End == x.End:
			j.Races = append(j.Races, r)
		default:
			j.deferRace(r, false)
		}
		return
	}
	x, y := j.t.solid(a.Region, a.Root, a.Lo, a.End), j.t.solid(c.Region, a.Root, c.Lo, c.End)
	if kind == WAW {
		j.written(r, &x, &y)
		return
	}
	params, lo, end, ok := j.witness(&x, &y)
	if !ok {
		j.unsure(r)
		return
	}
	r.Params, r.Lo, r.End = params, lo, end
	j.Races = append(j.Races, r)
}

// written defers what two writes share, for each sampled assignment of the params,
// because which bytes they share depends on it, and so does who sees these bytes.
func (j *judge) written(r Race, x, y *ir.Region) {
	samples := [][]uint32{nil}
	if !x.IsConst() || !y.IsConst() {
		samples = j.samples()
		j.deferRace(r, true)
	}
	for _, p := range samples {
		r.Params = p
		pieces := 0
		shared(x, y, p, func(lo, end int64) bool {
			r.Lo, r.End = lo, end
			j.deferRace(r, false)
			pieces++
			return pieces < maxRuns
		})
	}
}

// deferred is a pair of writes. It waits until it is known whether somebody sees the
// bytes.
type deferred struct {
	Race
	hull bool // the bytes contain those that the two share, for all values of the params
}

func (j *judge) deferRace(r Race, hull bool) {
	if len(j.deferred) < maxDeferred {
		j.deferred = append(j.deferred, deferred{r, hull})
	} else {
		j.unsure(r)
	}
}

func (j *judge) unsure(r Race) {
	if len(j.Unsure) < maxJudged {
		j.Unsure = append(j.Unsure, r)
	} else {
		j.MoreUnsure++
	}
}

func (j *judge) unknown(p Pair) {
	if len(j.Unknown) < maxJudged {
		j.Unknown = append(j.Unknown, p)
	} else {
		j.MoreUnknown++
	}
}

// decide keeps those deferred races whose bytes somebody sees.
func (j *judge) decide() {
	if len(j.deferred) > 0 {
		slices.SortStableFunc(j.deferred, func(a, b deferred) int {
			return cmp.Or(cmp.Compare(b.Later, a.Later), cmp.Compare(a.Earlier, b.Earlier))
		})
		next := 0
		j.t.eachLive(func(i int32, l *liveBytes) {
			for ; next < len(j.deferred) && j.deferred[next].Later == i; next++ {
				r := &j.deferred[next]
				if !l.meets(int32(r.Mem), r.Lo, r.End) {
					continue
				}
				if !r.hull {
					j.Races = append(j.Races, r.Race)
				} else if !j.shown(next, l) {
					j.unsure(r.Race)
				}
			}
		})
	}
	slices.SortStableFunc(j.Races, func(a, b Race) int {
		return cmp.Or(cmp.Compare(a.Later, b.Later), cmp.Compare(a.Earlier, b.Earlier), cmp.Compare(a.Lo, b.Lo))
	})
	// One command may race with another on several pieces of a memory.
	j.Races = slices.CompactFunc(j.Races, func(a, b Race) bool { return a.Pair == b.Pair })
	j.Races = j.Races[:min(len(j.Races), maxJudged)]
}

// shown reports whether somebody sees bytes of a pair of writes for a sampled
// assignment of the params. Entry n of the deferred is the pair's hull; the entries for
// assignments follow it.
func (j *judge) shown(n int, l *liveBytes) bool {
	pair := j.deferred[n].Pair
	for k := n + 1; k < len(j.deferred) && !j.deferred[k].hull && j.deferred[k].Pair == pair; k++ {
		if r := &j.deferred[k]; l.meets(int32(r.Mem), r.Lo, r.End) {
			return true
		}
	}
	return false
}
