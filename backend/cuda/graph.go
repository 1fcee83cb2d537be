//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"

	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// topology is a code as a graph of CUDA's. It is made once: what is launched by its nodes is changed in
// place, for other launches of the same code too.
type topology struct {
	graph   driver.Graph
	exec    driver.GraphExec
	first   []driver.GraphNode // that follow rules, by group
	nodes   []driver.GraphNode // by step
	enabled []bool             // by step
	users   *launches          // whose parameters the nodes have; nil: nobody's
}

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
	// A command's last step, or the join that stands for it: it is one, or has no step.
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

// taken returns a graph for launches that have their parameters: one that is kept, or a new one.
func (l *launches) taken(how Plan) (*topology, error) {
	if t := l.take(); t != nil {
		return t, t.update(l, nil, true)
	}
	return l.topology(how)
}

// topology makes the graph of launches that have their parameters.
func (l *launches) topology(how Plan) (_ *topology, err error) {
	t := &topology{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.destroy())
		}
	}()
	if t.graph, err = driver.NewGraph(); err != nil {
		return nil, err
	}
	add := func(to *[]driver.GraphNode, x driver.Launch) error {
		if empty(&x) {
			x.Grid = [3]uint32{1, 1, 1} // it is left out until it is something
		}
		n, err := t.graph.AddKernel(&x)
		*to = append(*to, n)
		return err
	}
	for _, x := range l.first {
		if err := add(&t.first, x); err != nil {
			return nil, err
		}
	}
	for _, x := range l.list {
		if err := add(&t.nodes, x); err != nil {
			return nil, err
		}
		t.enabled = append(t.enabled, true)
	}
	all, joins := l.arcs(how)
	nodes := t.nodes[:len(t.nodes):len(t.nodes)]
	for range joins {
		n, err := t.graph.AddEmpty()
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
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
	for i := 1; i < len(t.first); i++ {
		edge(t.first[i-1], t.first[i], false)
	}
	waiting := make([]bool, len(nodes))
	for _, a := range all {
		edge(nodes[a.from], nodes[a.to], a.programmatic)
		waiting[a.to] = true
	}
	if k := len(t.first); k > 0 {
		for i, n := range nodes {
			if !waiting[i] {
				edge(t.first[k-1], n, false)
			}
		}
	}
	if err := t.graph.AddEdges(from, to, data); err != nil {
		return nil, err
	}
	t.exec, err = t.graph.Instantiate()
	t.users = l
	return t, err
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

// update has the graph launch the steps that changed as they are now; all of them, and what follows rules,
// if all is set.
func (t *topology) update(l *launches, changed []int32, all bool) error {
	if all || t.users != l {
		for i := range t.first {
			if err := t.exec.Set(t.first[i], &l.first[i]); err != nil {
				return err
			}
		}
	}
	set := func(n int32) error {
		if empty(&l.list[n]) {
			return nil // it is left out
		}
		return t.exec.Set(t.nodes[n], &l.list[n])
	}
	if t.users != l {
		t.users = nil
		for n := range t.nodes {
			if err := set(int32(n)); err != nil {
				return err
			}
		}
		t.users = l
		return nil
	}
	for _, n := range changed {
		if err := set(n); err != nil {
			return err
		}
	}
	return nil
}

// launch runs the graph.
func (t *topology) launch(l *launches, s driver.Stream, next bool) error {
	for _, n := range l.sometimes {
		on := !empty(&l.list[n]) && (next || !l.steps[n].next)
		if on == t.enabled[n] {
			continue
		}
		if err := t.exec.Enable(t.nodes[n], on); err != nil {
			return err
		}
		t.enabled[n] = on
	}
	return t.exec.Launch(s)
}

// keep has a graph serve other launches of the same code.
func (c *code) keep(t *topology) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.users = nil
	c.kept = append(c.kept, t)
}

// take returns a graph that is kept, nil if there is none.
func (c *code) take() *topology {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.kept)
	if n == 0 {
		return nil
	}
	t := c.kept[n-1]
	c.kept = c.kept[:n-1]
	return t
}
