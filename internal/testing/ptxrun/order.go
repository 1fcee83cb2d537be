package ptxrun

import "fmt"

// clocks says, for each thread of a cluster and then for each mbarrier, up to which of its times what it did is known.
// It is never changed once it is made, so that threads share it.
type clocks []uint32

func (c clocks) at(i int) uint32 {
	if i < len(c) {
		return c[i]
	}
	return 0
}

// with returns what is known by c or o.
func (c clocks) with(o clocks) clocks {
	more := false
	for i, x := range o {
		if x > c.at(i) {
			more = true
			break
		}
	}
	if !more {
		return c
	}
	out := make(clocks, max(len(c), len(o)))
	copy(out, c)
	for i, x := range o {
		out[i] = max(out[i], x)
	}
	return out
}

// order is the state of a block, and of its shared memory, that says which accesses are ordered: it is kept for programs with asynchronous
// instructions, in which then also ordinary accesses to shared memory need barriers between them.
type order struct {
	threads   []*thread // of the cluster
	cells     []cell
	copies    []*copying // numbers of them in cells begin with 1
	products  []*product // likewise
	reads     []int32    // the last product of each warpgroup that reads 16 bytes
	groups    int        // warpgroups
	mbarriers map[uint64]*mbarrier
	slots     *int // how many clocks there are
	joined    map[[2]*uint32]clocks
}

// cell is the state of a byte of shared memory.
type cell struct {
	writer int16 // thread of the cluster + 1; 0: nobody; below 0: the bulk copies of the mbarrier with the clock −writer − 1
	reader int16 // likewise, the last one since
	other  int16 // one before that one, which that does not know to be over; 0: none
	flight int32 // the copy on the way to it
	// The writer's and the readers' times.
	written, read, otherRead uint32
	fences                   uint32 // that the writer had executed
	mbarrier                 bool
}

func newOrder(c *cluster, threads []*thread, size int) *order {
	o := &order{threads: c.threads, groups: (len(threads) + warpgroup - 1) / warpgroup, mbarriers: map[uint64]*mbarrier{}, slots: &c.slots, joined: map[[2]*uint32]clocks{}}
	if last := threads[0].order; last != nil { // of the block before
		o.cells, o.reads = last.cells, last.reads
		clear(o.cells)
		clear(o.reads)
	} else {
		o.cells, o.reads = make([]cell, size), make([]int32, o.groups*((size+15)/16))
	}
	for _, t := range threads {
		t.known, t.clock, t.fences, t.groups, t.uncommitted = nil, 1, nil, nil, nil
		t.products, t.productGroups = nil, nil
		t.done, t.productFences, t.initFences = 0, 0, 0
		clear(t.busy)
		clear(t.touched)
	}
	return o
}

// knows reports whether what a thread or mbarrier did up to a time is ordered before what t does now.
func (t *thread) knows(slot int, time uint32) bool {
	return slot == t.slot || t.known.at(slot) >= time
}

// release returns what those know that wait for t to have come here.
func (t *thread) release(to clocks) clocks {
	to = to.with(t.known)
	out := make(clocks, max(len(to), len(t.order.threads)))
	copy(out, to)
	out[t.slot] = t.clock
	t.clock++
	return out
}

// acquire gives t what a clock says.
func (t *thread) acquire(c clocks) {
	if len(c) == 0 {
		return
	}
	if len(t.known) == 0 {
		t.known = c
		return
	}
	key := [2]*uint32{&t.known[0], &c[0]}
	k, ok := t.order.joined[key]
	if !ok {
		k = t.known.with(c)
		if len(t.order.joined) > 1<<12 {
			clear(t.order.joined)
		}
		t.order.joined[key] = k
	}
	t.known = k
}

// meet orders all that threads did before all that they do from now on; and what others did, of which c says.
func (o *order) meet(threads []*thread, c clocks) {
	if o == nil {
		return
	}
	all := make(clocks, max(*o.slots, len(c)))
	copy(all, c)
	var last *uint32
	for _, t := range threads {
		if len(t.known) == 0 || last == &t.known[0] {
			continue
		}
		last = &t.known[0]
		for i, x := range t.known {
			all[i] = max(all[i], x)
		}
	}
	for _, t := range threads {
		all[t.slot] = max(all[t.slot], t.clock)
		t.clock++
		t.known = all
	}
}

