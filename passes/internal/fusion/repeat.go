package fusion

import (
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// Graphs repeat themselves, by the layers of a model or the tokens of a batch. What the search finds around a command
// depends only on the commands near it, so for equal surroundings it is found only once.
//
// Each command has two numbers. Its wiring stands for all that the search depends on, except for places in memory:
// the shape, facts about weights, flags, the number of recorded commands if a group may have too many, the nodes since
// the previous command, and, as distances, the producers of what it reads, the other readers of that, and the readers
// of what it writes. Its lie stands for the positions of its views relative to earlier views of the same memory. Two
// stretches of commands whose wirings are equal one by one have the same candidate groups with the same prefilter
// results. If their lies are equal too, the verdicts are the same, and so are the obstacles to fusion, because whether
// bytes overlap depends only on shapes and distances.

// recognized holds the numbers given to wirings and lies, from round to round.
type recognized struct {
	wirings, lies interner
	words, lying  []uint32 // of the current command
}

// interner numbers different lists of words; 0 is never used.
type interner struct {
	words []uint32   // of all lists
	from  []uint32   // where each begins, and the end of the last
	next  [][2]int32 // by number: the two numbers that followed it most recently, as guesses
	table map[string]int32
	key   []byte
	last  int32
}

// number returns the number of a list. As graphs repeat themselves, it first tries the lists that followed the
// previous list before.
func (t *interner) number(words []uint32) int32 {
	if t.table == nil {
		t.table, t.from, t.next = map[string]int32{}, []uint32{0, 0}, make([][2]int32, 1)
	}
	after := &t.next[t.last]
	for k, n := range after {
		if n != 0 && slices.Equal(t.words[t.from[n]:t.from[n+1]], words) {
			after[0], after[k] = n, after[0]
			t.last = n
			return n
		}
	}
	t.key = t.key[:0]
	for _, w := range words {
		t.key = binary.LittleEndian.AppendUint32(t.key, w)
	}
	n, ok := t.table[string(t.key)]
	if !ok {
		n = int32(len(t.next))
		t.words = append(t.words, words...)
		t.from = append(t.from, uint32(len(t.words)))
		t.next = append(t.next, [2]int32{})
		t.table[string(t.key)] = n
	}
	after = &t.next[t.last]
	after[0], after[1] = n, after[0]
	t.last = n
	return n
}

// likeness says, for each command, which earlier command it is like.
type likeness struct {
	wiring, lie []int32 // by command; wiring 0: like no other
	// like is the earlier command, −1 for none. The commands from `since` on are wired like those that correspond
	// to them, and those from lieSince on also have the same lies.
	like, since, lieSince []int32
}

// Tags of the words of a wiring, in the lowest wordTag bits. The bits above them hold a distance in commands.
const (
	wordNone   = iota // a value that no other command shares, or the end of a list
	wordLink          // a read of exactly what a possible member wrote: how far before
	wordNear          // a read of exactly what a command that cannot be a member wrote
	wordFar           // a read of exactly what a command too far away for a group wrote: when it was last read
	wordValue         // a read of any other value: when it was last read
	wordSource        // a command that wrote some of that value: how far before
	wordReader        // a reader of what the command writes: how far after
	wordSeen          // what the command writes is seen outside any group
	wordTag    = 3
)

// recognize finds the producers of all commands, and which stretches of the list repeat.
func (r *round) recognize() {
	n := len(r.cmds)
	reads, writes := 0, 0
	for i := range n {
		reads += len(r.flow.Reads(i))
		writes += len(r.flow.Writes(i))
	}
	if cap(r.links) < reads {
		r.links = make([]link, 0, reads)
	}
	r.values = take(&r.room.values, reads)[:0]
	r.defAt = take(&r.room.defAt, n+1)[:1]
	r.read = take(&r.room.read, writes)
	if r.others.table == nil {
		r.others.table = map[uint64]int32{}
	}
	clear(r.others.table)
	r.others.list = r.others.list[:0]
	r.beside = take(&r.room.beside, len(r.g.Memories))
	numbers := take(&r.room.numbers, 5*n)
	some := func() (x []int32) {
		x, numbers = numbers[:n:n], numbers[n:]
		return x
	}
	r.likeness = likeness{wiring: some(), lie: some(), like: some(), since: some(), lieSince: some()}
	var last latest
	steps := take(&r.room.steps, n)
	for i, c := range r.cmds {
		r.linkAt = append(r.linkAt, int32(len(r.links)))
		r.defAt = append(r.defAt, r.defAt[i]+int32(len(r.flow.Writes(i))))
		r.words(i, steps)
		if c.shape != nil && c.id != 0 {
			r.wiring[i] = r.seen.wirings.number(r.seen.words)
			r.lie[i] = r.seen.lies.number(r.seen.lying)
		}
		last.room(r.wiring[i], r.lie[i])
		r.compare(int32(i), &last)
		last.wired[r.wiring[i]], last.lying[r.lie[i]] = int32(i)+1, int32(i)+1
	}
	r.linkAt = append(r.linkAt, int32(len(r.links)))
	r.fuser.links = r.links
}

// latest holds 1 + the last command of each wiring, and of each lie.
type latest struct{ wired, lying []int32 }

func (l *latest) room(wiring, lie int32) {
	for int(wiring) >= len(l.wired) {
		l.wired = append(l.wired, 0)
	}
	for int(lie) >= len(l.lying) {
		l.lying = append(l.lying, 0)
	}
}

// compare finds the earlier command that i is like: the one after the command that i−1 is like or, failing that, the
// last one with the same wiring. One that has the same lie too is better, if what stands before it is wired alike: the
// parts of a buffer that are treated in turn are all wired alike, but only each fourth, say, lies where i does.
func (r *round) compare(i int32, last *latest) {
	x := &r.likeness
	x.like[i], x.since[i], x.lieSince[i] = -1, i, i
	if !invariants.Caches || x.wiring[i] == 0 || r.o.anew {
		return
	}
	follows := i > 0 && x.like[i-1] >= 0 && x.wiring[x.like[i-1]+1] == x.wiring[i]
	if follows {
		j := x.like[i-1] + 1
		x.like[i], x.since[i], x.lieSince[i] = j, x.since[i-1], x.lieSince[i-1]
		if x.lie[j] == x.lie[i] {
			return
		}
		x.lieSince[i] = i + 1
	}
	if j := last.lying[x.lie[i]] - 1; j >= 0 && x.wiring[j] == x.wiring[i] && j != x.like[i] {
		if since, lieSince := x.back(i, j); !follows || since <= max(x.since[i], i-maxBack) {
			x.like[i], x.since[i], x.lieSince[i] = j, since, lieSince
			return
		}
	}
	if follows {
		return
	}
	if j := last.wired[x.wiring[i]] - 1; j >= 0 {
		x.like[i] = j
		x.since[i], x.lieSince[i] = x.back(i, j)
	}
}

// maxBack is how many commands are compared at most when a command is found that another may be like.
const maxBack = 2 * maxSpan

// back returns since when the commands up to i are wired like those up to j, and since when they also have the same
// lies.
func (x *likeness) back(i, j int32) (since, lieSince int32) {
	since, lieSince = i, i+1
	lies := true
	for k := int32(0); k <= j && k <= maxBack && x.wiring[j-k] == x.wiring[i-k] && x.wiring[i-k] != 0; k++ {
		since = i - k
		if lies = lies && x.lie[j-k] == x.lie[i-k]; lies {
			lieSince = i - k
		}
	}
	return since, lieSince
}

// alike reports whether the commands from lo to hi, which include i, are wired like those around the command
// that i is like.
func (x *likeness) alike(i, lo, hi int32) bool {
	return x.like[i] >= 0 && x.since[i] <= lo && int(hi) < len(x.like) && x.since[hi] == x.since[i] && x.like[hi]-x.like[i] == hi-i
}

// words writes the wiring and lie of command i into r.seen, and computes its links and values. steps holds, by
// command, the distance to a fresh command before it.
func (r *round) words(i int, steps []int8) {
	c := r.cmds[i]
	steps[i] = maxMembers
	if c.fresh {
		steps[i] = 0
	}
	if c.shape == nil {
		return
	}
	w := r.seen.words[:0]
	r.seen.lying = r.seen.lying[:0]
	gap, buffers := uint32(0), uint32(0)
	if i > 0 {
		gap, buffers = uint32(r.at[i]-r.at[i-1]), uint32(r.buffer[i]-r.buffer[i-1])
	}
	w = append(w, c.id, uint32(c.kind), gap<<2|min(buffers, 3), 0)
	uses := r.flow.Reads(i)
	for k, j := range c.reads {
		u := &uses[k]
		r.lies(int32(i), j, &u.Region)
		l, value := link{-1, -1}, int64(0)
		if s, ok := u.Single(); ok && u.Region.Equal(r.flow.Writes(int(s.Command))[s.Write].Region) {
			def := r.defAt[s.Command] + s.Write
			value = int64(def) + 1
			distance := uint32(int32(i)-s.Command)<<8 | uint32(min(s.Write, 255))
			switch p := r.cmds[s.Command]; {
			case r.far(s.Command, int32(i)):
				w = append(w, r.before(int(r.read[def])-1, i)<<wordTag|wordFar)
			case p.shape != nil: // isel refuses a read as another type than was written
				l = link{s.Command, s.Write}
				steps[i] = min(steps[i], steps[s.Command]+1)
				w = append(w, distance<<wordTag|wordLink)
			default:
				w = append(w, distance<<wordTag|wordNear)
			}
			r.read[def] = int32(i) + 1
		} else if m := u.Region.Mem; m == ir.NoMem || r.mems[m].weight {
			w = append(w, wordNone)
		} else {
			var before int
			value, before = r.other(u, int32(i), int32(k))
			w = append(w, r.before(before, i)<<wordTag|wordValue)
			for _, s := range u.Sources {
				if !r.far(s.Command, int32(i)) {
					w = append(w, uint32(int32(i)-s.Command)<<wordTag|wordSource)
				}
			}
			w = append(w, wordNone)
		}
		r.links, r.values = append(r.links, l), append(r.values, value)
	}
	r.near[i] = steps[i] < maxMembers
	defs := r.flow.Writes(i)
	for k := range defs {
		r.lies(int32(i), c.writes[k], &defs[k].Region)
		if r.everybody(int32(i), k) {
			w = append(w, wordSeen)
			continue
		}
		for _, x := range defs[k].Readers {
			w = append(w, uint32(x.Command-int32(i))<<wordTag|wordReader)
		}
		w = append(w, wordNone)
	}
	flags := [...]bool{c.fresh, r.near[i], c.unrounded}
	for b, flag := range flags {
		if flag {
			w[3] |= 1 << b
		}
	}
	if n := c.recorded(); n > maxFrom/maxMembers { // smaller ones are few enough in any group
		w[3] |= uint32(n) << len(flags)
	}
	r.seen.words = w
}

// far reports whether no group holds both p and the later command i.
func (r *round) far(p, i int32) bool { return r.at[i]-r.at[p] > maxSpan && i-p > maxWindow }

// before returns 1 + the distance from command `at` to i; 0 if `at` is −1 or beyond the window.
func (r *round) before(at, i int) uint32 {
	if at < 0 || i-at > maxWindow {
		return 0
	}
	return uint32(i-at) + 1
}

// everybody reports whether write k of command i is seen outside any group: by an output, a state, a reader
// that is too far away, or more readers than a group has.
func (r *round) everybody(i int32, k int) bool {
	def := &r.flow.Writes(int(i))[k]
	if def.Final || len(def.Readers) > 64 { // more readers than a group can have
		return true
	}
	n := len(def.Readers)
	return n > 0 && r.far(i, def.Readers[n-1].Command)
}

// others numbers the values that are not exactly one write.
type others struct {
	table map[uint64]int32 // by hash: 1 + the last value in its chain
	list  []other
}

// other is such a value, identified by its first read.
type other struct {
	command, read int32 // the first read
	last          int32 // the last command that read it
	next          int32 // 1 + the next value of the same hash
}

// other returns the number of the value that a use sees, and the command that last read it, −1 if none did.
func (r *round) other(u *dataflow.Use, i, k int32) (value int64, last int) {
	h := u.Region.Run.Hash(u.Region.Off.Hash(uint64(u.Region.Mem)))
	for _, s := range u.Sources {
		h = mix.Word(h, uint64(s.Command)<<32^uint64(s.Write))
	}
	head := r.others.table[h]
	for n := head; n != 0; n = r.others.list[n-1].next {
		x := &r.others.list[n-1]
		if v := &r.flow.Reads(int(x.command))[x.read]; v.Region.Equal(u.Region) && slices.Equal(v.Sources, u.Sources) {
			last = int(x.last)
			x.last = i
			return -int64(n), last
		}
	}
	r.others.list = append(r.others.list, other{i, k, i, head})
	n := int32(len(r.others.list))
	r.others.table[h] = n
	return -int64(n), -1
}

// lying is the offset in a memory of the view that was last compared there.
type lying struct {
	command int32 // 1 + the command that has the view
	at      ir.Affine
}

// lies appends the lie of argument j of command i, which has the given region: the distance to the last view of
// the same memory and, if place or contents of the memory matter, the place itself.
func (r *round) lies(i int32, j int, region *ir.Region) {
	w := r.seen.lying
	affine := func(a ir.Affine) {
		for _, t := range a.Terms() {
			w = append(w, uint32(t.Param)+1, uint32(t.Coeff), uint32(t.Coeff>>32))
		}
		w = append(w, 0)
	}
	root, at := region.Mem, region.Off
	b := &r.beside[root]
	last := b.command - 1
	near := last >= 0 && !r.far(last, i)
	filled := r.mems[root].filled
	if !near && !filled && at.IsConst() {
		w = append(w, 0)
	} else {
		flags := uint32(1)
		if near {
			flags |= 2
		}
		if filled {
			flags |= 4
		}
		if !at.IsConst() {
			flags |= 8
		}
		w = append(w, flags)
		if near {
			by := at.Const - b.at.Const
			w = append(w, uint32(i-last), uint32(by), uint32(by>>32))
			affine(b.at)
		}
		if filled {
			p := &r.g.Memories[root].Init.Pattern
			w = append(w, binary.LittleEndian.Uint32(p[:]), uint32(at.Const), uint32(at.Const>>32))
		}
		if !at.IsConst() {
			affine(at)
			x := r.span(r.cmds[i], j)
			lo, end := x.Lo-at.Const, x.End-at.Const
			w = append(w, uint32(lo), uint32(lo>>32), uint32(end), uint32(end>>32))
		}
	}
	b.command, b.at = i+1, at
	r.seen.lying = w
}

// search caches what was found around each command.
type search struct {
	lists []list
	of    []int32 // by command: 1 + its list
	found []found // of all lists
	low   int32   // the lowest command that the current search depends on
}

// list is what was found around command base.
type list struct {
	base, low, ahead int32 // it depends on the commands from low to base+ahead
	from, to         int32 // found[from:to]
	tried            int64 // how many groups were examined
}

// found is a group that was examined.
type found struct {
	group
	look isel.Prefilter
}

// reached records that the current search depends on command i.
func (s *search) reached(i int32) { s.low = min(s.low, i) }

// record begins the list of command i.
func (r *round) record(s *search, i int32) {
	s.lists = append(s.lists, list{base: i, from: int32(len(s.found)), tried: r.tried})
	s.of[i], s.low, r.finding = int32(len(s.lists)), i, s
}

// recorded ends the list that was begun last. It depends on `ahead` commands after its base.
func (r *round) recorded(ahead int32) {
	s := r.finding
	l := &s.lists[len(s.lists)-1]
	l.low, l.ahead, l.to, l.tried = s.low, ahead, int32(len(s.found)), r.tried-l.tried
}

// again reuses for i what was found around the command that i is like. It returns false if there is no such
// command, so that i must be searched.
func (r *round) again(s *search, i int32) bool {
	j := r.like[i]
	if j < 0 || s.of[j] == 0 {
		return false
	}
	l := s.lists[s.of[j]-1]
	low := i - (l.base - l.low)
	if !r.alike(i, low, i+l.ahead) {
		return false
	}
	by := i - l.base
	for k := l.from; k < l.to; k++ {
		if e := &s.found[k]; r.lieSince[e.list[e.n-1]+by] > e.list[0]+by {
			return r.consideredAnew(s, &l, i)
		}
	}
	s.of[i] = s.of[j]
	r.tried += l.tried
	for k := l.from; k < l.to; k++ {
		e := &s.found[k]
		if e.v.none {
			continue
		}
		gr := e.group
		for m := range gr.members() {
			gr.list[m] += by
		}
		switch root := r.cmds[gr.list[gr.n-1]]; {
		case gr.at >= 0:
			gr.at += by
			r.groups = append(r.groups, gr)
		case e.v.hit != nil && !(gr.n == 2 && e.v.linked && !root.missed):
			root.stuck = true // an obstacle blocked the group there, so it does here; without another remark
		default:
			r.settle(&gr)
		}
	}
	return true
}

// consideredAnew makes the list of command i from that of a command with the same wiring but other lies, so that
// the verdicts of some groups may differ. It returns false, and leaves no trace, if a group can be fused at one of the
// two commands only: elementwise sets grow from those that can (see greedy), so that other sets would be tried.
func (r *round) consideredAnew(s *search, l *list, i int32) bool {
	c := r.cmds[i]
	groups, missed, wasMissed := len(r.groups), len(r.missed), c.missed
	r.record(s, i)
	by := i - l.base
	for k := l.from; k < l.to; k++ {
		e := s.found[k]
		can := e.can()
		for m := range e.members() {
			e.list[m] += by
		}
		r.key, _ = r.sketch(r.key[:0], e.members())
		r.consider(e.group, e.look, nil)
		if s == &r.vertically && r.m.Generate && s.found[len(s.found)-1].can() != can {
			s.found = s.found[:s.lists[len(s.lists)-1].from]
			s.lists, s.of[i] = s.lists[:len(s.lists)-1], 0
			r.groups, r.missed, c.missed, c.stuck = r.groups[:groups], r.missed[:missed], wasMissed, false
			return false
		}
	}
	r.tried += l.tried
	s.low = i - (l.base - l.low)
	r.recorded(l.ahead)
	return true
}

// can reports whether the group can be fused.
func (gr *group) can() bool { return gr.v.hit != nil && !gr.v.none && gr.at >= 0 }
