package ptxrun

import (
	"fmt"
	"strings"
)

// clusterWindow is how far apart the addresses are that blocks of a cluster give to each other's shared memory.
const clusterWindow = 1 << 24

// cluster are the blocks that run together: one, if the entry has no directive that says more.
type cluster struct {
	blocks  [][]*thread
	threads []*thread // of all blocks
	slots   int       // clocks
	// Of barrier.cluster:
	arrived   int    // threads that have in this phase
	completed int    // phases
	arriving  clocks // what those knew that have arrived in this phase
	known     clocks // and in the last one that is complete
	memory    []clusterMemory
}

// clusterMemory is what is known of the shared memory of a block.
type clusterMemory struct {
	left     bool                 // the block has ended
	accesses map[int]remoteAccess // by the clocks of threads of other blocks
}

// remoteAccess is the last access of a thread.
type remoteAccess struct {
	time uint32
	in   *instruction
}

// run runs the blocks of a cluster together, until all have ended. at is the first one.
func (p *Program) run(c *cluster, at [3]uint32) error {
	c.slots, c.arrived, c.completed, c.arriving, c.known = len(c.threads), 0, 0, nil, nil
	c.memory = make([]clusterMemory, len(c.blocks))
	for rank, threads := range c.blocks {
		place := p.cluster
		here := at
		for i := range here {
			here[i] += uint32(rank) % place[i]
			rank /= int(place[i])
		}
		p.begin(c, threads, here)
	}
	for idle := 0; ; idle++ {
		waiting, events := 0, 0
		paused, progress := false, false
		for rank, threads := range c.blocks {
			n, some, err := p.round(threads)
			if err != nil {
				return fmt.Errorf("block %v, %w", threads[0].block, err)
			}
			waiting, progress = waiting+n, progress || some
			for _, t := range threads {
				events += t.events
				t.events = 0
				paused = paused || t.paused != nil
			}
			if n == 0 && !c.memory[rank].left {
				c.memory[rank].left = true
				if err := c.leaves(rank); err != nil {
					return err
				}
				progress = true
			}
		}
		if waiting == 0 {
			for _, t := range c.threads {
				p.Steps += t.steps
			}
			return nil
		}
		if c.meet() {
			progress = true
		}
		if progress || events > 0 {
			idle = 0
		}
		if idle == idleRounds || !progress && events == 0 && !paused {
			for _, t := range c.threads {
				if in := t.stands(); in != nil {
					return fmt.Errorf("block %v, thread %d: line %d: %s: what it waits for does not happen", t.block, t.index, in.line, in.text)
				}
			}
		}
	}
}

// meet completes a phase of barrier.cluster if all threads that have not ended have arrived, and lets those go on that wait for a complete one.
func (c *cluster) meet() (progress bool) {
	left := 0
	for _, t := range c.threads {
		if !t.finished {
			left++
		}
	}
	if c.arrived > 0 && c.arrived == left {
		c.completed++
		c.known, c.arriving, c.arrived = c.arriving, nil, 0
		progress = true
	}
	for i := 0; i < len(c.threads); {
		t := c.threads[i]
		if t.waits == nil || !t.waits.together.cluster || t.arrivedAt == 0 || t.arrivedAt > c.completed {
			i++
			continue
		}
		// An instruction that is aligned is one of the whole warp.
		some := c.threads[i : i+1]
		if t.waits.op[len(t.waits.op)-1] == "aligned" {
			first := i - int(t.index)%warpSize
			some = c.threads[first : first+min(warpSize, len(c.blocks[0])-(int(t.index)-int(t.index)%warpSize))]
			i = first
		}
		in, ready := t.waits, true
		for _, o := range some {
			ready = ready && (o.finished || o.waits == in && o.arrivedAt > 0)
		}
		if i += len(some); !ready {
			continue
		}
		for _, o := range some {
			if o.finished {
				continue
			}
			o.arrivedAt, o.met = 0, true
			if o.order != nil {
				o.acquire(c.known)
			}
			o.waits = nil
			o.next++
			progress = true
		}
	}
	return progress
}

