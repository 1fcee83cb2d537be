package textgen

import (
	"math"

	"github.com/mlxc/mlxc/backend/cpu"
)

// sample draws a token from the logits of a position. The kernel sample_float32 does it, on the host and on devices,
// from the logits, the seed and the position: the same logits give the same token wherever it is drawn.
// If the options ask for what the kernel does not know, before holds the tokens before this one, and logits changes.
func sample(logits []float32, position int, before []int32, o Options) int32 {
	topP := o.TopP
	if o.OnHost() {
		o.chain(logits, before)
		topP = 1
	}
	return int32(cpu.Sample(logits, float32(o.Temp), float32(topP), o.Seed, uint32(position)))
}

// OnHost reports whether the host must choose each token from its logits, since no graph does what the options say. At
// temperature 0, where only the most likely token counts, what takes others away changes nothing.
func (o *Options) OnHost() bool {
	return o.penalizes() || o.Temp > 0 && (o.TopK > 0 || o.MinP > 0)
}

func (o *Options) penalizes() bool {
	return o.Penalty != 0 && o.Penalty != 1 && o.PenaltyLast != 0
}

// chain changes logits as llama.cpp's default samplers do, in their order: the penalty for tokens that were there
// before, top-k, top-p and min-p. Logits of tokens that are out become −inf. The temperature comes last and is left to who
// draws, so that, unlike in the kernel, it does not change which tokens top-p keeps.
func (o *Options) chain(logits []float32, before []int32) {
	if o.penalizes() {
		penalize(logits, before, float32(o.Penalty), o.PenaltyLast)
	}
	if o.Temp == 0 {
		return
	}
	none := float32(math.Inf(-1))
	if k := o.TopK; k > 0 && k < len(logits) || o.TopP < 1 {
		kept := likeliest(logits, k, o.TopP)
		values := make([]float32, len(kept))
		for i, id := range kept {
			values[i] = logits[id]
		}
		for i := range logits {
			logits[i] = none
		}
		for i, id := range kept {
			logits[id] = values[i]
		}
	}
	if o.MinP > 0 {
		top := none
		for _, l := range logits {
			top = max(top, l)
		}
		least := min(top, top+float32(math.Log(o.MinP))) // one is kept, also at min-p 1
		for i, l := range logits {
			if l < least {
				logits[i] = none
			}
		}
	}
}

// penalize makes the tokens less likely that are among the last ones (−1: all): it divides positive logits and
// multiplies others, once for each token.
func penalize(logits []float32, before []int32, by float32, last int) {
	if last >= 0 && last < len(before) {
		before = before[len(before)-last:]
	}
	seen := make(map[int32]bool, len(before))
	for _, id := range before {
		if seen[id] || int(id) >= len(logits) {
			continue
		}
		seen[id] = true
		if l := &logits[id]; *l > 0 {
			*l /= by
		} else {
			*l *= by
		}
	}
}

// likeliest returns the most likely tokens, of equal ones those with the lowest ID first: k of them (all if k is 0), and of
// these as many as it takes for their share of the probability of the k to reach p. There is at least one.
func likeliest(logits []float32, k int, p float64) []int32 {
	queue := make([]int32, len(logits))
	for i := range queue {
		queue[i] = int32(i)
	}
	before := func(a, b int32) bool { return logits[a] > logits[b] || logits[a] == logits[b] && a < b }
	sink := func(i int) {
		for {
			kid := 2*i + 1
			if kid >= len(queue) {
				return
			}
			if kid+1 < len(queue) && before(queue[kid+1], queue[kid]) {
				kid++
			}
			if !before(queue[kid], queue[i]) {
				return
			}
			queue[i], queue[kid] = queue[kid], queue[i]
			i = kid
		}
	}
	for i := len(queue)/2 - 1; i >= 0; i-- {
		sink(i)
	}
	top := float64(logits[queue[0]])
	weight := func(id int32) float64 { return math.Exp(float64(logits[id]) - top) }
	pop := func() int32 {
		id, n := queue[0], len(queue)-1
		queue[0], queue = queue[n], queue[:n]
		sink(0)
		return id
	}
	if k <= 0 || k > len(logits) {
		k = len(logits)
	}
	total := 0.0
	var kept []int32
	switch {
	case k < len(logits):
		for range k {
			kept = append(kept, pop())
			total += weight(kept[len(kept)-1])
		}
		if p >= 1 {
			return kept
		}
	default: // not all of them need be in order
		for id := range logits {
			total += weight(int32(id))
		}
	}
	sum := 0.0
	for n := range k {
		if n == len(kept) {
			kept = append(kept, pop())
		}
		if sum += weight(kept[n]); sum >= p*total {
			return kept[:n+1]
		}
	}
	return kept
}
