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
	"github.com/mlxc/mlxc/internal/testkit/onedispatch"
)

// Options say what Metal is to be like. The zero value is good.
type Options struct {
	// Device runs the kernels; nil: one of its own, with one worker.
	Device *softmetal.Device
	// MacOS is the version that Metal has, 14 or 15; 0 is 15.
	MacOS int
	// Seed chooses the order in which commands run that nothing orders. 0 is the order in which
	// they were committed, each as soon as it can run. With any other nothing runs before
	// somebody waits, so that as much as possible may change places; 1 takes the latest of all
	// that may run, others any, or two at the same time.
	Seed uint64
	// Late is the most time between the end of a command buffer and its completion.
	Late time.Duration
	// Patience is how long something may wait without any progress until that counts as a
	// deadlock, which is a failure; 0 is five seconds.
	Patience time.Duration
	// MaxThreads is that of a pipeline's threadgroups; 0 is 1024.
	MaxThreads int
	// MaxBuffer is the greatest length of a buffer, WorkingSet the recommended working set, in bytes.
	MaxBuffer, WorkingSet int64
	// Family is that of Apple's GPUs, 1 to 10; 0 is 7.
	Family int
	// SIMDWidth is what pipelines say of their kernels' simdgroups; 0 is 32, which they have.
	SIMDWidth int
	// ConstantAlign is what offsets of arguments in constant space are multiples of; 0 is 4.
	ConstantAlign int
	// Residency demands that what is reached through indirect command buffers is resident: declared
	// to the encoder, or in a residency set of the queue.
	Residency bool
	// SampleDispatches has counters sampled between dispatches too, as no Apple GPU does.
	SampleDispatches bool
	// Capture has captures possible, as MTL_CAPTURE_ENABLED=1 in the environment of C does at the time
	// when Metal is first asked for a device.
	Capture bool
	// MaxDispatches is how many dispatches a command buffer may have before it is ended as one that
	// keeps the screen waiting ([Interactivity]); 0: any number.
	MaxDispatches int
	// IndirectBarriers: a barrier inside an indirect command buffer orders what stands behind it too.
	// Whether it does is not known, so by default it orders its own command alone.
	IndirectBarriers bool
	// ColdPipelines: a command of an indirect command buffer does not run if no encoder has
	// dispatched its pipeline before.
	ColdPipelines bool
	// Range is how many commands of an indirect command buffer are executed by one message at most; 0 is
	// 16,384. Samples is how many samples a sample buffer has at most; 0 is 4,096. Reach is beyond all offsets
	// in indirect commands; 0 is 2^32. Tests have them lower, so that small graphs get there.
	Range, Samples, Reach int
	// Full: nobody may ask a queue for more command buffers than it holds, which would block a thread.
	Full bool
	// Lacks is what a device has not, though it should.
	Lacks Lack
	// Ignored is what orders nothing, though it should: a test of the device has to see that.
	Ignored Order
	// Faults are injected.
	Faults []Fault
}

// Order is what can order commands: a set.
type Order int

// What orders, as enum order has it.
const (
	Tracking Order = 1 << iota
	Fences
	Barriers
	Events
	SerialEncoders
	IndirectBarriers
)

// Lack is what a device may lack: a set.
type Lack int

// What a device may lack, as enum lack has it.
const (
	PartialChanges       Lack = 1 << iota // a command of an indirect command buffer that has run loses the rest when something of it is changed
	IndirectThreadgroups                  // such commands have no threadgroup memory
	ArchiveHits                           // no pipeline is found in an archive
	Times                                 // the first two samples of a sample buffer are 0
)

// Operation is what can fail.
type Operation int

// The operations, as enum operation has them.
const (
	Allocation    Operation = iota // of a buffer or an indirect command buffer: nil
	Compilation                    // of a library, or opening one: an error
	PipelineState                  // an error
	Queue                          // nil
	Event                          // a fence or an event: nil
	CommandBuffer                  // half of it runs, and it ends with an error
	Capture                        // an error
	Archive                        // an error
	ResidencySet                   // an error
	SampleBuffer                   // an error
)

// Codes of command buffer errors that have a meaning here.
const (
	// DeviceRemoved as a code has the device lost: everything after it fails.
	DeviceRemoved = 11
	// Interactivity ends what keeps the screen waiting. Headers have no code for it; the
	// error's text is what tells.
	Interactivity = 14
)

// Fault is an operation that fails.
type Fault struct {
	On   Operation
	Nth  int    // of these operations, counted from 1
	Code int    // of the error; 0: what Metal has for it
	Text string // of the error; "": what Metal says
}

// Compiled is a source that was compiled, with its options.
type Compiled struct {
	Source   string
	FastMath bool
	MathMode int  // −1: not set
	Precise  bool // the functions of numbers of 32 bits
	Language int  // 0: not set
}

// Metal is a device that a test has.
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
	*kernels
}

// SoftMetal opens software Metal for [Options.Device], also where tests are emulated.
func SoftMetal(o softmetal.Options) (*softmetal.Device, error) {
	o.Machine, o.Emulator = emulated()
	o.Module = module
	return softmetal.New(context.Background(), o)
}

var serving sync.Mutex // a process has one device

// Serve gives the library a device until the test ends. Then it waits for what is in flight; what
// leaks is a failure, and so is any that the test has not asked for ([Library.Failures]).
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
		{"range", o.Range}, {"samples", o.Samples}, {"reach", o.Reach}, {"full", flag(o.Full)}, {"lacks", int(o.Lacks)},
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

// Close takes the device away, once, when nothing is in flight any more.
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

// kept are classes of which a process has one object for ever, and those above others.
var kept = map[string]bool{"NSObject": true, "MTLResource": true, "MTLCommandEncoder": true, "NSProcessInfo": true, "MTLCaptureManager": true}

// SetSeed chooses another order for what is committed from now on ([Options.Seed]).
func (m *Metal) SetSeed(seed uint64) { m.library.seed(int(seed)) }

// SetIdle has command buffers complete, from now on, only when nothing is left that can run, or as soon as all
// of theirs has.
func (m *Metal) SetIdle(on bool) { m.library.idle(on) }

// Compiled are the sources that were compiled, in order.
func (m *Metal) Compiled() []Compiled {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Compiled(nil), m.compiled...)
}

// Ran are the names of the kernels that ran, in the order in which they did.
func (m *Metal) Ran() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.ran...)
}

// Requests, as enum request has them.
const (
	askAllocate = 1 + iota
	askFree
	askSource
	askOpen
	askFunction
	askPipeline
	askRun
)

// serve answers requests until the library closes its end.
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

// reader takes a request apart.
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

// writer makes an answer. Texts end with a zero.
type writer struct{ data []byte }

func (w *writer) u32(v uint32) { w.data = binary.LittleEndian.AppendUint32(w.data, v) }
func (w *writer) u64(v uint64) { w.data = binary.LittleEndian.AppendUint64(w.data, v) }
func (w *writer) text(s string) {
	w.u32(uint32(len(s) + 1))
	w.data = append(append(w.data, s...), 0)
}
