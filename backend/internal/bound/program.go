// Package bound says where the memories of a compiled program may lie, for devices with buffers of
// their own: what a frame, a set of states and a submission have to be like.
package bound

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/ir"
)

// Program is a program that a device compiles.
type Program struct {
	backend.Program
	owns  func(b backend.Buffer) bool
	needs []bool  // by memory: it needs a place
	align []int64 // by memory: what its place is a multiple of
}

// New returns a program with places of its own. owns reports whether a buffer is the device's. What the
// program places is wrong is an error that names the memory.
func New(p *backend.Program, owns func(b backend.Buffer) bool) (*Program, error) {
	out := &Program{Program: *p, owns: owns, needs: backend.BoundMemories(p.Graph), align: plan.Alignments(p.Graph)}
	out.Program.Places = make([]backend.Place, len(p.Graph.Memories))
	copy(out.Program.Places, p.Places)
	for i := range p.Graph.Memories {
		if at := out.Program.Places[i]; at.Buffer != nil || out.needs[i] && p.Graph.Memories[i].Kind == ir.Weight {
			if err := out.suits(ir.MemID(i), at, 1); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// suits returns an error if a memory, or n of its size one after another, cannot lie at a place.
func (p *Program) suits(root ir.MemID, at backend.Place, n int64) error {
	m := &p.Graph.Memories[root]
	name := ir.QuoteName(m.Name)
	if err := at.Holds(n * m.Size); err != nil {
		return fmt.Errorf("memory %%%s %w", name, err)
	}
	if !p.owns(at.Buffer) {
		return fmt.Errorf("memory %%%s lies in a buffer of another device", name)
	}
	if align := p.align[root]; at.Offset%align != 0 {
		return fmt.Errorf("memory %%%s begins at byte %d of a buffer, which is no multiple of %d", name, at.Offset, align)
	}
	return nil
}

// Frame returns the memory of a frame, whose buffers are d's where s does not place them.
func (p *Program) Frame(d backend.Device, s backend.FrameSpec) (*backend.FrameMemory, error) {
	f, err := backend.NewFrameMemory(d, &p.Program, s)
	if err != nil {
		return nil, err
	}
	for i := range p.Graph.Memories {
		n := int64(1)
		if p.Graph.Memories[i].Every {
			n = int64(max(1, s.Replays))
		}
		if at := f.Place(ir.MemID(i)); at.Buffer != nil {
			if err := p.suits(ir.MemID(i), at, n); err != nil {
				return nil, errors.Join(err, f.Close())
			}
		}
	}
	return f, nil
}

// States are a set of states of a program.
type States struct {
	owner  *Program
	places []backend.Place
}

// Place is where a state lies, by its root.
func (s *States) Place(root ir.MemID) backend.Place { return s.places[root] }

// Close implements [backend.States].
func (*States) Close() error { return nil }

// States returns a set of states at places, by memory.
func (p *Program) States(places []backend.Place) (*States, error) {
	s := &States{owner: p, places: make([]backend.Place, len(p.Graph.Memories))}
	copy(s.places, places)
	for i := range p.Graph.Memories {
		if p.Graph.Memories[i].Kind != ir.State || !p.needs[i] || p.Program.Places[i].Buffer != nil {
			continue
		}
		if err := p.suits(ir.MemID(i), s.places[i], 1); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Accept returns an error if a submission does not fit. frame is the program whose frame it names, nil
// if that is of another device; room is how many replays the frame serves.
func (p *Program) Accept(s *backend.Submission, frame *Program, room int) error {
	name := ir.QuoteName(p.Graph.Name)
	if frame != p {
		return fmt.Errorf("graph %s: the frame is of another executable", name)
	}
	if set, ok := s.States.(*States); s.States != nil && (!ok || set.owner != p) {
		return fmt.Errorf("graph %s: the states are of another executable", name)
	}
	return s.Fits(&p.Program, room)
}

// Uses returns where the root memories lie that a submission uses, by memory.
func (p *Program) Uses(s *backend.Submission) []backend.Place {
	var places []backend.Place
	if set, ok := s.States.(*States); ok && set != nil {
		places = set.places
	}
	return s.Places(&p.Program, places)
}
