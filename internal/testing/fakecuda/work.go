//go:build linux && (amd64 || arm64)

package fakecuda

import "time"

// op is one operation of the GPU: a kernel, a copy, or a mark without work such as an event's.
type op struct {
	seq    uint64
	weight uint64 // of the ready ops that of the maximum weight is next, with most seeds
	before []*op  // that have to end first, and were pending when it was added
	waits  int    // how many of them have not ended
	after  []*op
	do     func() uint32 // called without g.mu; nil: there is nothing to do
	launch *launch       // in place of do
	device []*allocation // that it uses
	host   []*pinned
	needed bool // a caller waits for it, or for an op behind it
	done   bool
	at     time.Duration // when it ended
}

// work is the queue of ops that have not run.
type work struct {
	ready   []*op // ops whose predecessors have ended, in the order in which they became ready
	pending int   // number of ops that have not ended
	seq     uint64
	drained bool // run all ops, also those that no caller waits for
	ended   chan struct{}
	stop    bool
}

// add queues an op that begins when all of behind have ended. g.mu is held.
func (g *GPU) add(o *op, behind ...*op) *op {
	w := &g.work
	w.seq++
	o.seq, o.weight = w.seq, g.rng.Uint64()
	if g.options.Seed == 1 {
		o.weight = o.seq
	}
	for _, b := range behind {
		if b != nil && !b.done {
			o.before = append(o.before, b)
			b.after = append(b.after, o)
			o.waits++
		}
	}
	for _, m := range o.device {
		m.users++
	}
	for _, m := range o.host {
		m.users++
	}
	w.pending++
	if o.waits == 0 {
		w.ready = append(w.ready, o)
	}
	g.changed.Broadcast()
	return o
}

// wait blocks until an op has ended or the context is lost. g.mu is held, and released while it blocks.
func (g *GPU) wait(o *op) uint32 {
	if o == nil {
		return success
	}
	o.need()
	g.changed.Broadcast()
	for !o.done && g.sticky == 0 {
		g.changed.Wait()
	}
	return g.sticky
}

// need marks an op as needed, and all ops that it waits for, directly or not.
func (o *op) need() {
	list := []*op{o}
	for len(list) > 0 {
		o := list[len(list)-1]
		list = list[:len(list)-1]
		if o.needed || o.done {
			continue
		}
		o.needed = true
		list = append(list, o.before...)
	}
}

// drain has all pending ops run, and blocks until they have ended.
func (g *GPU) drain() {
	g.work.drained = true
	g.changed.Broadcast()
	for g.work.pending > 0 && g.sticky == 0 {
		g.changed.Wait()
	}
	g.work.drained = false
}

// finish runs all pending ops, and then ends the goroutine of run.
func (g *GPU) finish() {
	g.mu.Lock()
	g.drain()
	g.work.stop = true
	g.changed.Broadcast()
	g.mu.Unlock()
	<-g.work.ended
}

// lose makes the context lost: every later call returns code.
func (g *GPU) lose(code uint32) {
	g.sticky = code
	g.changed.Broadcast()
}

// run is the GPU's goroutine. It runs the ready ops, one or two at a time, until work.stop is set.
func (g *GPU) run() {
	w := &g.work
	g.mu.Lock()
	defer g.mu.Unlock()
	defer close(w.ended)
	for {
		if w.stop {
			return
		}
		o := g.choose()
		if o == nil {
			g.changed.Wait()
			continue
		}
		also := g.beside(o)
		var late time.Duration
		if g.options.Late > 0 && g.rng.IntN(8) == 0 {
			late = time.Duration(g.rng.Int64N(int64(g.options.Late)))
		}
		g.begins(o)
		g.begins(also)
		code := uint32(success)
		for _, x := range []*op{o, also} {
			if x != nil && x.launch != nil && code == success {
				code = g.failsRun()
			}
		}
		g.mu.Unlock()
		time.Sleep(late)
		switch {
		case code != success:
		case also != nil:
			code = g.together(o.launch, also.launch)
		case o.launch != nil:
			code = g.execute(o.launch)
		case o.do != nil:
			code = o.do()
		}
		g.mu.Lock()
		if code != success && g.sticky == 0 {
			g.lose(code)
		}
		g.end(o)
		g.end(also)
	}
}

// failsRun counts the run of a kernel, and returns the result that [Options.Faults] have for it.
func (g *GPU) failsRun() uint32 {
	g.calls[KernelRun]++
	for _, f := range g.options.Faults {
		if f.On == KernelRun && f.Nth == g.calls[KernelRun] {
			return f.Code
		}
	}
	return success
}

// choose takes the op to run next from the ready ones; nil: none may run yet.
func (g *GPU) choose() *op {
	w := &g.work
	if g.sticky != 0 || len(w.ready) == 0 {
		return nil
	}
	if g.options.Seed == 0 {
		return w.take(0)
	}
	// An op keeps its weight, so one of low weight is postponed until nothing else that is needed is ready. A new
	// random choice at each step would hardly ever postpone an op for long.
	most := -1
	for i, o := range w.ready {
		if (o.needed || w.drained) && (most < 0 || o.weight > w.ready[most].weight) {
			most = i
		}
	}
	switch {
	case most < 0:
		return nil
	case g.options.overlaps() && g.rng.IntN(8) == 0: // any ready op, also one that no caller waits for
		most = g.rng.IntN(len(w.ready))
	}
	return w.take(most)
}

func (w *work) take(i int) *op {
	o := w.ready[i]
	w.ready = append(w.ready[:i], w.ready[i+1:]...)
	return o
}

// beside takes another ready kernel to be run concurrently with o; nil: o runs alone.
func (g *GPU) beside(o *op) *op {
	if !g.options.overlaps() || o.launch == nil || g.rng.IntN(2) == 0 {
		return nil
	}
	for i, x := range g.work.ready {
		if x.launch != nil {
			return g.work.take(i)
		}
	}
	return nil
}

// end marks an op as ended, and adds those that waited for it alone to the ready ones.
func (g *GPU) end(o *op) {
	if o == nil {
		return
	}
	o.done, o.at = true, time.Since(g.begun)
	for _, m := range o.device {
		m.users--
	}
	for _, m := range o.host {
		m.users--
	}
	for _, x := range o.after {
		if x.waits--; x.waits == 0 {
			g.work.ready = append(g.work.ready, x)
		}
	}
	o.before, o.after, o.do, o.launch = nil, nil, nil, nil
	g.work.pending--
	g.changed.Broadcast()
}