// who names the writer of a byte.
func (o *order) who(writer int16) string {
	if writer > 0 {
		t := o.threads[writer-1]
		if len(t.cluster.blocks) > 1 {
			return fmt.Sprintf("thread %d of block %d of the cluster", t.index, t.rank)
		}
		return fmt.Sprintf("thread %d", t.index)
	}
	return "a bulk copy"
}

// writerOf returns the clock of the writer of a byte.
func (c *cell) writerOf() int {
	if c.writer > 0 {
		return int(c.writer) - 1
	}
	return -int(c.writer) - 1
}

// read notes that t reads n bytes of the block's shared memory, or returns why it must not.
func (o *order) read(t *thread, at, n int) error {
	for i := at; i < at+n; i++ {
		c := &o.cells[i]
		switch {
		case c.flight != 0:
			return fmt.Errorf("the byte of shared memory at 0x%x is still in flight: %s", sharedBase+i, o.copies[c.flight-1].waits())
		case c.mbarrier:
			return fmt.Errorf("the byte of shared memory at 0x%x is one of an mbarrier", sharedBase+i)
		case c.writer != 0 && !t.knows(c.writerOf(), c.written):
			return fmt.Errorf("the byte of shared memory at 0x%x has been written by %s, and no barrier lies between", sharedBase+i, o.who(c.writer))
		}
		if c.reader != 0 && !t.knows(int(c.reader)-1, c.read) {
			c.other, c.otherRead = c.reader, c.read
		}
		c.reader, c.read = int16(t.slot)+1, t.clock
	}
	return nil
}

// mayWrite returns why t must not write n bytes of the block's shared memory, or have them written.
func (o *order) mayWrite(t *thread, at, n int) error {
	for i := at; i < at+n; i++ {
		c := &o.cells[i]
		switch {
		case c.flight != 0:
			return fmt.Errorf("the byte of shared memory at 0x%x is still in flight: %s", sharedBase+i, o.copies[c.flight-1].waits())
		case c.mbarrier:
			return fmt.Errorf("the byte of shared memory at 0x%x is one of an mbarrier", sharedBase+i)
		case c.reader != 0 && !t.knows(int(c.reader)-1, c.read):
			return fmt.Errorf("the byte of shared memory at 0x%x has been read by %s, and no barrier lies between", sharedBase+i, o.who(c.reader))
		case c.other != 0 && !t.knows(int(c.other)-1, c.otherRead):
			return fmt.Errorf("the byte of shared memory at 0x%x has been read by %s, and no barrier lies between", sharedBase+i, o.who(c.other))
		case (c.writer < 0 || c.writer > 0 && o.threads[c.writer-1].rank != t.rank) && !t.knows(c.writerOf(), c.written):
			return fmt.Errorf("the byte of shared memory at 0x%x has been written by %s, and no barrier lies between", sharedBase+i, o.who(c.writer))
		}
	}
	for g := at / 16; g <= (at+n-1)/16; g++ {
		for w := range o.groups {
			number := o.reads[g*o.groups+w]
			if number == 0 {
				continue
			}
			if err := o.products[number-1].over(t); err != nil {
				return fmt.Errorf("the bytes of shared memory at 0x%x are read by wgmma.mma_async of line %d: %w", sharedBase+16*g, o.products[number-1].in.line, err)
			}
		}
	}
	return nil
}

// write notes that t writes bytes of the block's shared memory, which are old so far, or returns why it must not. Threads of a block may write the same without
// an order between them.
func (o *order) write(t *thread, at int, old, bytes []byte) error {
	if err := o.mayWrite(t, at, len(bytes)); err != nil {
		return err
	}
	for i := range bytes {
		c := &o.cells[at+i]
		if c.writer != 0 && old[i] != bytes[i] && !t.knows(c.writerOf(), c.written) {
			return fmt.Errorf("the byte of shared memory at 0x%x has been written by %s, as another one, and no barrier lies between", sharedBase+at+i, o.who(c.writer))
		}
		c.writer, c.written, c.fences = int16(t.slot)+1, t.clock, uint32(len(t.fences))
	}
	return nil
}