// leaves checks that the accesses of other blocks to the shared memory of one that ends are over.
func (c *cluster) leaves(rank int) error {
	for _, t := range c.threads { // in order, so that an error is always the same
		a, ok := c.memory[rank].accesses[t.slot]
		if !ok {
			continue
		}
		over := false
		for _, own := range c.blocks[rank] {
			over = over || own.known.at(t.slot) >= a.time
		}
		if !over {
			return fmt.Errorf("block %v, thread %d: line %d: %s: block %d of the cluster may have ended before", t.block, t.index, a.in.line, a.in.text, rank)
		}
	}
	return nil
}

// clusterOf returns how threads execute an instruction of barrier.cluster together; nil if it is none, or if each executes it by itself.
func clusterOf(op string) *together {
	all := func(*thread, *instruction) uint32 { return 1<<warpSize - 1 }
	switch op {
	case "barrier.cluster.arrive.aligned", "barrier.cluster.arrive.release.aligned", "barrier.cluster.arrive.relaxed.aligned":
		return &together{mask: all, do: func(warp []*thread, in *instruction) error {
			for _, t := range warp {
				if t != nil {
					if err := arriveInCluster(t, in); err != nil {
						return fmt.Errorf("thread %d: %w", t.index, err)
					}
				}
			}
			return nil
		}}
	case "barrier.cluster.wait", "barrier.cluster.wait.acquire", "barrier.cluster.wait.aligned", "barrier.cluster.wait.acquire.aligned":
		return &together{cluster: true}
	}
	return nil
}

// arriveInCluster is barrier.cluster.arrive.
func arriveInCluster(t *thread, in *instruction) error {
	if t.arrivedAt > 0 {
		return fmt.Errorf("the thread has not waited since it has arrived")
	}
	c := t.cluster
	c.arrived++
	t.events++
	t.arrivedAt = c.completed + 1
	if in.op[2] == "arrive" && (len(in.op) == 3 || in.op[3] != "relaxed") && t.order != nil {
		c.arriving = t.release(c.arriving)
	}
	return nil
}

// remoteOf returns what executes an instruction that has to do with the shared memory of other blocks; nil if it is none.
func remoteOf(in *instruction) func(t *thread, in *instruction) error {
	switch full := strings.Join(in.op, "."); {
	case strings.HasPrefix(full, "barrier.cluster.arrive") && clusterOf(full+".aligned") != nil && len(in.args) == 0:
		return arriveInCluster
	case full == "mapa.shared::cluster.u32" && len(in.args) == 3:
		return func(t *thread, in *instruction) error {
			at, rank := t.value(&in.args[1]), t.value(&in.args[2])
			if at >= clusterWindow || rank >= uint64(len(t.cluster.blocks)) {
				return fmt.Errorf("the address 0x%x in block %d of a cluster of %d", at, rank, len(t.cluster.blocks))
			}
			if int(rank) != t.rank {
				at += (rank + 1) * clusterWindow
			}
			t.set(&in.args[0], at)
			return nil
		}
	}
	return nil
}

// remote returns a thread of the block in whose shared memory an address lies, and the address there, and notes that it is accessed.
func (t *thread) remote(address uint64) (*thread, uint64, error) {
	if address < clusterWindow {
		return t, address, nil
	}
	rank := int(address/clusterWindow) - 1
	if rank >= len(t.cluster.blocks) {
		return nil, 0, fmt.Errorf("0x%x is no address in the shared memory of the cluster", address)
	}
	m := &t.cluster.memory[rank]
	switch {
	case !t.met:
		return nil, 0, fmt.Errorf("block %d of the cluster may not have begun", rank)
	case m.left:
		return nil, 0, fmt.Errorf("block %d of the cluster may have ended before", rank)
	}
	if m.accesses == nil {
		m.accesses = map[int]remoteAccess{}
	}
	m.accesses[t.slot] = remoteAccess{t.clock, &t.code[t.next-1]}
	return t.cluster.blocks[rank][0], address % clusterWindow, nil
}
