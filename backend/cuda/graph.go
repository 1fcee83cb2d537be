//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"slices"

	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// topology is a number of replays of a code as a graph of CUDA's. It is made once: what is launched by its
// nodes is changed in place, for other launches of the same code too.
type topology struct {
	graph   driver.Graph
	exec    driver.GraphExec
	times   int                // replays
	first   []driver.GraphNode // that follow rules, by replay and group
	nodes   []driver.GraphNode // by replay and step
	enabled []bool             // by node
	users   *launches          // whose parameters the nodes have; nil: nobody's
	version int                // of these
}

// batch is how many replays a submission of many launches at a time.
const batch = 16

// arc is an edge between nodes of a topology: steps from 0 on, then joins.
type arc struct {
	from, to     int32
	programmatic bool
}

// arcs are the edges of a code: of a chain, or those that the graph is ordered by. joins is how many nodes
// there are besides the steps.
func (c *code) arcs(how Plan) (all []arc, joins int32) {
	if how != Edges {
		for n := 1; n < len(c.steps); n++ {
			all = append(all, arc{int32(n - 1), int32(n), c.overlap(n-1, n)})
		}
		return all, 0
	}
	// By command, its last step. Joins, and commands that launch nothing, have an empty node instead; these are
	// numbered behind the steps.
	last := make([]int32, len(c.nodes))
	waits := c.Graph.Waits()
	steps := int32(len(c.steps))
	seen := make([]int32, len(c.nodes)) // by command: the last one, from 1 on, that waits for it
	outs := make([]int32, len(c.steps)) // by step: how many wait for it
	next := int32(0)
	for i, node := range c.nodes {
		if _, ok := node.(ir.Command); !ok {
			continue
		}
		at := next
		for next < steps && c.steps[next].node == int32(i) {
			if next > at {
				all = append(all, arc{next - 1, next, false}) // of one command
			}
			next++
		}
		to := at
		if last[i] = next - 1; next == at {
			to = steps + joins
			last[i] = to
			joins++
		}
		same, _ := waits.Of(i)
		into := 0
		for _, from := range same {
			if seen[from] == int32(i)+1 {
				continue
			}
			seen[from] = int32(i) + 1
			all = append(all, arc{last[from], to, false})
			if last[from] < steps {
				outs[last[from]]++
			}
			into++
		}
		if into == 1 && to < steps {
			if a := &all[len(all)-1]; a.from < steps {
				a.programmatic = c.overlap(int(a.from), int(to))
			}
		}
	}
	for i := range all {
		a := &all[i]
		a.programmatic = a.programmatic && outs[a.from] == 1
	}
	return all, joins
}

// overlap reports whether a step may begin before the one before it has ended: it waits by itself, in all
// of its threads, before it touches what other launches write, and what it reads earlier nobody writes. A
// launch that may have no threadgroups waits for nothing, so who comes behind it would not either.
func (c *code) overlap(before, n int) bool {
	a, b := &c.steps[before], &c.steps[n]
	return c.programmatic && !a.hollow && !b.hollow && c.unwritten[n]
}

// mostNodes of a graph: of longer ones each command is launched.
const mostNodes = 1 << 16

// topology returns a graph of replays for launches that have their parameters: theirs, one that is kept, or
// a new one.
func (l *launches) topology(how Plan, times int) (t *topology, err error) {
	to := &l.single
	if times > 1 {
		to = &l.many
	}
	if *to == nil {
		if t = l.take(times); t == nil {
			t, err = l.newTopology(how, times)
		}
		*to = t
	}
	if err == nil {
		err = (*to).update(l)
	}
	return *to, err
}

func (l *launches) newTopology(how Plan, times int) (made *topology, err error) {
	t := &topology{times: times}
	defer func() {
		if err != nil {
			made, err = nil, errors.Join(err, t.destroy())
		}
	}()
	if t.graph, err = driver.NewGraph(); err != nil {
		return nil, err
	}
	if err := t.fill(l, how); err != nil {
		return nil, err
	}
	t.exec, err = t.graph.Instantiate()
	t.users, t.version = l, l.version
	return t, err
}

// fill makes the nodes of a topology's replays.
func (t *topology) fill(l *launches, how Plan) error {
	graph, times := t.graph, t.times
	all, joins := l.arcs(how)
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
	add := func(x driver.Launch) (driver.GraphNode, error) {
		if empty(&x) {
			x.Grid = [3]uint32{1, 1, 1} // it is left out until it is something
		}
		return graph.AddKernel(&x)
	}
	var before driver.GraphNode // what everything of a replay is behind; 0: nothing
	follow := func(n driver.GraphNode) {
		if before != 0 {
			edge(before, n, false)
		}
	}
	// behind has a node wait for all of a replay.
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
		if r > 0 { // all of the replay before
			n, err := graph.AddEmpty()
			if err != nil {
				return err
			}
			behind(n)
			before = n
		}
		for _, x := range l.first {
			n, err := add(x)
			if err != nil {
				return err
			}
			follow(n)
			before = n
			t.first = append(t.first, n)
		}
		nodes = nodes[:0]
		for _, x := range l.list {
			n, err := add(x)
			if err != nil {
				return err
			}
			nodes = append(nodes, n)
			t.enabled = append(t.enabled, true)
		}
		t.nodes = append(t.nodes, nodes...)
		for range joins {
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

// update has the graph launch what launches are now.
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
			return nil // it is left out
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

// launch runs the graph. next says whether a replay of the same submission follows its last.
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

// keep has a graph serve other launches of the same code.
func (c *code) keep(t *topology) {
	if t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.users = nil
	c.kept = append(c.kept, t)
}

// take returns a graph of so many replays that is kept, nil if there is none.
func (c *code) take(times int) *topology {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(t *topology) bool { return t.times == times })
	if i < 0 {
		return nil
	}
	t := c.kept[i]
	c.kept = slices.Delete(c.kept, i, i+1)
	return t
}
