package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/meaning"
	"github.com/mlxc/mlxc/internal/mmap"
	"github.com/mlxc/mlxc/ir"
)

// Options of a session.
type Options struct {
	// Poison fills scratch and outputs before each run with a pattern that
	// differs from run to run, so that a read of undefined bytes shows. For tests.
	Poison bool
	// Profile asks the device for a time for each dispatch.
	Profile bool
}

// Session holds the memory of a module on a device.
type Session struct {
	device  backend.Device
	module  *ir.Module
	options Options
	blobs   map[*ir.Blob]backend.Buffer // weights by contents
	states  map[string]backend.Buffer   // by name
	owned   []backend.Buffer
	graphs  map[string]*Graph
	runs    uint64
	closed  bool
}

// Open allocates the module's weights and states on the device. Graphs are
// planned when first asked for. The module's blobs must be loaded and stay
// mapped until Close.
func Open(d backend.Device, m *ir.Module, o Options) (*Session, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	return &Session{
		device: d, module: m, options: o,
		blobs: map[*ir.Blob]backend.Buffer{}, states: map[string]backend.Buffer{}, graphs: map[string]*Graph{},
	}, nil
}

// Close releases everything, in every graph. After it nothing runs any more: Run
// and Submit are errors, Input, Output and State give nil.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.graphs)) {
		errs = append(errs, s.graphs[name].exec.Close())
	}
	for _, b := range s.owned {
		errs = append(errs, b.Close())
	}
	s.owned, s.graphs = nil, nil
	return errors.Join(errs...)
}

// Graph returns the graph called name, planned; "" is the first one.
func (s *Session) Graph(name string) (*Graph, error) {
	return s.GraphContext(context.Background(), name)
}

// GraphContext is Graph that ends with its context: whether a large graph has one
// meaning takes a while to tell.
func (s *Session) GraphContext(ctx context.Context, name string) (*Graph, error) {
	if s.closed {
		return nil, fmt.Errorf("graph %s: the session is closed", ir.QuoteName(name))
	}
	g := s.module.Graph(name)
	if name == "" {
		g = s.module.Graphs[0]
	}
	if g == nil {
		var have []string
		for _, x := range s.module.Graphs {
			have = append(have, ir.QuoteName(x.Name))
		}
		return nil, fmt.Errorf("the module has no graph %q (it has %v)", name, have)
	}
	if p := s.graphs[g.Name]; p != nil {
		return p, nil
	}
	p, err := s.plan(ctx, g)
	if err != nil {
		if none := (*meaning.Error)(nil); errors.As(err, &none) {
			return nil, err // it says which graph
		}
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(g.Name), err)
	}
	s.graphs[g.Name] = p
	return p, nil
}

// ResetStates gives every state its initial contents again.
func (s *Session) ResetStates() (err error) {
	if s.closed {
		return fmt.Errorf("the session is closed: its states are gone")
	}
	defer mmap.Catch(&err)()
	for _, g := range s.module.Graphs {
		for i := range g.Memories {
			m := &g.Memories[i]
			if b := s.states[m.Name]; b != nil && m.Kind == ir.State && m.Alias == ir.NoMem {
				if err := m.WriteInit(b.Bytes()[:m.Size]); err != nil {
					return fmt.Errorf("state %%%s: %w", m.Name, err)
				}
			}
		}
	}
	return nil
}

func (s *Session) plan(ctx context.Context, g *ir.Graph) (_ *Graph, err error) {
	defer mmap.Catch(&err)() // initial contents lie in files
	if err := sound(ctx, g); err != nil {
		return nil, err
	}
	p := &Graph{session: s, graph: g, arguments: arguments(g), buffers: make([]backend.Buffer, len(g.Memories)), params: make([]uint32, len(g.Params)), set: make([]bool, len(g.Params))}
	if err := s.fits(g); err != nil {
		return nil, err
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem {
			continue
		}
		b, err := s.buffer(m)
		if err != nil {
			return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
		}
		p.buffers[i] = b
	}
	if err := p.checkOverlap(); err != nil {
		return nil, err
	}
	for i, q := range g.Params {
		if q.Min == q.Max {
			p.params[i], p.set[i] = bitsOf(q, q.Min), true
		}
	}
	p.exec, err = s.device.Compile(&backend.Program{Graph: g, Buffers: p.buffers, Profile: s.options.Profile})
	return p, err
}

