//go:build linux

package fakemetal

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/onedispatch"
)

// Options of the device that [Library.Serve] makes. The zero value is a GPU of a Mac with macOS 15.
type Options struct {
	// Device runs the kernels; nil: software Metal with one worker is opened.
	Device *softmetal.Device
	// MacOS is the version of the system, 13 to 15; 0 is 15.
	MacOS int
	// Seed chooses the order of commands that nothing orders. With 0 they run in the order in
	// which they were committed, each as soon as it can. With others nothing runs before
	// somebody waits, so that many orders are possible: 1 always runs the last of the commands
	// that are ready, other seeds a random one, or two at the same time.
	Seed uint64
	// Late is the max delay between the end of a command buffer and its completion.
	Late time.Duration
	// Patience is the time without progress after which a wait counts as a deadlock, which is a
	// failure; 0 is five seconds.
	Patience time.Duration
	// MaxThreads is maxTotalThreadsPerThreadgroup of pipelines; 0 is 1024.
	MaxThreads int
	// MaxBuffer is maxBufferLength, WorkingSet recommendedMaxWorkingSetSize, in bytes.
	MaxBuffer, WorkingSet int64
	// Family is the highest MTLGPUFamilyApple that the GPU supports, 1 to 10; 0 is 7.
	Family int
	// SIMDWidth is the threadExecutionWidth that pipelines report; 0 is 32, the true one.
	SIMDWidth int
	// ConstantAlign is the required alignment of offsets of constant arguments; 0 is 4 bytes.
	ConstantAlign int
	// Residency makes it a failure if an indirect command uses a buffer that is neither declared to the
	// encoder nor in a residency set of the queue.
	Residency bool
	// SampleDispatches allows to sample counters between dispatches, which no Apple GPU does.
	SampleDispatches bool
	// Capture allows captures, as does MTL_CAPTURE_ENABLED=1 in C's environment when Metal is first
	// asked for a device.
	Capture bool
	// MaxDispatches is the max number of dispatches of a command buffer: one with more fails as if it
	// had kept the screen from being drawn ([Interactivity]); 0: any number.
	MaxDispatches int
	// IndirectBarriers: setBarrier of an indirect command orders all later commands too. Whether real
	// GPUs do that is not known, so by default it orders only the command itself.
	IndirectBarriers bool
	// ColdPipelines: an indirect command does not run if no encoder has dispatched its pipeline
	// before.
	ColdPipelines bool
	// Limits that tests lower, so that small graphs exceed them. Range is the max number of indirect
	// commands that one message executes; 0 is 16,384. Samples is the max number of samples of a sample
	// buffer; 0 is 4,096. Reach is the first offset that is too large for indirect commands; 0 is 2^32.
	Range, Samples, Reach int
	// InOrder: command buffers of one queue complete in the order in which they were enqueued, so that who waits for the last one has
	// waited for all, which ggml relies on.
	InOrder bool
	// Anywhere: buffers without a copy may begin and end at any byte, which Metal's documents do not allow, and
	// Apple's drivers do. Only blits can use such ones here.
	Anywhere bool
	// Full: it is a failure, instead of a wait, to ask a full queue for one more command buffer.
	Full bool
	// Lacks is the set of features that the device lacks, though it should have them.
	Lacks Lack
	// Ignored is the set of orders that the device does not keep, though it should.
	Ignored Order
	// Faults are the operations that fail.
	Faults []Fault
}

// Order is a set of mechanisms that order commands.
type Order int

// The mechanisms, with the values of enum order in metal.h.
const (
	Tracking Order = 1 << iota
	Fences
	Barriers
	Events
	SerialEncoders
	IndirectBarriers
)

// Lack is a set of features that a device may lack.
type Lack int

// The features, with the values of enum lack in metal.h.
const (
	PartialChanges       Lack = 1 << iota // an indirect command that has run keeps its other state when a part is changed
	IndirectThreadgroups                  // indirect commands have threadgroup memory
	ArchiveHits                           // pipelines are found in archives
	Times                                 // the first two samples of a sample buffer are taken: without it they are 0
)

// Operation is a kind of operation that can fail.
type Operation int

// The operations, with the values of enum operation in metal.h, and how they fail.
const (
	Allocation    Operation = iota // of a buffer or an indirect command buffer: returns nil
	Compilation                    // of a library, or opening one: returns an error
	PipelineState                  // an error
	Queue                          // nil
	Event                          // making a fence or an event: nil
	CommandBuffer                  // some of it runs, half if the seed is 0, and it ends with an error
	Capture                        // an error
	Archive                        // an error
	ResidencySet                   // an error
	SampleBuffer                   // an error
)

