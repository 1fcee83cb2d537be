package passes

// cuts places as few cuts as possible on a circle of n positions so that one lies between the two
// positions of every conflict. The circle is a command list, whose end meets its own start in the
// next replay. A cut before position j separates j from the position before it. A cut before
// position 0 lies after the end of the list.
//
// latest covers two turns round the circle: latest[n+j] is the latest position before j of the
// second turn that conflicts with j (positions of the first turn begin at 0), or −1. fixed are cuts
// that exist already and cost nothing; they are not in the result.
//
// After a cut at s, the next cut is best placed as late as possible: before next(s) = min{j:
// latest(j) ≥ s}. On a line, or after a fixed cut, that is optimal: any other solution has a cut
// between s and next(s) too, and moving that cut to next(s) separates all remaining conflicts that
// it separated before. For a circle without fixed cuts, let L be the number of cuts that a line
// needs. The circle needs L or L+1 cuts, in the latter case with one at its end. It needs L exactly
// if some s has next^L(s) ≥ s+n. Such an s is on the cycle into which next (modulo n) leads from
// any start: if next^L advanced by less than n from every point of that cycle, the mean advance of
// next on it would be less than n/L. But next is monotone, so the mean advance is the same from
// every start, also from s. All of this takes O(n).
func cuts(latest []int32, n int, fixed []bool) []bool {
	out := make([]bool, n)
	// at(j) is latest[j] continued to any number of turns. It is far below 0 if j has no conflict.
	at := func(j int) int {
		p := latest[n+j%n]
		if p < 0 {
			return -1 << 62
		}
		return int(p) + j - j%n - n
	}
	for a, f := range fixed {
		if f {
			// A cut after the end of the list is tried too, and taken only if that saves a cut.
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

// line cuts once round the circle, beginning at the fixed cut a, and returns the number of cuts.
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

// closes looks for a point from which l cuts lead all the way round, on the cycle into which next
// leads from s.
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
