package cost

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Fit makes a model of measured times. Each kernel gets the line of time over bytes that fits its runs best, and the times of the sizes that were measured where
// that line is wrong.
// Everything that was not measured is taken from the base model.
type Fit struct {
	base    Model
	kernels map[string]*line
	// gaps is the total time that replays of commands in series took beyond their commands; barriers counts the
	// barriers in them.
	gaps     Seconds
	barriers int
	encode   Seconds
	commands int
}

// line holds the sums for a linear fit over points: x is bytes, y seconds, z operations. A point has the weight
// 1/y², so that the fit has about the same relative error for small and large runs.
type line struct {
	n, x, y, z     float64
	w, wx, wxx, wy float64 // sums of weights, and of weights times powers of x, and y
	wxy            float64
	sizes          []line // n, x and y of runs that moved about the same bytes, no more than mostSizes and one
}

// Runs move about the same bytes if these differ by less than alike. A kernel with more than mostSizes sizes has a line only.
const (
	alike     = 0.02
	mostSizes = 16
	// wrong is by how much of a time a line may be wrong before a profile has points.
	wrong = 0.03
)

// NewFit begins with a base model; the zero value stands for that of the default chip.
func NewFit(base Model) *Fit { return &Fit{base: base.OrDefault(), kernels: map[string]*line{}} }

// Run adds one run of a kernel function: its work ([Estimator.Work] at the params that it
// ran with) and the time that it took.
func (f *Fit) Run(function string, w Work, took Seconds) {
	l := f.kernels[function]
	if l == nil {
		l = &line{}
		f.kernels[function] = l
	}
	x, y := w.Bytes, float64(took)
	l.n, l.x, l.y, l.z = l.n+1, l.x+x, l.y+y, l.z+w.Operations
	l.size(x, y)
	weight := 1 / (max(y, shortest) * max(y, shortest))
	l.w, l.wx, l.wxx, l.wy, l.wxy = l.w+weight, l.wx+weight*x, l.wxx+weight*x*x, l.wy+weight*y, l.wxy+weight*x*y
}

// size adds a run to those that moved about as many bytes.
func (l *line) size(x, y float64) {
	for i := range l.sizes {
		if s := &l.sizes[i]; math.Abs(x*s.n-s.x) <= alike*s.x {
			s.n, s.x, s.y = s.n+1, s.x+x, s.y+y
			return
		}
	}
	if len(l.sizes) <= mostSizes {
		l.sizes = append(l.sizes, line{n: 1, x: x, y: y})
	}
}

// points are the times of the sizes, if a line is wrong for one of them.
func (l *line) points(k Kernel) (out []Point) {
	if len(l.sizes) < 2 || len(l.sizes) > mostSizes {
		return nil
	}
	off := false
	for _, s := range l.sizes {
		p := Point{s.x / s.n, Seconds(s.y / s.n)}
		out = append(out, p)
		off = off || math.Abs(float64(k.At(p.Bytes)-p.Time)) > wrong*float64(p.Time)
	}
	if !off {
		return nil
	}
	slices.SortFunc(out, func(a, b Point) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return out
}

// Replay adds one replay of commands in series: the time that it took beyond the runs of its commands, its number of
// barriers, and the host's time for encoding the given number of commands.
func (f *Fit) Replay(beside Seconds, barriers int, encode Seconds, commands int) {
	f.gaps += max(0, beside)
	f.barriers += barriers
	f.encode += encode
	f.commands += commands
}

// shortest is the time in seconds to which shorter runs are rounded up, because clocks are no finer.
const shortest = 1e-8

// slowest is the lowest rate, in bytes or operations a second, that a profile may have.
const slowest = 1e6

// Model returns the model. Its launch is the lowest mean time of any kernel. Its bandwidth is what the kernel
// that moved the most bytes attained, and its rate what the kernel with the most operations attained, because
// a device spends its time on those. Its latency, which stands for kernels that were not measured, is the
// median over the measured kernels of the fixed part beyond a launch.
func (f *Fit) Model() Model {
	m := f.base
	m.Kernels = make(map[string]Kernel, len(f.kernels))
	moved, computed, least := line{}, line{}, 0.0
	var fixed []Seconds
	names := slices.Sorted(maps.Keys(f.kernels))
	for _, name := range names {
		l := f.kernels[name]
		if l.y <= 0 {
			continue
		}
		if mean := l.y / l.n; least == 0 || mean < least {
			least = mean
		}
		if l.x > moved.x {
			moved = *l
		}
		if l.z > computed.z {
			computed = *l
		}
	}
	if moved.x > 0 {
		m.Bandwidth = max(moved.x/moved.y, slowest)
	}
	if computed.z > 0 {
		m.Rate = max(computed.z/computed.y, slowest)
	}
	for _, name := range names {
		l := f.kernels[name]
		m.Kernels[name] = l.fit(float64(f.base.Launch), 1/m.Bandwidth)
		if l.y > 0 {
			fixed = append(fixed, m.Kernels[name].Fixed)
		}
	}
	if least > 0 {
		m.Launch = Seconds(least)
		m.ConcurrentLaunch = min(m.ConcurrentLaunch, m.Launch)
		slices.Sort(fixed)
		m.Latency = max(0, fixed[(len(fixed)-1)/2]-m.Launch)
	}
	if f.barriers > 0 {
		m.Barrier = f.gaps / Seconds(f.barriers)
	}
	if f.commands > 0 && f.encode > 0 {
		m.Encode = f.encode / Seconds(f.commands)
	}
	return m
}

// fit returns the line of least squares of relative errors, constrained to be nowhere below 0. Runs of one size
// do not tell which part of their time is fixed: then the bytes are taken to move at the attained bandwidth,
// or faster if the fixed part would be less than a launch.
func (l *line) fit(launch, perByte float64) Kernel {
	x, y := l.wx/l.w, l.wy/l.w
	slope := 0.0
	switch spread := l.wxx/l.w - x*x; {
	case x == 0:
	case spread > 1e-6*x*x:
		slope = (l.wxy/l.w - x*y) / spread
	default:
		slope = min((y-launch)/x, perByte)
	}
	slope = max(0, slope)
	fixed := y - slope*x
	if fixed < 0 { // then the best line through the origin
		fixed, slope = 0, l.wxy/l.wxx
	}
	k := Kernel{Fixed: Seconds(fixed), PerByte: Seconds(slope)}
	k.Points = l.points(k)
	return k
}
