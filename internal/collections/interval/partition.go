package interval

// Partition maps integers to values: a set of disjoint half-open intervals, each with a
// value, in a treap ordered by lo. The zero value maps nothing. An operation that meets
// k of n intervals costs O((k+1) log n). Nodes live in one slice and are reused.
type Partition[T any] struct {
	nodes []segment[T] // index 0 stands for nil
	free  int32        // a list of unused nodes, linked by left
	root  int32
	seed  uint32
	size  int
	meets []int32 // scratch of Set
}

type segment[T any] struct {
	lo, end     int64
	value       T
	left, right int32
	priority    uint32
}

// Len returns the number of intervals.
func (p *Partition[T]) Len() int { return p.size }

// Reset empties the partition.
func (p *Partition[T]) Reset() {
	if len(p.nodes) > 0 {
		clear(p.nodes)
		p.nodes = p.nodes[:1]
	}
	p.root, p.free, p.size = 0, 0, 0
}

// Set gives every integer of [lo, end) the value v.
func (p *Partition[T]) Set(lo, end int64, v T) {
	if lo >= end {
		return
	}
	// The usual case: bytes are reused in the same pieces as before.
	if n := p.at(lo); n != 0 && p.nodes[n].lo == lo && p.nodes[n].end == end {
		p.nodes[n].value = v
		return
	}
	// An interval that meets [lo, end) and reaches beyond it is shortened in place,
	// which changes no order. One node of those within is reused.
	p.meets = p.appendMeeting(p.meets[:0], p.root, lo, end)
	within := int32(0)
	for _, n := range p.meets {
		s := &p.nodes[n]
		switch {
		case s.lo < lo && s.end > end:
			rest, w := s.end, s.value
			s.end = lo
			p.insert(p.alloc(end, rest, w))
		case s.lo < lo:
			s.end = lo
		case s.end > end:
			s.lo = end
		case within == 0:
			within = n
		default:
			p.remove(n)
		}
	}
	if within == 0 {
		p.insert(p.alloc(lo, end, v))
		return
	}
	s := &p.nodes[within]
	s.lo, s.end, s.value = lo, end, v
}

// appendMeeting appends the nodes of the intervals that meet [lo, end), in ascending
// order.
func (p *Partition[T]) appendMeeting(list []int32, n int32, lo, end int64) []int32 {
	for n != 0 {
		s := &p.nodes[n]
		if s.lo > lo {
			list = p.appendMeeting(list, s.left, lo, end)
		}
		if s.lo < end && s.end > lo {
			list = append(list, n)
		}
		if s.end >= end {
			break
		}
		n = s.right
	}
	return list
}

// insert adds a node whose interval meets no other one.
func (p *Partition[T]) insert(n int32) {
	s := &p.nodes[n]
	at := &p.root
	for *at != 0 && p.nodes[*at].priority >= s.priority {
		at = p.toward(*at, s.lo)
	}
	s.left, s.right = p.split(*at, s.lo)
	*at = n
}

// remove takes out one node.
func (p *Partition[T]) remove(n int32) {
	s := &p.nodes[n]
	at := &p.root
	for *at != n {
		at = p.toward(*at, s.lo)
	}
	*at = p.merge(s.left, s.right)
	s.left, s.right = 0, 0
	p.release(n)
}

// toward returns the child of n below which an interval that begins at lo belongs.
func (p *Partition[T]) toward(n int32, lo int64) *int32 {
	s := &p.nodes[n]
	if lo < s.lo {
		return &s.left
	}
	return &s.right
}

// Update replaces every value v in [lo, end) by f(v). Integers without a value get f of
// the zero value.
func (p *Partition[T]) Update(lo, end int64, f func(T) T) {
	if lo >= end {
		return
	}
	if n := p.at(lo); n != 0 && p.nodes[n].lo == lo && p.nodes[n].end == end {
		p.nodes[n].value = f(p.nodes[n].value)
		return
	}
	p.cut(lo)
	p.cut(end)
	left, rest := p.split(p.root, lo)
	middle, right := p.split(rest, end)
	var zero T
	at := lo
	filled := int32(0)
	var walk func(n int32)
	var order []int32
	walk = func(n int32) {
		if n == 0 {
			return
		}
		walk(p.nodes[n].left)
		order = append(order, n)
		walk(p.nodes[n].right)
	}
	walk(middle)
	for _, n := range order {
		s := &p.nodes[n]
		s.value = f(s.value)
		s.left, s.right = 0, 0
		lo, end := s.lo, s.end
		if at < lo {
			filled = p.merge(filled, p.alloc(at, lo, f(zero)))
		}
		filled = p.merge(filled, n)
		at = end
	}
	if at < end {
		filled = p.merge(filled, p.alloc(at, end, f(zero)))
	}
	p.root = p.merge(p.merge(left, filled), right)
}

