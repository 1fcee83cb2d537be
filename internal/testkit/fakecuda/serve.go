//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/cuda"
)

// Options say what the GPU is to be like. The zero value is good: an H100.
type Options struct {
	// Device runs the kernels, one of [SoftMetal]; nil: one of its own.
	Device *softmetal.Device
	// Name is the GPU's; "" is NVIDIA H100 stand-in.
	Name string
	// Major and Minor are its compute capability; 0 and 0 are 9.0.
	Major, Minor int
	// Memory is how many bytes it has; 0: a gigabyte.
	Memory int64
	// Seed chooses the order in which work is done that nothing orders. With 0 it is done in the order
	// in which it came, as soon as it can be. With any other it is done when somebody waits for it: with 1
	// the latest of what may run, with even ones by a random weight that each piece of work has, with odd
	// ones also two kernels at the same time.
	Seed uint64
	// Late is the most time between when work could begin and when it does.
	Late time.Duration
	// Faults are injected.
	Faults []Fault
	// Misheard has a call arrive otherwise than it was made.
	Misheard Misheard
}

func (o *Options) overlaps() bool { return o.Seed > 1 && o.Seed%2 == 1 }

// Fault is a call that fails.
type Fault struct {
	// On is the name of the function, as it is looked up; [KernelRun] is the run of a kernel on the GPU, which
	// others learn of when they wait.
	On  string
	Nth int // of these calls, counted from 1
	// Code is what it returns. One that has the context lost is what everything returns from then on.
	Code uint32
}

// KernelRun is the run of a kernel, for [Fault].
const KernelRun = "kernel"

// Misheard is a call that arrives otherwise than it was made.
type Misheard struct {
	On  string // the function; "": nothing is misheard
	Nth int    // of its calls, counted from 1
	How How
	Arg int     // the argument of By
	By  uintptr // is added to it
}

// How a call is misheard.
type How uint8

// The ways.
const (
	Unheard How = iota // the call does nothing, and succeeds
	Twice
	Changed // an argument is another
)

// GPU is what a test has.
type GPU struct {
	options Options
	soft    *softmetal.Device
	own     bool
	close   sync.Once
	rng     *rand.Rand // of what runs
	begun   time.Time

	mu        sync.Mutex
	changed   *sync.Cond
	failures  []string
	more      int // failures that are not kept
	said      []string
	calls     map[string]int
	ready     bool   // cuInit was called
	sticky    uint32 // what everything returns; 0: nothing was lost
	contexts  map[uintptr]bool
	current   map[int]uintptr // by thread
	retained  int
	context   uintptr // of the GPU; 0: it is not retained
	next      uintptr // handle
	objects   map[uintptr]any
	gone      map[uintptr]string // what handles were that have been destroyed
	memory    deviceMemory
	pinned    pinnedMemory
	work      work
	runner    *runner
	pageable  int
	unordered int
	edges     Edges
}

var serving sync.Mutex // a process has one GPU

// SoftMetal opens software Metal for [Options.Device].
func SoftMetal() (*softmetal.Device, error) {
	return softmetal.New(context.Background(), softmetal.Options{Workers: 1, Module: module})
}

// Serve has the functions of a GPU called until the test ends. Then it waits for what is in flight; what
// leaks is a failure, and so is any that the test has not asked for ([GPU.Failures]).
func Serve(t testing.TB, o Options) *GPU {
	t.Helper()
	require.True(t, serving.TryLock(), "another test has the GPU")
	if o.Name == "" {
		o.Name = "NVIDIA H100 stand-in"
	}
	if o.Major == 0 {
		o.Major = 9
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	g := &GPU{
		options: o, soft: o.Device, rng: rand.New(rand.NewPCG(o.Seed, 1)), begun: time.Now(), calls: map[string]int{}, contexts: map[uintptr]bool{},
		current: map[int]uintptr{}, next: 0x10000, objects: map[uintptr]any{}, gone: map[uintptr]string{},
	}
	g.changed = sync.NewCond(&g.mu)
	g.work.ended = make(chan struct{})
	err := g.open()
	if err != nil {
		serving.Unlock()
		require.NoError(t, err)
	}
	go g.run()
	answering.Store(g)
	cuda.Use(address)
	t.Cleanup(func() {
		g.Close()
		assert.Empty(t, g.Failures())
		if t.Failed() {
			for _, s := range g.said {
				t.Log("the GPU says: " + s)
			}
		}
	})
	return g
}

func (g *GPU) open() (err error) {
	if g.soft == nil {
		if g.soft, err = SoftMetal(); err != nil {
			return err
		}
		g.own = true
	}
	if g.runner, err = newRunner(g.soft); err != nil {
		return err
	}
	if err = g.memory.open(); err == nil {
		err = g.pinned.open()
	}
	return err
}

// Close takes the GPU away, once, when nothing is in flight any more.
func (g *GPU) Close() {
	g.close.Do(func() {
		g.finish()
		g.mu.Lock()
		if g.retained > 0 {
			g.note("the primary context was retained %d times more often than released", g.retained)
			g.destroyContext()
		}
		g.mu.Unlock()
		cuda.Use(nil)
		answering.Store(nil)
		g.runner.close()
		g.memory.close()
		g.pinned.close()
		if g.own {
			_ = g.soft.Close()
		}
		serving.Unlock()
	})
}

// Failures returns what its caller did wrong since it was last asked, in order.
func (g *GPU) Failures() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.failures
	if g.more > 0 {
		out = append(out, fmt.Sprintf("and %d more", g.more))
	}
	g.failures, g.more = nil, 0
	return out
}

// note keeps what the caller did wrong. g.mu is held.
func (g *GPU) note(format string, args ...any) {
	if len(g.failures) == 20 {
		g.more++
		return
	}
	g.failures = append(g.failures, fmt.Sprintf(format, args...))
}

// say keeps what is no failure of the caller's by itself, for the log of a test that fails.
func (g *GPU) say(format string, args ...any) {
	if len(g.said) < 20 {
		g.said = append(g.said, fmt.Sprintf(format, args...))
	}
}

// Calls are how often each function was called.
func (g *GPU) Calls() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.calls)
}

// Count is how often a function was called.
func (g *GPU) Count(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[name]
}

// Pageable is how many copies had memory of the host's that the GPU cannot reach by itself.
func (g *GPU) Pageable() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pageable
}

// Unordered is how many kernels have run behind programmatic edges without waiting.
func (g *GPU) Unordered() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unordered
}

// Edges are what executable graphs were made with, all of them together.
type Edges struct {
	Nodes              int // that are kernels
	Full, Programmatic int // edges
	Forks              int // nodes that several others wait for
}

// Edges returns those of the executable graphs so far.
func (g *GPU) Edges() Edges {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.edges
}

// Live is how many objects there are, by kind: memory, pinned memory, stream, event, module, graph,
// executable graph.
func (g *GPU) Live() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.live()
}

func (g *GPU) live() map[string]int {
	out := map[string]int{}
	for _, o := range g.objects {
		switch o := o.(type) {
		case *function, *node: // they end with their module, or graph
		default:
			out[kindOf(o)]++
		}
	}
	if n := len(g.memory.list); n > 0 {
		out["memory"] = n
	}
	if n := len(g.pinned.list); n > 0 {
		out["pinned memory"] = n
	}
	return out
}

// leaks notes what there is when nothing may be.
func (g *GPU) leaks() {
	live := g.live()
	for _, kind := range slices.Sorted(maps.Keys(live)) {
		g.note("%d of %s leaked", live[kind], kind)
	}
}
