package cost

import (
	"maps"
	"slices"
)

// Fit makes a model of measured times. Each kernel gets the line of time over bytes that
// fits its runs best; what was not measured stays that of the model it begins with.
type Fit struct {
	base    Model
	kernels map[string]*line
	// What replays took beside their commands, which ran one after another, and the
	// barriers in them.
	gaps     Seconds
	barriers int
	encode   Seconds
	commands int
}

// line sums points: x is bytes, y seconds, z operations. What a line is fitted to is weighted by 1/y², so that
// it misses small and large runs by about the same share of them.
type line struct {
	n, x, y, z     float64
	w, wx, wxx, wy float64 // sums of weights, and of weights times powers of x, and y
	wxy            float64
}

// NewFit begins with a model, the zero value being the default chip's.
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
	weight := 1 / (max(y, shortest) * max(y, shortest))
	l.w, l.wx, l.wxx, l.wy, l.wxy = l.w+weight, l.wx+weight*x, l.wxx+weight*x*x, l.wy+weight*y, l.wxy+weight*x*y
}

// Replay adds one replay of commands that ran one after another: what it took beside the
// runs of its commands, how many barriers it had, and what the host took to encode how
// many commands.
func (f *Fit) Replay(beside Seconds, barriers int, encode Seconds, commands int) {
	f.gaps += max(0, beside)
	f.barriers += barriers
	f.encode += encode
	f.commands += commands
}

// shortest is the time of a run below which it does not count more: clocks tell no less.
const shortest = 1e-8

// slowest is the least that a profile may say of bytes or operations a second.
const slowest = 1e6

// Model returns the model. Its launch is the least mean time of a kernel; its bandwidth is
// what the kernel attained that moved most of all, its rate what the one did that computed
// most: those that a device spends its time on. Its latency, which a kernel that was not measured is taken
// to have, is the median of what the fixed parts of the measured ones are beyond a launch.
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

// fit is the line of least squares of relative errors that is nowhere below 0. Runs of one size do not say
// what of their time is fixed: all but what the bytes take at the bandwidth that was attained, and no less
// than a launch.
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
	if fixed < 0 { // through the origin
		fixed, slope = 0, l.wxy/l.wxx
	}
	return Kernel{Fixed: Seconds(fixed), PerByte: Seconds(slope)}
}
