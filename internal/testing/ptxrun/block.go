package ptxrun

import "fmt"

// idleRounds is how often threads may look in vain for something that others do.
const idleRounds = 64

// named is a barrier of a block of those with numbers.
type named struct {
	arrived int // by bar.arrive
	known   clocks
}

// begin has the threads of a block begin.
func (p *Program) begin(c *cluster, threads []*thread, at [3]uint32) {
	shared := make([]byte, p.size+threads[0].launch.Shared)
	var o *order
	if p.async {
		o = newOrder(c, threads, len(shared))
		for i := range shared {
			shared[i] = poison
		}
	}
	for _, t := range threads {
		t.block, t.shared, t.next, t.steps, t.finished, t.waits, t.order, t.barriers = at, shared, 0, 0, false, nil, o, map[uint64]*named{}
		t.barriers, t.arrivedAt, t.met = threads[0].barriers, 0, false
	}
}

// round runs the threads of a block: warp after warp, each to its end or until it has to wait for others. It returns how many have not ended,
// and whether any go on that have waited.
func (p *Program) round(threads []*thread) (waiting int, progress bool, err error) {
	for _, t := range threads {
		t.paused = nil
	}
	for i := 0; i < len(threads); i += warpSize {
		n, err := p.warp(threads[i:min(i+warpSize, len(threads))])
		if err != nil {
			return 0, false, err
		}
		waiting += n
	}
	if waiting == 0 {
		return 0, false, nil
	}
	if progress, err = p.groups(threads); err == nil && !progress {
		progress, err = p.barriers(threads, waiting)
	}
	return waiting, progress, err
}

// stands returns the instruction at which a thread has to wait; nil: none.
func (t *thread) stands() *instruction {
	if t.waits != nil {
		return t.waits
	}
	return t.paused
}

// groups executes what the warps of a warpgroup execute together, where all have come to it.
func (p *Program) groups(threads []*thread) (progress bool, err error) {
	for from := 0; from < len(threads); from += warpgroup {
		group := threads[from:min(from+warpgroup, len(threads))]
		in := group[0].waits
		if in == nil || in.together.group == nil {
			continue
		}
		ready := len(group) == warpgroup
		for _, t := range group {
			ready = ready && t.waits == in
		}
		if !ready {
			continue
		}
		if err := in.together.group(group, in); err != nil {
			return false, fmt.Errorf("warpgroup of thread %d: line %d: %s: %w", group[0].index, in.line, in.text, err)
		}
		for _, t := range group {
			t.waits = nil
			t.next++
		}
		progress = true
	}
	return progress, nil
}

// barriers lets those go on for whom a barrier is complete: one without a number of threads when all that have not
// ended have come to it.
func (p *Program) barriers(threads []*thread, unfinished int) (progress bool, err error) {
	type barrier struct{ number, count uint64 }
	var found []barrier
	come := map[barrier][]*thread{}
	for _, t := range threads {
		if t.waits == nil || t.waits.together.mask != nil || t.waits.together.group != nil || t.waits.together.cluster {
			continue
		}
		args := t.waits.args
		if t.waits.together.reduces {
			args = args[1:2]
		}
		b := barrier{number: t.value(&args[0])}
		if len(args) == 2 {
			b.count = t.value(&args[1])
		}
		if come[b] == nil {
			found = append(found, b)
		}
		come[b] = append(come[b], t)
	}
	for _, b := range found {
		count, in := int(b.count), come[b][0].waits
		n := threads[0].barriers[b.number]
		if n == nil {
			n = &named{}
		}
		here := len(come[b]) + n.arrived
		if b.count == 0 {
			count = unfinished
		}
		if b.count%warpSize != 0 || here > count {
			return false, fmt.Errorf("line %d: %s: %d threads have come to barrier %d, which is of %d", in.line, in.text, here, b.number, count)
		}
		if here < count {
			continue
		}
		threads[0].order.meet(come[b], n.known)
		delete(threads[0].barriers, b.number)
		some := uint64(0)
		for _, t := range come[b] {
			if t.waits != in && (in.together.reduces || t.waits.together.reduces) {
				return false, fmt.Errorf("line %d: %s: others have come to another instruction of barrier %d, in line %d", in.line, in.text, b.number, t.waits.line)
			}
			if in.together.reduces {
				some |= t.value(&in.args[2])
			}
		}
		for _, t := range come[b] {
			if in.together.reduces {
				t.set(&in.args[0], some)
			}
			t.waits = nil
			t.next++
		}
		progress = true
	}
	return progress, nil
}

// arriveAt is bar.arrive number, count.
func arriveAt(t *thread, in *instruction) error {
	number, count := t.value(&in.args[0]), t.value(&in.args[1])
	n := t.barriers[number]
	if n == nil {
		n = &named{}
		t.barriers[number] = n
	}
	n.arrived++
	t.events++
	if uint64(n.arrived) >= count || count%warpSize != 0 {
		return fmt.Errorf("%d threads have arrived at barrier %d, which is of %d", n.arrived, number, count)
	}
	if t.order != nil {
		n.known = t.release(n.known)
	}
	return nil
}