// At returns the whole interval that contains x, and its value.
func (p *Partition[T]) At(x int64) (lo, end int64, v T, ok bool) {
	n := p.at(x)
	if n == 0 {
		return 0, 0, v, false
	}
	s := &p.nodes[n]
	return s.lo, s.end, s.value, true
}

// Each calls yield with every interval that meets [lo, end), in its full length and in
// ascending order, until yield returns false. yield must not change the partition.
func (p *Partition[T]) Each(lo, end int64, yield func(lo, end int64, v T) bool) {
	p.each(p.root, lo, end, yield)
}

func (p *Partition[T]) each(n int32, lo, end int64, yield func(lo, end int64, v T) bool) bool {
	if n == 0 {
		return true
	}
	s := &p.nodes[n]
	if lo < s.lo && !p.each(s.left, lo, end, yield) {
		return false
	}
	if s.lo < end && s.end > lo && !yield(s.lo, s.end, s.value) {
		return false
	}
	return s.end >= end || p.each(s.right, lo, end, yield)
}

// at returns the node of the interval that contains x, or 0.
func (p *Partition[T]) at(x int64) int32 {
	n := p.root
	for n != 0 {
		s := &p.nodes[n]
		switch {
		case x < s.lo:
			n = s.left
		case x >= s.end:
			n = s.right
		default:
			return n
		}
	}
	return 0
}

// cut divides the interval that contains x at x, if there is one.
func (p *Partition[T]) cut(x int64) {
	n := p.at(x)
	if n == 0 || p.nodes[n].lo == x {
		return
	}
	end, v := p.nodes[n].end, p.nodes[n].value
	p.nodes[n].end = x
	left, right := p.split(p.root, x)
	p.root = p.merge(p.merge(left, p.alloc(x, end, v)), right)
}

func (p *Partition[T]) alloc(lo, end int64, v T) int32 {
	// xorshift32 (Marsaglia 2003). It only has to be deterministic.
	if p.seed == 0 {
		p.seed = 2463534242
	}
	p.seed ^= p.seed << 13
	p.seed ^= p.seed >> 17
	p.seed ^= p.seed << 5
	p.size++
	s := segment[T]{lo: lo, end: end, value: v, priority: p.seed}
	if n := p.free; n != 0 {
		p.free = p.nodes[n].left
		p.nodes[n] = s
		return n
	}
	if len(p.nodes) == 0 {
		p.nodes = append(p.nodes, segment[T]{})
	}
	p.nodes = append(p.nodes, s)
	return int32(len(p.nodes) - 1)
}

func (p *Partition[T]) release(n int32) {
	if n == 0 {
		return
	}
	p.release(p.nodes[n].left)
	p.release(p.nodes[n].right)
	p.nodes[n] = segment[T]{left: p.free}
	p.free = n
	p.size--
}

// split cuts a subtree into the intervals that begin before lo, and the others.
func (p *Partition[T]) split(n int32, lo int64) (left, right int32) {
	if n == 0 {
		return 0, 0
	}
	s := &p.nodes[n]
	if s.lo < lo {
		l, r := p.split(s.right, lo)
		s.right = l
		return n, r
	}
	l, r := p.split(s.left, lo)
	s.left = r
	return l, n
}

func (p *Partition[T]) merge(a, b int32) int32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	case p.nodes[a].priority > p.nodes[b].priority:
		p.nodes[a].right = p.merge(p.nodes[a].right, b)
		return a
	}
	p.nodes[b].left = p.merge(a, p.nodes[b].left)
	return b
}
