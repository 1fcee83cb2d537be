package passes

// cuts places the fewest cuts on a circle of n positions so that one lies between the
// two positions of every conflict. The circle is a command list, whose end meets its
// own beginning in the next replay. A cut before position j separates j from what
// stands before it; a cut before position 0 is one behind the end of the list.
//
// latest covers two turns round the circle: latest[n+j] is the latest position before
// j of the second turn that j conflicts with (positions of the first turn begin at 0),
// or −1. fixed are cuts that are there already and cost nothing; they are not in the
// result.
//
// From a cut at s, the next one is best placed as late as possible: before
// next(s) = min{j: latest(j) ≥ s}. On a line, or from a fixed cut on, that is
// optimal: any other solution has a cut between s and next(s) too, and moving that to
// next(s) separates no fewer of the conflicts that are left. On a circle without fixed
// cuts, let L be the number that a line needs;
// the circle needs L or L+1, the latter by a cut at its end. It is L exactly if
// some s has next^L(s) ≥ s+n. Such an s is then on the cycle into which next
// (modulo n) leads from anywhere: if next^L advanced by less than n from every
// point of it, the mean advance of next on it were less than n/L, but since next
// is monotone that mean is the same from every start, s too.
// All of it takes O(n).
func cuts(latest []int32, n int, fixed []bool) []bool {
	out := make([]bool, n)
	// at(j) is latest for any j ≥ 0, in whatever turn; far below 0 if there is no conflict.
	at := func(j int) int {
		p := latest[n+j%n]
		if p < 0 {
			return -1 << 62
		}
		return int(p) + j - j%n - n
	}
	for a, f := range fixed {
		if f {
			// A cut behind the end of the list is tried too; it must save one.
			count := line(at, n, a, fixed, out)
			if !fixed[0] && !out[0] {
				fixed[0] = true
				other := make([]bool, n)
				if line(at, n, a, fixed, other) < count {
					out = other
					out[0] = true
				}
				fixed[0] = false
			}
			return out
		}
	}
	conflicts := false
	for _, p := range latest[n:] {
		conflicts = conflicts || p >= 0
	}
	if !conflicts {
		return out
	}
	first := make([]int, n)
	for s, j := 0, 1; s < n; s++ {
		for j = max(j, s+1); at(j) < s; j++ {
		}
		first[s] = j
	}
	next := func(s int) int { return first[s%n] + s - s%n }

	l, last := 0, 0
	for s := next(0); s < n; s = next(s) {
		out[s] = true
		l, last = l+1, s
	}
	if l > 0 && next(last) >= n+next(0) {
		return out
	}
	if l > 0 {
		if s, ok := closes(next, n, l, last); ok {
			clear(out)
			for range l {
				out[s%n] = true
				s = next(s)
			}
			return out
		}
	}
	out[0] = true
	return out
}

// line cuts from the fixed cut a on, all the way round, and returns how many
// cuts it took.
func line(at func(int) int, n, a int, fixed, out []bool) (count int) {
	for s, j := a, a+1; j < a+n; j++ {
		switch {
		case fixed[j%n]:
			s = j
		case at(j) >= s:
			out[j%n] = true
			count++
			s = j
		}
	}
	return count
}

// closes looks on the cycle that next leads into from s for a point from which
// l cuts go all the way round.
func closes(next func(int) int, n, l, s int) (int, bool) {
	seen := make([]bool, n)
	for ; !seen[s%n]; s = next(s) {
		seen[s%n] = true
	}
	end := s
	for range l {
		end = next(end)
	}
	for start := s % n; ; {
		if end >= s+n {
			return s, true
		}
		s, end = next(s), next(end)
		if s%n == start {
			return 0, false
		}
	}
}