// Codes of command buffer errors that the stand-in treats specially.
const (
	// DeviceRemoved makes the device lost: everything after it fails.
	DeviceRemoved = 11
	// Interactivity is the error of a command buffer that keeps the screen from being drawn. The
	// headers have no code for it; it is known by its text.
	Interactivity = 14
)

// Fault makes one operation fail.
type Fault struct {
	On   Operation
	Nth  int    // which operation of this kind, from 1
	Code int    // of the error; 0: a default
	Text string // of the error; "": Metal's text for the code
}

// Compiled is a source that was compiled, with its MTLCompileOptions.
type Compiled struct {
	Source   string
	FastMath bool
	MathMode int  // −1: not set
	Precise  bool // precise math functions of f32, not fast ones
	Language int  // 0: not set
}

// Metal is the device of a test.
type Metal struct {
	library *Library
	device  *softmetal.Device
	own     bool
	before  map[string]int
	cancel  context.CancelFunc
	served  chan struct{}
	close   sync.Once

	mu       sync.Mutex
	compiled []Compiled
	ran      []string
	remote   *remote // nil: the program is in this process
	*kernels
}

// SoftMetal opens software Metal for [Options.Device], under the emulator if the tests run in one.
func SoftMetal(o softmetal.Options) (*softmetal.Device, error) {
	o.Machine, o.Emulator = emulated()
	o.Trust = o.Trust || trusted()
	o.Module = module
	return softmetal.New(context.Background(), o)
}

var serving sync.Mutex // a process has one device at a time

// Serve gives the library a device until the test ends, or Close. Then it waits for command buffers in
// flight, and fails the test for leaks and for noted mistakes that the test has not taken by
// [Library.Failures].
func (l *Library) Serve(t testing.TB, o Options) *Metal {
	t.Helper()
	require.True(t, serving.TryLock(), "another test has the device")
	m := &Metal{library: l, device: o.Device, before: map[string]int{}, served: make(chan struct{})}
	if m.device == nil {
		d, err := SoftMetal(softmetal.Options{Workers: 1})
		if err != nil {
			serving.Unlock()
			require.NoError(t, err)
		}
		m.device, m.own = d, true
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	var err error
	if m.kernels, err = newKernels(ctx, m.device); err != nil {
		serving.Unlock()
		require.NoError(t, err)
	}
	l.reset()
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	for _, v := range []struct {
		name  string
		value int
	}{
		{"macos", o.MacOS}, {"late", int(o.Late / time.Microsecond)},
		{"patience", int(o.Patience / time.Millisecond)}, {"threads", o.MaxThreads}, {"buffer", int(o.MaxBuffer)},
		{"working set", int(o.WorkingSet)}, {"family", o.Family}, {"width", o.SIMDWidth}, {"constants", o.ConstantAlign}, {"residency", flag(o.Residency)},
		{"dispatches", flag(o.SampleDispatches)}, {"capture", flag(o.Capture)}, {"most", o.MaxDispatches},
		{"walls", flag(o.IndirectBarriers)}, {"cold", flag(o.ColdPipelines)}, {"ignored", int(o.Ignored)},
		{"range", o.Range}, {"samples", o.Samples}, {"reach", o.Reach}, {"full", flag(o.Full)}, {"lacks", int(o.Lacks)}, {"anywhere", flag(o.Anywhere)}, {"in order", flag(o.InOrder)},
	} {
		if v.value != 0 {
			require.True(t, l.option(v.name, v.value), v.name)
		}
	}
	l.seed(int(o.Seed))
	for _, f := range o.Faults {
		require.True(t, l.inject(int(f.On), f.Nth, f.Code, f.Text), "%+v", f)
	}
	for _, c := range l.classes() {
		m.before[c] = l.live(c)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	go m.serve(ctx, os.NewFile(uintptr(ends[0]), "fakemetal"))
	l.connect(ends[1])
	t.Cleanup(func() {
		m.Close()
		assert.Empty(t, l.Failures())
	})
	return m
}

// Close waits until nothing is in flight and removes the device; later calls do nothing.
func (m *Metal) Close() {
	m.close.Do(func() {
		l := m.library
		if n := l.disconnect(); n > 0 {
			l.note(fmt.Sprintf("%d command buffers never completed", n))
		}
		<-m.served
		m.cancel()
		m.kernels.close()
		if m.own {
			if err := m.device.Close(); err != nil {
				l.note(err.Error())
			}
		}
		for _, c := range l.classes() {
			if n := l.live(c) - m.before[c]; n > 0 && !kept[c] {
				l.note(fmt.Sprintf("%d %s leak", n, c))
			}
		}
		serving.Unlock()
	})
}

// kept are the classes that are not checked for leaks: singletons, and superclasses of classes that are checked.
var kept = map[string]bool{"NSObject": true, "MTLResource": true, "MTLCommandEncoder": true, "NSProcessInfo": true, "MTLCaptureManager": true}

// SetSeed sets [Options.Seed] for what is committed from now on.
func (m *Metal) SetSeed(seed uint64) { m.library.seed(int(seed)) }

// SetIdle sets whether command buffers complete only when nothing else is left to run, or, as by default,
// when all their own commands have run.
func (m *Metal) SetIdle(on bool) { m.library.idle(on) }

// Compiled returns the sources that were compiled, in order.
func (m *Metal) Compiled() []Compiled {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Compiled(nil), m.compiled...)
}

// Ran returns the names of the kernels that ran, in order.
func (m *Metal) Ran() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.ran...)
}

