package prove

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// search finds a matching if the provenance of A is lost or wrong. It visits the commands of A in
// order. As the image of each it takes the first of these that is possible: the commands that
// provenance says; a command of B that is the same and reads the same values; commands of B that
// together compute its term.
type search struct {
	p      *proof // its matching and images are what was found so far
	hint   *matching
	b, a   *hasher
	alike  map[uint64][]int32 // commands of B that are not taken yet, by the hash of what they compute
	number []uint64           // by command of B: its hash
	taken  []bool
	// Which commands of B read a write, and which read the initial contents of a
	// memory.
	readers  map[int32][]int32
	ofMemory map[ir.MemID][]int32
}

// These bound the search for the terms of one command.
const (
	maxReaders = 256 // readers of a value that are looked at
	maxAround  = 64  // commands looked at, starting from these readers
	maxMembers = 32  // commands in one set
)

// bySearch returns the matching that a search finds. It is a hint.
func bySearch(ctx context.Context, b *model, recorded *readings, after *ir.Graph, hint *matching, o Options) *matching {
	p := newProof(ctx, b, recorded, &matching{}, o)
	p.a = recordedModel(ctx, after, b)
	p.twins = newTwins(b.g, after)
	p.a.twins = p.twins
	p.begin()
	p.findDead()
	p.mergeEqual()
	seed := maphash.MakeSeed()
	s := &search{p: p, hint: hint, b: newHasher(b, recorded, seed), a: newHasher(p.a, p.current, seed), alike: map[uint64][]int32{}, number: make([]uint64, len(b.ops)), taken: make([]bool, len(b.ops))}
	for j := range b.ops {
		h := s.b.op(int32(j))
		s.number[j] = h
		s.alike[h] = append(s.alike[h], int32(j))
		s.note(s.b, int32(j), h)
	}
	for i := range p.a.ops {
		interrupt.Poll(ctx)
		from := len(p.sets.list)
		p.sets.list = append(p.sets.list, s.setOf(int32(i))...)
		p.sets.end(from)
		for _, j := range p.sets.list[from:] {
			s.taken[j] = true
		}
	}
	return p.sets
}

// note gives the writes of op i their hashes. A copy gets the hash of what it copies.
func (s *search) note(h *hasher, i int32, number uint64) {
	h.note(i, number)
	if from, ok := copied(h.m, h.t, i); ok {
		h.writes[h.m.ops[i].wlo] = h.writes[from]
	}
}

// setOf returns the image of command i of A, and notes the images of its writes.
func (s *search) setOf(i int32) []int32 {
	p := s.p
	number := s.a.op(i)
	var hint []int32
	if int(i) < len(s.hint.ends) {
		hint = s.hint.of(i)
	}
	if len(hint) == 1 && s.number[hint[0]] == number && !s.taken[hint[0]] {
		return s.same(i, hint[0], number)
	}
	list := s.alike[number]
	for len(list) > 0 && s.taken[list[0]] {
		list = list[1:]
	}
	s.alike[number] = list
	if len(list) > 0 {
		return s.same(i, list[0], number)
	}
	s.note(s.a, i, number)
	if p.dead[i] || !p.a.ops[i].known || p.termless(i) {
		return nil
	}
	if s.free(hint) && s.holds(i, hint) {
		return hint
	}
	return s.compose(i)
}

// same notes that the image of command i is command j.
func (s *search) same(i, j int32, number uint64) []int32 {
	s.note(s.a, i, number)
	a, b := &s.p.a.ops[i], &s.p.b.ops[j]
	if a.whi-a.wlo != b.whi-b.wlo {
		return nil
	}
	for k := range a.whi - a.wlo {
		s.p.images.images[a.wlo+k] = b.wlo + k
	}
	return []int32{j}
}

func (s *search) free(set []int32) bool {
	return len(set) > 0 && !slices.ContainsFunc(set, func(j int32) bool { return s.taken[j] })
}

// holds reports whether the commands of a set have the terms of command i of A, and
// notes the images of its writes if so.
func (s *search) holds(i int32, set []int32) bool {
	p := s.p
	if len(set) > maxSet || slices.ContainsFunc(set, func(j int32) bool { return p.b.ops[j].era != p.a.ops[i].era || p.nondeterministic(&p.b.ops[j]) }) {
		return false
	}
	f := p.newFusion(i, set)
	if len(f.sources) > maxSources {
		return false
	}
	found := f.compare()
	if found.err != nil {
		return false
	}
	o := &p.a.ops[i]
	for k, z := range found.images {
		w := f.writeOf(z)
		p.images.images[int(o.wlo)+k] = w
		s.a.writes[int(o.wlo)+k] = s.b.writes[w]
	}
	return true
}