// fits reports a graph whose memories together are more than the device may
// take: before the first of them is allocated.
func (s *Session) fits(g *ir.Graph) error {
	limit := s.device.Info().Memory
	if limit <= 0 {
		return nil
	}
	total, largest := int64(0), -1
	for i := range g.Memories {
		m := &g.Memories[i]
		mapped := m.Kind == ir.Weight && m.Init.Kind == ir.InitBlob
		if m.Alias != ir.NoMem || mapped || m.Kind == ir.State && s.states[m.Name] != nil {
			continue
		}
		total += min(m.Size, math.MaxInt64-total)
		if largest < 0 || m.Size > g.Memories[largest].Size {
			largest = i
		}
	}
	if total <= limit {
		return nil
	}
	m := &g.Memories[largest]
	return fmt.Errorf("its memories need %d bytes (%%%s alone %d), the device %s may take %d (--memory sets how much)", total, ir.QuoteName(m.Name), m.Size, s.device.Name(), limit)
}

// arguments lists the argument memories of g.
func arguments(g *ir.Graph) (out []ir.MemID) {
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Argument && m.Alias == ir.NoMem {
			out = append(out, ir.MemID(i))
		}
	}
	return out
}

// sound refuses a dispatch of a builtin or generated kernel that its declaration does
// not describe, for no executor may run what nobody knows the effects of; and a
// graph whose result depends on an order that nothing gives, or on undefined bytes.
func sound(ctx context.Context, g *ir.Graph) error {
	found, err := meaning.Of(ctx, g)
	if err != nil {
		return err
	}
	if found.Undescribed != nil {
		return found.Undescribed
	}
	return found.Err()
}

// buffer returns the memory of m: mapped or shared where possible.
func (s *Session) buffer(m *ir.Memory) (backend.Buffer, error) {
	blob := m.Init.Blob
	switch {
	case m.Kind == ir.Weight && blob != nil && s.blobs[blob] != nil:
		return s.blobs[blob], nil
	case m.Kind == ir.State && s.states[m.Name] != nil:
		return s.states[m.Name], nil
	}
	b, err := backend.AllocMemory(s.device, m)
	if err != nil {
		return nil, err
	}
	s.owned = append(s.owned, b)
	switch {
	case m.Kind == ir.Weight && blob != nil:
		s.blobs[blob] = b
	case m.Kind == ir.State:
		s.states[m.Name] = b
	}
	return b, nil
}

// checkOverlap reports two memories that share host bytes: the meaning of a
// graph needs its roots disjoint. Read-only memories may share.
func (p *Graph) checkOverlap() error {
	type span struct {
		lo, end uintptr
		mem     int
	}
	var spans []span
	for i, b := range p.buffers {
		if b == nil || len(b.Bytes()) == 0 {
			continue
		}
		lo := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
		spans = append(spans, span{lo, lo + uintptr(p.graph.Memories[i].Size), i})
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].lo < spans[j].lo })
	reach := span{mem: -1} // the span that reaches furthest so far
	writable := span{mem: -1}
	for _, s := range spans {
		m := &p.graph.Memories[s.mem]
		for _, prev := range []span{reach, writable} {
			if prev.mem < 0 || prev.end <= s.lo {
				continue
			}
			q := &p.graph.Memories[prev.mem]
			if !m.Kind.ReadOnly() || !q.Kind.ReadOnly() {
				return fmt.Errorf("memories %%%s and %%%s overlap on the host: give each its own buffer, or make one an alias", ir.QuoteName(q.Name), ir.QuoteName(m.Name))
			}
		}
		if s.end > reach.end {
			reach = s
		}
		if !m.Kind.ReadOnly() && s.end > writable.end {
			writable = s
		}
	}
	return nil
}
