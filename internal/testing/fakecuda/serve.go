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
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// Options describe the GPU. The zero value is an H100.
type Options struct {
	// Device runs the kernels; it was opened by [SoftMetal]. nil: the GPU opens one for itself.
	Device *softmetal.Device
	// Name is the GPU's; "" is NVIDIA H100 stand-in.
	Name string
	// Major and Minor are its compute capability; 0 and 0 are 9.0.
	Major, Minor int
	// Memory is how many bytes it has; 0: a gigabyte.
	Memory int64
	// Seed chooses the order of work that streams and edges leave open. With 0 work runs as soon as it can, in the
	// order of its submission. With any other it runs when a caller waits for it: with 1 the latest of the ready
	// work first, with even ones that of the maximum weight, which is random, with odd ones also two kernels
	// concurrently.
	Seed uint64
	// Late is the maximum of a random delay before work begins.
	Late time.Duration
	// Faults are the failures to inject.
	Faults []Fault
	// Misheard has one call lost, repeated or changed.
	Misheard Misheard
	// Fits says, of a kernel whose image ends with a note, what is launched for a grid of threadgroups; nil: no image does.
	Fits func(k *air.Kernel, constants []ir.FunctionConstant, note []byte, groups [3]uint64) (grid [3]uint64, threads, shared uint32, err error)
}

func (o *Options) overlaps() bool { return o.Seed > 1 && o.Seed%2 == 1 }

// Fault is an injected failure of one call.
type Fault struct {
	// On is the symbol of the function, such as cuMemAlloc_v2, or [KernelRun]: the run of a kernel on the GPU, whose
	// failure callers see when they wait.
	On  string
	Nth int // of these calls, counted from 1
	// Code is the CUresult to return. If it means that the context is lost, all later calls return it too.
	Code uint32
}

// KernelRun is the run of a kernel, for [Fault].
const KernelRun = "kernel"

// Misheard is a call that is to reach the GPU other than it was made.
type Misheard struct {
	On  string // the function; "": nothing is misheard
	Nth int    // of its calls, counted from 1
	How How
	Arg int     // index of an argument
	By  uintptr // is added to that argument
}

// How says in which way a call is misheard.
type How uint8

// The ways in which a call is misheard.
const (
	Unheard How = iota // the call does nothing, and succeeds
	Twice
	Changed // By is added to an argument
)

// GPU is a stand-in GPU, and the state of its driver.
type GPU struct {
	options Options
	soft    *softmetal.Device
	own     bool
	close   sync.Once
	rng     *rand.Rand // chooses what runs next
	begun   time.Time

	mu        sync.Mutex
	changed   *sync.Cond
	failures  []string
	more      int // number of failures that were not kept
	said      []string
	calls     map[string]int
	ready     bool   // cuInit was called
	sticky    uint32 // the result of all calls, since the context was lost; 0: it was not
	contexts  map[uintptr]bool
	current   map[int]uintptr // current context of each thread
	retained  int
	context   uintptr // handle of the primary context; 0: it is not retained
	next      uintptr // the last handle
	objects   map[uintptr]any
	gone      map[uintptr]string // kinds of destroyed objects, by handle
	memory    deviceMemory
	pinned    pinnedMemory
	work      work
	runner    *runner
	pageable  int
	unordered int
	edges     Edges
}

var serving sync.Mutex // held while a GPU answers: a process has one at a time

// SoftMetal opens software Metal for [Options.Device].
func SoftMetal() (*softmetal.Device, error) {
	return softmetal.New(context.Background(), softmetal.Options{Workers: 1, Module: module})
}

// Serve has internal/cuda call a stand-in GPU until the test ends. Then pending work is run; leaks are failures, and
// the test fails by all failures that it has not fetched itself ([GPU.Failures]).
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

// Close runs what is pending, notes leaks and takes the GPU away; further calls do nothing.
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

// say keeps a message that by itself is no failure, for the log of a test that fails.
func (g *GPU) say(format string, args ...any) {
	if len(g.said) < 20 {
		g.said = append(g.said, fmt.Sprintf(format, args...))
	}
}

// Calls returns how often each function was called.
func (g *GPU) Calls() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.calls)
}

// Count returns how often a function was called.
func (g *GPU) Count(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[name]
}

// Pageable returns how many copies had pageable memory of the host's, that is memory that is not pinned.
func (g *GPU) Pageable() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pageable
}

// Unordered returns how many programmatic edges ordered nothing, as the kernel behind them does not wait.
func (g *GPU) Unordered() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unordered
}

// Edges counts the nodes and edges of all executable graphs that were made.
type Edges struct {
	Nodes              int // kernel nodes
	Full, Programmatic int // edges
	Forks              int // nodes that several others wait for
}

// Edges returns the counts for all executable graphs made so far.
func (g *GPU) Edges() Edges {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.edges
}

// Live returns how many objects have not been destroyed, by kind: memory, pinned memory, stream, event, module,
// graph, executable graph.
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

// leaks notes all objects that are left when the context ends.
func (g *GPU) leaks() {
	live := g.live()
	for _, kind := range slices.Sorted(maps.Keys(live)) {
		g.note("%d of %s leaked", live[kind], kind)
	}
}
