package textgen

import (
	"math"
	"math/rand/v2"
	"sort"
)

// sampler draws from softmax(logits / temperature), restricted to the smallest set of
// the most likely tokens whose probability reaches top-p (Holtzman et al. 2020).
type sampler struct {
	temp, topP float64
	rng        *rand.Rand
	order      []int32
	p          []float64
}

func newSampler(o Options) *sampler {
	return &sampler{temp: o.Temp, topP: o.TopP, rng: rand.New(rand.NewPCG(o.Seed, 0x6d6c7863))}
}

func (s *sampler) sample(logits []float32) int32 {
	if len(s.order) != len(logits) {
		s.order, s.p = make([]int32, len(logits)), make([]float64, len(logits))
	}
	top := math.Inf(-1)
	for _, v := range logits {
		top = max(top, float64(v))
	}
	sum := 0.0
	for i, v := range logits {
		s.order[i] = int32(i)
		s.p[i] = math.Exp((float64(v) - top) / s.temp)
		sum += s.p[i]
	}
	// Equal logits are sorted by ID, so that the draw does not depend on the sort.
	sort.Slice(s.order, func(i, j int) bool {
		a, b := s.order[i], s.order[j]
		if s.p[a] != s.p[b] {
			return s.p[a] > s.p[b]
		}
		return a < b
	})
	kept, n := 0.0, 0
	for n < len(s.order) && (n == 0 || kept < s.topP*sum) {
		kept += s.p[s.order[n]]
		n++
	}
	x := s.rng.Float64() * kept
	for _, id := range s.order[:n] {
		if x -= s.p[id]; x < 0 {
			return id
		}
	}
	return s.order[0]
}
