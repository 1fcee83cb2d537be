//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"slices"

	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// topology is a CUDA graph of a number of replays of a code. It is instantiated once; the parameters and grids of
// its nodes are changed in place, also for other launches of the same code.
type topology struct {
	graph   driver.Graph
	exec    driver.GraphExec
	times   int                // number of replays
	kernels []driver.Function  // by step, of which the nodes are, if there is a choice of entries
	first   []driver.GraphNode // that evaluate rules, by replay and group
	nodes   []driver.GraphNode // by replay and step
	enabled []bool             // by node
	users   *launches          // whose parameters the nodes have; nil: those of none
	version int                // version of users that the nodes have
}

// batch is how many replays one CUDA graph has in a submission of many.
const batch = 16

// arc is an edge between nodes of a replay: the steps, numbered from 0, and then the joins.
type arc struct {
	from, to     int32
	programmatic bool
}

// link finds the edges of a replay. A command waits for those that the graph's own edges name or, in a chain, for the
// one before it. One that launches nothing needs an empty node only where it joins several others.
func (c *code) link(chain bool) {
	steps := int32(len(c.steps))
	last := make([]int32, len(c.nodes)) // by command: the node to wait for; −1: there is none
	seen := make([]int32, steps)        // by node: the last command, counted from 1, that waits for it
	outs := make([]int32, steps)        // by node: how many wait for it
	waits := c.Graph.Waits()
	next, before := int32(0), int32(-1)
	c.arcs, c.joins = nil, 0
	add := func(from, to int32, alone bool) {
		c.arcs = append(c.arcs, arc{from, to, alone && from < steps && to < steps})
		outs[from]++
	}
	for i, node := range c.nodes {
		if _, ok := node.(ir.Command); !ok {
			continue
		}
		var commands []int32
		switch {
		case !chain:
			commands, _ = waits.Of(i)
		case before >= 0:
			commands = []int32{before}
		}
		before = int32(i)
		var from []int32
		for _, w := range commands {
			if n := last[w]; n >= 0 && seen[n] != int32(i)+1 {
				seen[n] = int32(i) + 1
				from = append(from, n)
			}
		}
		at := next
		for next < steps && c.steps[next].node == int32(i) {
			next++
		}
		to := at
		switch {
		case next > at:
			last[i] = next - 1
		case len(from) == 0:
			last[i] = -1
			continue
		case len(from) == 1:
			last[i] = from[0]
			continue
		default:
			to = steps + c.joins
			last[i] = to
			c.joins++
			seen, outs = append(seen, 0), append(outs, 0)
		}
		for _, n := range from {
			add(n, to, len(from) == 1)
		}
		for n := at + 1; n < next; n++ { // steps of one command
			add(n-1, n, true)
		}
	}
	for i := range c.arcs {
		a := &c.arcs[i]
		a.programmatic = a.programmatic && outs[a.from] == 1 && c.overlap(int(a.from), int(a.to))
	}
}

// overlap reports whether the edge between two steps may be programmatic: all threads of the second wait before they
// touch what other launches write, and nobody writes what they read earlier. A launch whose grid is empty waits for
// nothing, so what is behind it would not wait for what is before it.
func (c *code) overlap(before, n int) bool {
	a, b := &c.steps[before], &c.steps[n]
	return c.programmatic && !a.hollow && !b.hollow && c.unwritten[n]
}

// mostNodes is the maximum of nodes in a CUDA graph: commands of longer graphs are launched one by one.
const mostNodes = 1 << 16

// topology returns a CUDA graph of replays whose nodes have the parameters of l: l's own graph, a kept one, or a new
// one.
func (l *launches) topology(times int) (t *topology, err error) {
	to := &l.single
	if times > 1 {
		to = &l.many
	}
	if *to != nil && !(*to).launches(l) {
		l.keep(*to)
		*to = nil
	}
	if *to == nil {
		if t = l.take(times, l); t == nil {
			t, err = l.newTopology(times)
		}
		*to = t
	}
	if err == nil {
		err = (*to).update(l)
	}
	return *to, err
}

// launches reports whether the nodes are of the kernels that l launches. A node keeps its kernel: CUDA's documentation does not say whether it may get one with clusters of
// another size.
func (t *topology) launches(l *launches) bool {
	if !l.choice || t.users == l && t.version == l.version {
		return true
	}
	for i, k := range t.kernels {
		if k != l.list[i].Function {
			return false
		}
	}
	return true
}

func (l *launches) newTopology(times int) (made *topology, err error) {
	t := &topology{times: times}
	if l.choice {
		t.kernels = make([]driver.Function, len(l.list))
		for i := range l.list {
			t.kernels[i] = l.list[i].Function
		}
	}
	defer func() {
		if err != nil {
			made, err = nil, errors.Join(err, t.destroy())
		}
	}()
	if t.graph, err = driver.NewGraph(); err != nil {
		return nil, err
	}
	if err := t.fill(l); err != nil {
		return nil, err
	}
	t.exec, err = t.graph.Instantiate()
	t.users, t.version = l, l.version
	return t, err
}

