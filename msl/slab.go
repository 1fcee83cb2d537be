package msl

// slab hands out pieces of large arrays.
type slab[T any] struct{ rest []T }

const slabSize = 512

// take gives n elements away.
func (s *slab[T]) take(n int) []T {
	if len(s.rest) < n {
		s.rest = make([]T, max(n, slabSize))
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}

func (s *slab[T]) one() *T { return &s.take(1)[0] }
