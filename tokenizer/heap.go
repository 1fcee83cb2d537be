package tokenizer

// heap is a queue with the best element on top. push and pop are those of container/heap, without its interface calls,
// which would allocate for every element.
type heap[T interface{ before(T) bool }] []T

func (h *heap[T]) push(x T) {
	q := append(*h, x)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !x.before(q[up]) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = x
	*h = q
}

func (h *heap[T]) pop() T {
	q := *h
	top, n := q[0], len(q)-1
	x := q[n]
	q = q[:n]
	*h = q
	if n == 0 {
		return top
	}
	i := 0
	for {
		kid := 2*i + 1
		if kid >= n {
			break
		}
		if kid+1 < n && q[kid+1].before(q[kid]) {
			kid++
		}
		if !q[kid].before(x) {
			break
		}
		q[i] = q[kid]
		i = kid
	}
	q[i] = x
	return top
}
