package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// States are one set of the states of a module, the memory that survives from replay to replay.
type States struct {
	instance *Instance
	buffers  map[string]backend.Buffer // by name
	memories map[string]*ir.Memory     // the memories that the buffers hold
	bound    map[*Graph]backend.States
	last     *Run  // the last run on these states
	torn     error // why they are undefined; guarded by Instance.mu
	closed   bool
}

func (s *Instance) newStates() *States {
	st := &States{instance: s, buffers: map[string]backend.Buffer{}, memories: map[string]*ir.Memory{}, bound: map[*Graph]backend.States{}}
	s.sets = append(s.sets, st)
	return st
}

// States returns the set that frames use by default.
func (s *Instance) States() *States { return s.states }

// NewStates returns another set, with the initial contents. Memory is allocated at once for graphs that are
// planned, and for other graphs when they first use the set.
func (s *Instance) NewStates(ctx context.Context) (*States, error) {
	if err := s.errClosed(); err != nil {
		return nil, fmt.Errorf("NewStates: %w", err)
	}
	st := s.newStates()
	for _, name := range slices.Sorted(maps.Keys(s.graphs)) {
		if _, err := st.bind(ctx, s.graphs[name]); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	return st, nil
}

// ResetStates is [States.Reset] of the first set.
func (s *Instance) ResetStates() error { return s.states.Reset(context.Background()) }

// bind returns the device's states of the set for a graph; nil if the graph has no states.
func (st *States) bind(ctx context.Context, g *Graph) (_ backend.States, err error) {
	if st.closed {
		return nil, errors.New("its set of states was closed")
	}
	if b, ok := st.bound[g]; ok {
		return b, nil
	}
	defer mmap.Catch(&err)() // reading initial contents from a mapped file may fault
	places := make([]backend.Place, len(g.graph.Memories))
	for i := range g.graph.Memories {
		m := &g.graph.Memories[i]
		if m.Kind != ir.State || m.Alias != ir.NoMem {
			continue
		}
		b := st.buffers[m.Name]
		if b == nil {
			q, err := st.instance.side()
			if err == nil {
				b, err = backend.AllocMemory(ctx, st.instance.device, q, m)
			}
			if err != nil {
				return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
			}
			st.buffers[m.Name], st.memories[m.Name] = b, m
		}
		places[i] = backend.At(b)
	}
	if st.bound[g], err = g.exec.NewStates(places); err != nil {
		delete(st.bound, g)
		return nil, err
	}
	return st.bound[g], nil
}

// Reset waits for the runs on the states and gives each its initial contents again. After a
// failure of the device it also replaces the failed queue.
func (st *States) Reset(ctx context.Context) (err error) {
	s := st.instance
	if s.closed || st.closed {
		return errors.New("the instance is closed: its states are gone")
	}
	st.settle()
	if s.queue.Err() != nil {
		s.settle()
		if err := s.closeQueues(); err != nil {
			return err
		}
		if s.queue, err = s.device.NewQueue(); err != nil {
			return err
		}
	}
	defer mmap.Catch(&err)()
	for _, name := range slices.Sorted(maps.Keys(st.buffers)) {
		q, err := s.side()
		if err != nil {
			return err
		}
		if err := backend.InitMemory(ctx, q, backend.At(st.buffers[name]), st.memories[name]); err != nil {
			return fmt.Errorf("state %%%s: %w", ir.QuoteName(name), err)
		}
	}
	s.mu.Lock()
	st.torn = nil
	s.mu.Unlock()
	return nil
}

// settle waits for what runs on the set.
func (st *States) settle() {
	if st.last != nil {
		st.last.finish()
	}
}

// undefined returns, as an error, why the contents of the states are undefined; nil if they are
// not.
func (st *States) undefined() error {
	st.instance.mu.Lock()
	defer st.instance.mu.Unlock()
	if st.torn == nil {
		return nil
	}
	return fmt.Errorf("states are undefined (Reset gives them their first contents): %w", st.torn)
}

// find returns the buffer of a state, after waiting until the host may use it.
func (st *States) find(name string) (backend.Buffer, int64, error) {
	if st.closed || st.instance.closed {
		return nil, 0, fmt.Errorf("state %%%s: the instance is closed: its memory is gone", ir.QuoteName(name))
	}
	b := st.buffers[name]
	if b == nil {
		return nil, 0, fmt.Errorf("there is no state %%%s%s", ir.QuoteName(name), listed(slices.Sorted(maps.Keys(st.buffers))))
	}
	st.settle()
	return b, st.memories[name].Size, nil
}

// Get returns a copy of a state, after the runs that were submitted on it.
func (st *States) Get(name string) ([]byte, error) {
	b, size, err := st.find(name)
	if err == nil {
		err = st.undefined()
	}
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	return out, st.instance.get(backend.At(b), out)
}

// Set gives a state other contents, from its first byte on. Bytes behind the data keep their
// values. It waits for the runs that were submitted on the set.
func (st *States) Set(name string, data []byte) error {
	b, size, err := st.find(name)
	if err == nil {
		err = st.undefined()
	}
	if err == nil && int64(len(data)) > size {
		err = fmt.Errorf("state %%%s has %d bytes, not %d", ir.QuoteName(name), size, len(data))
	}
	if err != nil {
		return err
	}
	return st.instance.set(backend.At(b), data)
}

// Close releases a set that [Instance.NewStates] made, after what runs on it.
func (st *States) Close() error {
	if st.closed || st.instance.closed || st == st.instance.states {
		return nil
	}
	st.settle()
	st.instance.sets = slices.DeleteFunc(st.instance.sets, func(o *States) bool { return o == st })
	return st.release()
}

func (st *States) release() error {
	st.closed = true
	var errs []error
	for _, g := range st.bound {
		errs = append(errs, g.Close())
	}
	for _, name := range slices.Sorted(maps.Keys(st.buffers)) {
		errs = append(errs, st.buffers[name].Close())
	}
	return errors.Join(errs...)
}

// get copies memory that nothing uses to the host.
func (s *Instance) get(p backend.Place, to []byte) error {
	if from := p.Bytes(int64(len(to))); from != nil {
		copy(to, from)
		return nil
	}
	ctx := context.Background()
	q, err := s.side()
	if err != nil {
		return err
	}
	return backend.Wait(ctx)(q.Download(ctx, to, p))
}

// set copies from the host to memory that nothing uses.
func (s *Instance) set(p backend.Place, from []byte) error {
	if to := p.Bytes(int64(len(from))); to != nil {
		copy(to, from)
		return nil
	}
	ctx := context.Background()
	q, err := s.side()
	if err != nil {
		return err
	}
	return backend.Wait(ctx)(q.Upload(ctx, p, from))
}
