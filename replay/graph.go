package replay

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Graph is a planned graph of a session. It is used by one goroutine at a time.
type Graph struct {
	session *Session
	graph   *ir.Graph
	buffers []backend.Buffer
	exec    backend.Executable
	params  []uint32 // bits
	set     []bool

	arguments []ir.MemID // argument memory, written before each run
	running   *ended     // the last run that reads it
}

// ended is a run whose result is kept, so that two can wait for it.
type ended struct {
	backend.Pending
	done   bool
	timing backend.Timing
	err    error
}

func (e *ended) Wait() (backend.Timing, error) {
	if !e.done {
		e.timing, e.err = e.Pending.Wait()
		e.done = true
	}
	return e.timing, e.err
}

// IR returns the graph that is replayed; it must not be changed.
func (p *Graph) IR() *ir.Graph { return p.graph }

// SetParam sets a param for the following runs. v must be within the param's
// bound; a u32 param takes whole numbers only, an f32 param the f32 nearest to v.
func (p *Graph) SetParam(name string, v float64) error {
	i, ok := p.graph.ParamNamed(name)
	if !ok {
		return fmt.Errorf("graph %s has no param $%s%s", ir.QuoteName(p.graph.Name), ir.QuoteName(name), p.have())
	}
	q := p.graph.Params[i]
	value := v
	if q.Type == ir.F32 {
		value = float64(float32(v)) // the bounds are f32 values too: 0.3 is within [0, 0.3]
	}
	if !(value >= q.Min && value <= q.Max) {
		return fmt.Errorf("param $%s = %v is outside its bound %s", ir.QuoteName(name), v, bound(q))
	}
	if q.Type == ir.U32 && v != math.Trunc(v) {
		return fmt.Errorf("param $%s = %v is no %s", ir.QuoteName(name), v, q.Type)
	}
	p.params[i], p.set[i] = bitsOf(q, value), true
	return nil
}

func (p *Graph) have() string {
	var names []string
	for _, q := range p.graph.Params {
		names = append(names, "$"+ir.QuoteName(q.Name))
	}
	if names == nil {
		return " (it has none)"
	}
	return " (it has " + strings.Join(names, ", ") + ")"
}

// bound formats the values that q may have: an f32 by its shortest decimal.
func bound(q ir.Param) string {
	if q.Type == ir.F32 {
		return fmt.Sprintf("[%v, %v]", float32(q.Min), float32(q.Max))
	}
	return fmt.Sprintf("[%v, %v]", q.Min, q.Max)
}

func bitsOf(q ir.Param, v float64) uint32 {
	if q.Type == ir.F32 {
		return math.Float32bits(float32(v))
	}
	return uint32(v)
}

// Input returns the bytes of an input, to be filled before Run; nil if the
// graph has none of that name.
func (p *Graph) Input(name string) []byte { return p.bytes(name, ir.Input) }

// Output returns the bytes of an output, valid from one Run to the next; nil
// if the graph has none of that name.
func (p *Graph) Output(name string) []byte { return p.bytes(name, ir.Output) }

// State returns the bytes of a state, which the host may read and change
// between runs; nil if the graph has none of that name.
func (p *Graph) State(name string) []byte { return p.bytes(name, ir.State) }

func (p *Graph) bytes(name string, kind ir.MemKind) []byte {
	i, ok := p.graph.MemoryNamed(name)
	if !ok || p.graph.Memories[i].Kind != kind || p.session.closed {
		return nil // the memory of a closed session is gone
	}
	root, off := p.graph.Root(i)
	size := p.graph.Memories[i].Size
	return p.buffers[root].Bytes()[off : off+size : off+size]
}

// Check reports a param without a value and a broken constraint.
func (p *Graph) Check() error {
	for i, q := range p.graph.Params {
		if !p.set[i] {
			return fmt.Errorf("param $%s has no value (it is a %s in %s)", ir.QuoteName(q.Name), q.Type, bound(q))
		}
	}
	for _, c := range p.graph.Constraints {
		if v := c.LHS.Eval(p.params); v > c.Max {
			return fmt.Errorf("params break %s <= %d: it is %d", p.graph.FormatAffine(c.LHS), c.Max, v)
		}
	}
	return nil
}

// Work is the modelled time of a run with the params that are set, on one worker
// of the device, in seconds; it may be infinite. ok is false where the device has
// no model.
func (p *Graph) Work() (seconds float64, ok bool, err error) {
	if err := p.Check(); err != nil {
		return 0, false, fmt.Errorf("graph %s: %w", ir.QuoteName(p.graph.Name), err)
	}
	e, ok := p.exec.(backend.Modelled)
	if !ok {
		return 0, false, nil
	}
	return e.Work(p.params), true, nil
}

// Submit starts a run. Outputs and states are valid after Wait. A graph with
// argument memory has one set of arguments: Submit waits for the run before it.
func (p *Graph) Submit(ctx context.Context) (backend.Pending, error) {
	if p.session.closed {
		return nil, fmt.Errorf("graph %s: its session is closed: its memory is gone (open another one)", ir.QuoteName(p.graph.Name))
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(p.graph.Name), err)
	}
	p.session.runs++
	if p.session.options.Poison {
		p.poison(p.session.runs)
	}
	if len(p.arguments) == 0 {
		return p.exec.Submit(ctx, p.params)
	}
	if p.running != nil {
		_, _ = p.running.Wait() // its error is for whoever submitted it
	}
	for _, i := range p.arguments {
		p.graph.Memories[i].WriteValues(p.buffers[i].Bytes(), p.params)
	}
	pending, err := p.exec.Submit(ctx, p.params)
	if err != nil {
		p.running = nil
		return nil, err
	}
	p.running = &ended{Pending: pending}
	return p.running, nil
}

// Run submits and waits.
func (p *Graph) Run(ctx context.Context) (backend.Timing, error) {
	pending, err := p.Submit(ctx)
	if err != nil {
		return backend.Timing{}, err
	}
	return pending.Wait()
}

// poison fills scratch and outputs with bytes that change from run to run and
// that are NaNs as f32 every other run.
func (p *Graph) poison(run uint64) {
	in := ir.Init{Kind: ir.InitRandom, Seed: run}
	if run%2 == 1 {
		in = ir.FillU32(0x7fc00000 | uint32(run)&0x3fffff)
	}
	for i, b := range p.buffers {
		m := &p.graph.Memories[i]
		if b != nil && (m.Kind == ir.Scratch || m.Kind == ir.Output) {
			_ = in.Write(b.Bytes()[:m.Size]) // a fill cannot fail
		}
	}
}