// compose looks for commands of B that compute the term of command i. It begins with
// those that read a value that i reads too, values with few readers first, and then
// follows the values that these commands write.
func (s *search) compose(i int32) []int32 {
	s.index()
	o := &s.p.a.ops[i]
	var lists [][]int32
	for k := o.rlo; k < o.rhi; k++ {
		if list := s.readersOf(s.p.reading(k)); len(list) > 0 && len(list) <= maxReaders {
			lists = append(lists, list)
		}
	}
	slices.SortStableFunc(lists, func(x, y []int32) int { return len(x) - len(y) })
	near := s.around(lists)
	var all []int32
	for w := o.wlo; w < o.whi; w++ {
		set := s.setOfWrite(i, w, near)
		if set == nil {
			return nil
		}
		all = append(all, set...)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > maxMembers || !s.holds(i, all) {
		return nil
	}
	return all
}

// setOfWrite returns a set of commands that computes what command i writes by its write
// w.
func (s *search) setOfWrite(i, w int32, near []int32) []int32 {
	p := s.p
	for _, j := range near {
		b := &p.b.ops[j]
		like := false
		for x := b.wlo; x < b.whi; x++ {
			like = like || p.b.writes[x].must && sameShape(p.b, &p.b.writes[x].access, p.a, &p.a.writes[w].access)
		}
		if !like {
			continue
		}
		if set := s.cone(i, j); set != nil && p.newFusion(i, set).computes(w) {
			return set
		}
	}
	return nil
}

// around returns commands that are not taken: those of the lists first, then the
// readers of what these write, and so on.
func (s *search) around(lists [][]int32) (out []int32) {
	seen := map[int32]bool{}
	for _, list := range lists {
		for _, j := range list {
			if !seen[j] && !s.taken[j] && len(out) < maxAround {
				seen[j] = true
				out = append(out, j)
			}
		}
	}
	for k := 0; k < len(out) && len(out) < maxAround; k++ {
		o := &s.p.b.ops[out[k]]
		for w := o.wlo; w < o.whi; w++ {
			for _, j := range s.readers[s.p.recordedNames.of(w)] {
				if !seen[j] && !s.taken[j] {
					seen[j] = true
					out = append(out, j)
				}
			}
		}
	}
	return out
}

// cone returns command j and the commands that compute what it reads, back to values
// that command i reads itself. It returns nil if these are too many, or
// read anything else.
func (s *search) cone(i, j int32) []int32 {
	p := s.p
	out := []int32{j}
	for k := 0; k < len(out); k++ {
		o := &p.b.ops[out[k]]
		if !o.known || s.taken[out[k]] || len(out) > maxMembers {
			return nil
		}
		for r := o.rlo; r < o.rhi; r++ {
			x := p.recorded.reading(r)
			if s.reads(i, &x) || x.initial && p.b.g.Memories[x.at.mem].Kind == ir.Weight && p.b.g.Memories[x.at.mem].Init.Kind == ir.InitFill {
				continue
			}
			if !oneWrite(&x) {
				return nil
			}
			if from := p.b.writes[x.writes[0]].op; !slices.Contains(out, from) {
				out = append(out, from)
			}
		}
	}
	slices.Sort(out)
	return out
}

// reads reports whether command i of A reads the value x of B.
func (s *search) reads(i int32, x *reading) bool {
	p := s.p
	for k := p.a.ops[i].rlo; k < p.a.ops[i].rhi; k++ {
		y := p.reading(k)
		if !sameShape(x.m, x.at, y.m, y.at) {
			continue
		}
		if equal, _ := equalValues(x, &y, &p.recordedNames, &p.images); equal {
			return true
		}
	}
	return false
}

// index finds the readers of every value of B, when it is first called.
func (s *search) index() {
	if s.readers != nil {
		return
	}
	s.readers, s.ofMemory = map[int32][]int32{}, map[ir.MemID][]int32{}
	put := func(list []int32, j int32) []int32 {
		if n := len(list); n > maxReaders || n > 0 && list[n-1] == j {
			return list
		}
		return append(list, j)
	}
	for j := range s.p.b.ops {
		o := &s.p.b.ops[j]
		for k := o.rlo; k < o.rhi; k++ {
			r := s.p.recorded.reading(k)
			for _, w := range r.last() {
				name := s.p.recordedNames.of(w)
				s.readers[name] = put(s.readers[name], int32(j))
			}
			if r.initial {
				s.ofMemory[r.at.mem] = put(s.ofMemory[r.at.mem], int32(j))
			}
		}
	}
}

// readersOf returns the commands of B that read the value of a reading of A, or nil if
// that value is not known in B.
func (s *search) readersOf(r reading) []int32 {
	switch {
	case len(r.writes) > 0:
		if name := s.p.images.of(r.writes[0]); name != noWrite {
			return s.readers[name]
		}
	case r.initial:
		for m, nr := range s.p.b.names {
			if nr == s.p.a.names[r.at.mem] {
				return s.ofMemory[ir.MemID(m)]
			}
		}
	}
	return nil
}
