package measure

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// Times are what a plan costs, in seconds, a value for each round. What a plan does not have is empty.
type Times struct {
	Encode []float64 // a dispatch, on the host
	Launch []float64 // a smallest kernel among others or, if commands are launches, behind another
	Alone  []float64 // a smallest kernel behind a barrier or another launch, with it
	// Barrier is what a barrier adds to a dispatch. With edges it is what an epoch of [Wide] kernels takes beyond
	// two kernels: to begin them beside one another, and to wait for all of them.
	Barrier       []float64
	CommandBuffer []float64 // what one more command buffer adds
}

// Costs returns the medians.
func (t Times) Costs() cost.PlanTimes {
	of := func(v []float64) cost.Seconds { return cost.Seconds(Median(v)) }
	return cost.PlanTimes{Encode: of(t.Encode), Launch: of(t.Launch), Barrier: of(t.Barrier)}
}

// Median is the median of values, of an even number the greater one in the middle; 0 if there are none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(v))[len(v)/2]
}

// Launches measures rows of n kernels and, where the plan follows the edges of graphs, forks. The differences of long
// and short graphs are taken, so that what a submission costs by itself is not in them.
func Launches(n int, edges bool, time Timer) (t Times, err error) {
	of := func(make func(n int) *ir.Graph, many, few int) (each []float64, long Sample, err error) {
		short, err := time(make(few))
		if err == nil {
			long, err = time(make(many))
		}
		if err == nil && len(short.Device) != len(long.Device) {
			err = fmt.Errorf("%d rounds, and %d", len(short.Device), len(long.Device))
		}
		if err != nil {
			return nil, long, err
		}
		for i := range short.Device {
			x := (long.Device[i] - short.Device[i]) / float64(many-few)
			if x <= 0 { // noise of a busy machine: then the whole time is divided
				x = long.Device[i] / float64(many)
			}
			each = append(each, x)
		}
		return each, long, nil
	}
	n = max(n, 16)
	var long Sample
	if t.Launch, long, err = of(func(n int) *ir.Graph { return Row(n, edges) }, n, n/8); err != nil {
		return t, err
	}
	t.Alone, t.Encode = t.Launch, long.host(n)
	if !edges {
		return t, nil
	}
	pairs := n / (Wide + 1)
	both, _, err := of(Forked, max(2, pairs), max(1, pairs/8))
	for i := range both {
		t.Barrier = append(t.Barrier, max(0, both[i]-2*t.Launch[i]))
	}
	return t, err
}

// buffers is how many command buffers a graph is cut into, to measure what one costs.
const buffers = 16

// Encoding measures n dispatches, none of which touches what another writes, with nothing between them, with barriers
// and with commits.
func Encoding(n int, time Timer) (t Times, err error) {
	few := n / 8
	all := map[between]Sample{}
	for _, what := range []between{nothing, some, barriers, commits} {
		if all[what], err = time(beside(n, what)); err != nil {
			return t, err
		}
	}
	small, err := time(beside(few, nothing)) // what is constant is the same in it
	if err != nil {
		return t, err
	}
	t.Encode = all[some].host(n) // as most graphs have barriers
	for i, free := range all[nothing].Device {
		behind, cut := all[barriers].Device[i], all[commits].Device[i]
		t.Launch = append(t.Launch, (free-small.Device[i])/float64(n-few))
		t.Alone = append(t.Alone, behind/float64(n))
		t.Barrier = append(t.Barrier, (behind-free)/float64(n-1))
		t.CommandBuffer = append(t.CommandBuffer, (cut-free)/float64(buffers-1))
	}
	return t, nil
}

// Copy measures a copy of so many bytes by a kernel, and returns bytes read and written per second, by round.
func Copy(bytes int64, time Timer) (rates []float64, err error) {
	s, err := time(copied(bytes))
	for _, t := range s.Device {
		rates = append(rates, 2*float64(bytes)/t)
	}
	return rates, err
}
