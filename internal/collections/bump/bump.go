// Package bump hands out pieces of large arrays. A graph may have a million commands,
// each with a few slices of a few elements, and one allocation for each slice would
// cost more than filling it.
//
//	var regions bump.Allocator[ir.Region]
//	e.Reads = regions.Take(2) // two zero regions; appending to them copies
//
// Pieces are never given back: an array lives as long as any of its pieces.
package bump

import "slices"

// Allocator hands out pieces of arrays of T. The zero value is ready to use.
type Allocator[T any] struct {
	rest []T
	next int
}

// The arrays double in length, beginning with one element for the sake of small graphs.
const (
	first = 1
	most  = 1024
)

// Take returns n zero elements with capacity n; nil if n is 0.
func (s *Allocator[T]) Take(n int) []T {
	if n == 0 {
		return nil
	}
	if len(s.rest) < n {
		s.next = min(max(2*s.next, first), most)
		s.rest = make([]T, max(n, s.next))
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}

// One returns a zero element.
func (s *Allocator[T]) One() *T { return &s.Take(1)[0] }

// Clone returns a copy of x; nil for an empty x.
func (s *Allocator[T]) Clone(x []T) []T {
	if len(x) == 0 {
		return slices.Clone(x)
	}
	out := s.Take(len(x))
	copy(out, x)
	return out
}
