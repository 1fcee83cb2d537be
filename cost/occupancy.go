package cost

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// lanes is how many threads a SIMD group of Apple's GPUs has, and a warp of NVIDIA's.
const lanes = 32

// Occupancy says how much of a chip the threads of a dispatch use, whatever they do.
type Occupancy struct {
	Groups  float64 // threadgroups
	Threads float64
	Cores   float64 // share of the chip's cores that get a threadgroup
	Idle    float64 // share of the lanes of SIMD groups that no thread of the grid is in
	Saves   Seconds // what the dispatch, alone, would take less if all cores did its work; 0 if the profile measured its kernel
}

// Occupancy returns that of a dispatch of the estimator's graph.
func (e *Estimator) Occupancy(d *ir.Dispatch) Occupancy {
	o := Occupancy{Groups: 1, Threads: 1}
	// A dimension has count[0] whole threadgroups and count[1] partial ones.
	var size, count [3][2]float64
	for i, x := range d.Grid {
		t := float64(max(1, d.Threadgroup[i]))
		v := 0.0
		if x.Div >= 1 {
			v = e.extent(x)
		}
		size[i], count[i] = [2]float64{t, 0}, [2]float64{v, 0}
		if d.GridKind == ir.Threads {
			whole := math.Floor(v / t)
			size[i][1], count[i][0] = v-whole*t, whole
			if size[i][1] > 0 {
				count[i][1] = 1
			}
		}
		o.Groups *= count[i][0] + count[i][1]
		o.Threads *= count[i][0]*size[i][0] + count[i][1]*size[i][1]
	}
	started := 0.0
	for k := range 8 {
		n, threads := 1.0, 1.0
		for i := range 3 {
			n, threads = n*count[i][k>>i&1], threads*size[i][k>>i&1]
		}
		started += n * math.Ceil(threads/lanes) * lanes
	}
	if started > 0 {
		o.Idle = 1 - o.Threads/started
	}
	o.Cores = min(1, max(1, o.Groups)/float64(max(1, e.Cores)))
	if _, measured := e.Kernels[e.g.Kernels[d.Kernel].Function]; !measured {
		o.Saves = max(0, (e.Work(d).Alone-e.Launch-e.Latency)*Seconds(1-o.Cores))
	}
	return o
}
