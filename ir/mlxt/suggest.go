package mlxt

import "iter"

// maxCandidates bounds the search for a near miss in a hostile file.
const maxCandidates = 10000

// nearest returns the candidate that is most similar to s, or "" if none is similar. It allows one
// edit (insert, delete, replace, swap neighbours) for every three letters, and one for a name of
// two.
func nearest(s string, candidates iter.Seq[string]) string {
	best, least := "", min(len(s)/3, 3)+1
	if len(s) == 2 {
		least = 2
	}
	seen := 0
	for c := range candidates {
		if seen++; seen > maxCandidates {
			break
		}
		if d := edits(s, c, least); d < least {
			best, least = c, d
		}
	}
	return best
}

// edits returns the number of edits between a and b (optimal string alignment), but at most limit.
func edits(a, b string, limit int) int {
	if len(a) > 255 || len(b) > 255 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	var rows [3][256]int // the row before the last, the last row, this row
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev2, prev, cur := &rows[(i-1)%3], &rows[i%3], &rows[(i+1)%3]
		cur[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := prev[j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, prev[j]+1, cur[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, prev2[j-2]+1)
			}
			cur[j] = d
			least = min(least, d)
		}
		if least >= limit {
			return limit
		}
	}
	return min(limit, rows[(len(a)+1)%3][len(b)])
}