// fill adds the nodes and edges of a topology's replays to its graph.
func (t *topology) fill(l *launches) error {
	graph, times := t.graph, t.times
	all := l.arcs
	if f := l.device.disturb.arcs; f != nil {
		all = f(all)
	}
	var from, to []driver.GraphNode
	var data []driver.EdgeData
	edge := func(a, b driver.GraphNode, programmatic bool) {
		d := driver.EdgeData{}
		if programmatic {
			d = driver.Programmatic
		}
		from, to, data = append(from, a), append(to, b), append(data, d)
	}
	var nodes []driver.GraphNode // of a replay: steps, then joins
	var before driver.GraphNode  // the node on which all of a replay depends; 0: none
	follow := func(n driver.GraphNode) {
		if before != 0 {
			edge(before, n, false)
		}
	}
	// behind makes a node depend on all of a replay.
	behind := func(n driver.GraphNode) {
		waited := make([]bool, len(nodes))
		for _, a := range all {
			waited[a.from] = true
		}
		for i := range nodes {
			if !waited[i] {
				edge(nodes[i], n, false)
			}
		}
		if len(nodes) == 0 {
			follow(n)
		}
	}
	for r := range times {
		if r > 0 { // behind all of the previous replay
			n, err := graph.AddEmpty()
			if err != nil {
				return err
			}
			behind(n)
			before = n
		}
		for _, x := range l.first {
			n, err := graph.AddKernel(&x)
			if err != nil {
				return err
			}
			follow(n)
			before = n
			t.first = append(t.first, n)
		}
		nodes = nodes[:0]
		for i, x := range l.list {
			if empty(&x) {
				x.Grid = l.smallest(i) // a node needs a grid; it is disabled while the launch has none
			}
			n, err := graph.AddKernel(&x)
			if err != nil {
				return err
			}
			nodes = append(nodes, n)
			t.enabled = append(t.enabled, true)
		}
		t.nodes = append(t.nodes, nodes...)
		for range l.joins {
			n, err := graph.AddEmpty()
			if err != nil {
				return err
			}
			nodes = append(nodes, n)
		}
		waiting := make([]bool, len(nodes))
		for _, a := range all {
			edge(nodes[a.from], nodes[a.to], a.programmatic)
			waiting[a.to] = true
		}
		for i, n := range nodes {
			if !waiting[i] {
				follow(n)
			}
		}
	}
	return graph.AddEdges(from, to, data)
}

func (t *topology) destroy() error {
	var errs []error
	if t.exec != 0 {
		errs = append(errs, t.exec.Destroy())
	}
	if t.graph != 0 {
		errs = append(errs, t.graph.Destroy())
	}
	return errors.Join(errs...)
}

// update sets the nodes' parameters and grids to those that the launches have now.
func (t *topology) update(l *launches) error {
	if t.users == l && t.version == l.version {
		return nil
	}
	all := t.users != l || t.version+1 != l.version || l.moved
	t.users = nil
	if all {
		for i := range t.first {
			if err := t.exec.Set(t.first[i], &l.first[i%len(l.first)]); err != nil {
				return err
			}
		}
	}
	set := func(n int32) error {
		if empty(&l.list[n]) {
			return nil // it is disabled
		}
		for i := int(n); i < len(t.nodes); i += len(l.list) {
			if err := t.exec.Set(t.nodes[i], &l.list[n]); err != nil {
				return err
			}
		}
		return nil
	}
	if all {
		for n := range l.list {
			if err := set(int32(n)); err != nil {
				return err
			}
		}
	} else {
		for _, n := range l.changed {
			if err := set(n); err != nil {
				return err
			}
		}
	}
	t.users, t.version = l, l.version
	return nil
}

// launch launches the graph without nodes that do nothing. next: a replay of the submission follows its last.
func (t *topology) launch(l *launches, s driver.Stream, next bool) error {
	for _, n := range l.sometimes {
		for r := range t.times {
			i := r*len(l.list) + int(n)
			on := !empty(&l.list[n]) && (next || r+1 < t.times || !l.steps[n].next)
			if on == t.enabled[i] {
				continue
			}
			if err := t.exec.Enable(t.nodes[i], on); err != nil {
				return err
			}
			t.enabled[i] = on
		}
	}
	return t.exec.Launch(s)
}

// keep makes a graph available to other launches of the same code.
func (c *code) keep(t *topology) {
	if t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.users = nil
	c.kept = append(c.kept, t)
}

// take returns a kept graph of that many replays of the kernels of some launches, nil if there is none.
func (c *code) take(times int, of *launches) *topology {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(t *topology) bool { return t.times == times && t.launches(of) })
	if i < 0 {
		return nil
	}
	t := c.kept[i]
	c.kept = slices.Delete(c.kept, i, i+1)
	return t
}