// The requests of the C half, with the values of enum request in metal.h.
const (
	askAllocate = 1 + iota
	askFree
	askSource
	askOpen
	askFunction
	askPipeline
	askRun
)

// serve answers requests of the C half until it closes its end of the socket.
func (m *Metal) serve(ctx context.Context, f *os.File) {
	defer close(m.served)
	defer f.Close()
	var head [8]byte
	in := bufio.NewReader(f)
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		r := &reader{data: make([]byte, binary.LittleEndian.Uint32(head[4:]))}
		if _, err := io.ReadFull(in, r.data); err != nil {
			return
		}
		var w writer
		status := uint32(0)
		if err := m.answer(ctx, binary.LittleEndian.Uint32(head[:]), r, &w); err != nil {
			status, w.data = 1, []byte(err.Error())
			if _, ok := err.(*onedispatch.RanWrong); ok {
				status = 2
			}
		}
		binary.LittleEndian.PutUint32(head[:], status)
		binary.LittleEndian.PutUint32(head[4:], uint32(len(w.data)))
		if _, err := f.Write(append(head[:], w.data...)); err != nil {
			return
		}
	}
}

func (m *Metal) answer(ctx context.Context, op uint32, r *reader, w *writer) error {
	switch op {
	case askAllocate:
		if m.remote != nil {
			return m.remote.allocate(m.kernels, int64(r.u64()), w)
		}
		return m.allocate(int64(r.u64()), w)
	case askFree:
		return m.free(r.u64())
	case askSource:
		c := Compiled{FastMath: r.u32() != 0, MathMode: int(int32(r.u32())), Precise: r.u32() != 0, Language: int(r.u32())}
		c.Source = r.text()
		m.mu.Lock()
		m.compiled = append(m.compiled, c)
		m.mu.Unlock()
		return m.source(ctx, c.Source, w)
	case askOpen:
		return m.open(r.text(), w)
	case askFunction:
		return m.function(r.u32(), r.text(), w)
	case askPipeline:
		return m.pipeline(ctx, r, w)
	case askRun:
		if m.remote != nil {
			m.remote.copies(m.kernels, false)
			defer m.remote.copies(m.kernels, true)
		}
		name, err := m.run(ctx, r)
		if err == nil {
			m.mu.Lock()
			m.ran = append(m.ran, name)
			m.mu.Unlock()
		}
		return err
	}
	return fmt.Errorf("request %d is not known", op)
}

// reader parses the contents of a request.
type reader struct{ data []byte }

func (r *reader) u32() uint32 {
	v := binary.LittleEndian.Uint32(r.data)
	r.data = r.data[4:]
	return v
}

func (r *reader) u64() uint64 {
	v := binary.LittleEndian.Uint64(r.data)
	r.data = r.data[8:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.u32()
	v := r.data[:n:n]
	r.data = r.data[n:]
	return v
}

func (r *reader) text() string { return string(r.bytes()) }

// writer makes the contents of an answer. Texts end with a zero byte, which their length counts.
type writer struct{ data []byte }

func (w *writer) u32(v uint32) { w.data = binary.LittleEndian.AppendUint32(w.data, v) }
func (w *writer) u64(v uint64) { w.data = binary.LittleEndian.AppendUint64(w.data, v) }
func (w *writer) text(s string) {
	w.u32(uint32(len(s) + 1))
	w.data = append(append(w.data, s...), 0)
}
