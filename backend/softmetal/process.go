//go:build unix

package softmetal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process manages the executor, a child process: it starts the program when it is needed, and again after a kernel
// has ended it. host/main.c is the other end.
type process struct {
	line    []string // the command line
	plain   bool     // it runs in an emulator, for tests, and is not confined
	memory  *sharedMemory
	workers int
	work    time.Duration // maximum processor time of a request; 0: no limit
	look    time.Duration // time between looks at a pending request (hang.go)
	control []byte        // the control page: the flag to stop, and the command that runs

	mu      sync.Mutex // one request at a time
	spawn   func(theirs *os.File) (runner, error)
	runner  runner // nil: the executor does not run
	channel *channel
	ended   chan struct{} // closed when it has ended
	limits  limits
	caught  atomic.Pointer[string]
	busy    atomic.Int64 // when the pending request began, in nanoseconds since 1970; 0: there is none
	free    string       // why it is not confined; "" if it is
	buffers map[uint64]*buffer
	objects []object // by kernel number
	closed  bool
}

// runner is a started executor. Tests have others than program.
type runner interface {
	Pid() int
	Kill()
	// Idle returns how much its threads have run, in some unit, and whether all of them sleep; false if that is
	// unknown.
	Idle() (ran int64, asleep bool)
	// Wait waits until it has ended; then How says how.
	Wait()
	How() string
}

// program is an executor that runs as a child process.
type program struct {
	*exec.Cmd
	work time.Duration
}

func (p program) Pid() int                       { return p.Process.Pid }
func (p program) Kill()                          { _ = p.Process.Kill() }
func (p program) Idle() (ran int64, asleep bool) { return threads(p.Process.Pid) }
func (p program) Wait()                          { _ = p.Cmd.Wait() }
func (p program) How() string                    { return p.ProcessState.String() + becauseOf(p.ProcessState, p.work) }

// object is the code of a kernel.
type object struct {
	name string
	code func(context.Context) ([]byte, error) // returns the shared object, compiling it unless the cache has it
	// foreign says that the code comes from a file, so it runs only where it is confined or trusted.
	foreign bool
}

// killAfter is how long the executor may take to stop before it is killed.
const killAfter = 2 * time.Second

func newProcess(on machine, program string, memory *sharedMemory, o *Options, workers int) (*process, error) {
	control, err := unix.Mmap(int(memory.file.Fd()), 0, int(memory.page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	p := &process{line: append(slices.Clone(on.emulator), program), plain: len(on.emulator) > 0, memory: memory, workers: workers, work: o.Work, look: lookAfter, control: control, buffers: map[uint64]*buffer{}}
	p.spawn = p.program
	return p, nil
}

// stopFlag returns the flag that the executor reads between threadgroups.
func (p *process) stopFlag() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(p.control)))
}

// running returns the index of the batch's command that the executor says it runs.
func (p *process) running() uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&p.control[4])))
}

// start starts the executor if it does not run, and gives it all buffers and kernels.
func (p *process) start(ctx context.Context) (err error) {
	if p.closed {
		return errors.New("softmetal: the device is closed")
	}
	if p.runner != nil {
		select {
		case <-p.ended: // killed from outside, while no request was pending
			p.gone()
		default:
			return nil
		}
	}
	mine, theirs, err := newChannel()
	if err != nil {
		return fmt.Errorf("softmetal: %w", err)
	}
	r, err := p.spawn(theirs)
	if err = errors.Join(err, theirs.Close()); err != nil {
		return errors.Join(fmt.Errorf("softmetal: the executor: %w", err), mine.conn.Close())
	}
	p.runner, p.channel, p.ended, p.limits = r, mine, make(chan struct{}), limits{pid: r.Pid()}
	p.caught.Store(nil)
	go func(ended chan struct{}) {
		r.Wait()
		close(ended)
	}(p.ended)
	go p.watch(mine, r, p.ended)
	defer func() {
		if err != nil && p.runner != nil {
			p.gone() // without one of its kernels the numbers of others would be wrong
		}
	}()
	confine := uint32(1)
	if p.plain {
		confine = 0
	}
	request := binary.LittleEndian.AppendUint32(nil, uint32(max(0, p.workers-1)))
	why, err := p.request(requestStart, binary.LittleEndian.AppendUint32(request, confine), nil, maxMessage)
	if err != nil {
		return err
	}
	p.free = printable(why)
	if err := p.limits.begin(p.plain); err != nil {
		p.free = err.Error()
	}
	for _, b := range p.buffers {
		if _, err := p.request(requestMap, b.description(), nil, 0); err != nil {
			return err
		}
	}
	for i := range p.objects {
		if _, err := p.send(ctx, &p.objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// program starts the executable with its end of the channel and the shared memory, without variables, and without
// other descriptors of this process. If it is confined, it makes namespaces of its own when it begins (apart in
// host/cage.c): for a child in a new user namespace Go copies this whole process's tables of pages, a tenth of a second.
func (p *process) program(theirs *os.File) (runner, error) {
	for wait := time.Millisecond; ; wait *= 2 {
		cmd := exec.Command(p.line[0], p.line[1:]...)
		cmd.ExtraFiles = []*os.File{theirs, p.memory.file}
		if !p.plain {
			cmd.Env, cmd.Dir = []string{}, "/"
			cmd.Args = append(cmd.Args, "apart")
		}
		err := cmd.Start()
		switch {
		case err == nil:
			return program{cmd, p.work}, nil
		case errors.Is(err, unix.ETXTBSY) && wait <= time.Second:
			// A child that this process has just forked may still hold the new executable open for writing.
			time.Sleep(wait)
		default:
			return nil, err
		}
	}
}

// died is the error of a request during which the executor has ended.
type died struct{ message string }

func (e *died) Error() string { return "softmetal: " + e.message }

// request sends a request and returns the payload of the answer, which has at most most bytes. p.mu is held.
func (p *process) request(op uint32, payload []byte, file *os.File, most int) ([]byte, error) {
	p.busy.Store(time.Now().UnixNano())
	err := p.channel.send(op, payload, file)
	var status uint32
	var data []byte
	if err != nil {
		err = errLost
	} else {
		status, data, err = p.channel.receive(most)
	}
	p.busy.Store(0)
	if err != nil {
		how := p.gone()
		if why := p.caught.Load(); why != nil {
			return nil, &died{*why}
		}
		return nil, &died{err.Error() + ": " + how}
	}
	switch status {
	case answerWell:
		return data, nil
	case answerWrong:
		return nil, errors.New("softmetal: " + printable(data))
	}
	p.gone()
	return nil, &died{printable(data)}
}

// unbelievable ends an executor that has given an impossible answer, and returns the error.
func (p *process) unbelievable(format string, args ...any) error {
	p.gone()
	return &died{fmt.Sprintf("%v: %s", errBelief, fmt.Sprintf(format, args...))}
}

// gone waits for an executor to end after its channel is closed, or kills it, and returns how it ended.
func (p *process) gone() string {
	_ = p.channel.conn.Close() // an executor that still writes must not wait for ever
	select {
	case <-p.ended:
	case <-time.After(time.Second): // it had the time to end by itself
		p.runner.Kill()
		<-p.ended
	}
	how := p.runner.How()
	p.runner = nil
	return how
}

func (b *buffer) description() []byte {
	out := binary.LittleEndian.AppendUint64(nil, b.id)
	out = binary.LittleEndian.AppendUint64(out, uint64(b.at))
	out = binary.LittleEndian.AppendUint64(out, uint64(b.size))
	return binary.LittleEndian.AppendUint32(out, 0)
}

// mapBuffer makes a buffer known to the executor.
func (p *process) mapBuffer(b *buffer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffers[b.id] = b
	if p.runner == nil {
		return nil // start will map it
	}
	_, err := p.request(requestMap, b.description(), nil, 0)
	return p.unlessDead(err)
}

func (p *process) unmapBuffer(b *buffer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buffers[b.id] != b {
		return nil
	}
	delete(p.buffers, b.id)
	if p.runner == nil {
		return nil
	}
	_, err := p.request(requestUnmap, binary.LittleEndian.AppendUint64(nil, b.id), nil, 0)
	return p.unlessDead(err)
}

// unlessDead returns err, or nil if err says that the executor has ended: the next one gets all buffers when it
// starts.
func (p *process) unlessDead(err error) error {
	if d := (*died)(nil); errors.As(err, &d) {
		return nil
	}
	return err
}

// loaded is the answer of the executor to a request to load a kernel.
type loaded struct {
	number uint32
	frame  uint64 // bytes of a thread's coroutine frame
}

// load loads the code of a kernel into the executor.
func (p *process) load(ctx context.Context, o object) (loaded, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.start(ctx); err != nil {
		return loaded{}, err
	}
	l, err := p.send(ctx, &o)
	if p.unlessDead(err) == nil && err != nil && p.caught.Load() == nil { // it had ended before this request, since loading never ends it
		if err = p.start(ctx); err == nil {
			l, err = p.send(ctx, &o)
		}
	}
	if err != nil {
		return loaded{}, err
	}
	if int(l.number) != len(p.objects) {
		return loaded{}, p.unbelievable("it has loaded kernel %d for %d", l.number, len(p.objects))
	}
	p.objects = append(p.objects, o)
	return l, nil
}

// errFree is the error for kernels of files where the executor is not confined.
type errFree struct{ why string }

func (e *errFree) Error() string {
	return fmt.Sprintf("softmetal: the kernel is of a file, and its code cannot be confined here (%s): run it as a program that you trust with --trust-kernels (Options.Trust)", e.why)
}

// send sends the code of a kernel to the running executor.
func (p *process) send(ctx context.Context, o *object) (l loaded, err error) {
	if o.foreign && p.free != "" {
		return l, &errFree{p.free}
	}
	object, err := o.code(ctx)
	if err != nil {
		return l, err
	}
	what, file, err := code(object)
	if err != nil {
		return l, fmt.Errorf("softmetal: the code of %s: %w", o.name, err)
	}
	defer func() { err = errors.Join(err, drop(file)) }()
	payload := append(binary.LittleEndian.AppendUint32(nil, uint32(len(o.name))), o.name...)
	if err := p.limits.set(p.memory, p.work); err != nil { // loading calls the kernel once, to learn the size of its coroutine frame
		return l, err
	}
	answer, err := p.request(requestLoad, append(payload, what...), file, 16)
	if err != nil {
		return l, err
	}
	if len(answer) != 16 || binary.LittleEndian.Uint64(answer) > 1<<31 {
		return l, p.unbelievable("what it says of a kernel has %d bytes", len(answer))
	}
	return loaded{uint32(binary.LittleEndian.Uint64(answer)), binary.LittleEndian.Uint64(answer[8:])}, nil
}

// commandTime is when a command began and ended.
type commandTime struct{ begin, end time.Time }

// run runs a batch; with timed it returns the times of its commands. If ctx ends, it stops the executor between two
// threadgroups, or kills it, and returns the context's cause.
func (p *process) run(ctx context.Context, b *batch, timed bool) ([]commandTime, error) {
	flag, most := uint32(0), 32
	if timed {
		flag, most = 1, 32+16*b.count
	}
	binary.LittleEndian.PutUint32(b.data, uint32(b.count))
	binary.LittleEndian.PutUint32(b.data[4:], flag)
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	answer, now, err := p.cancellable(ctx, requestRun, b.data, most)
	if d := (*died)(nil); errors.As(err, &d) && !strings.HasPrefix(d.message, "command ") {
		err = &died{fmt.Sprintf("command %d: %s", p.running(), d.message)}
	}
	if err != nil {
		return nil, err
	}
	if len(answer) < 32 {
		return nil, p.unbelievable("%d bytes say what has run", len(answer))
	}
	done, stopped := binary.LittleEndian.Uint64(answer), binary.LittleEndian.Uint64(answer[8:]) != 0
	switch {
	case done > uint64(b.count) || done < uint64(b.count) && ctx.Err() == nil:
		return nil, p.unbelievable("it has run %d of %d commands", done, b.count)
	case done < uint64(b.count) || stopped && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !timed:
		return nil, nil
	case len(answer) != most:
		return nil, p.unbelievable("the times of %d commands have %d bytes", b.count, len(answer))
	}
	clock := binary.LittleEndian.Uint64(answer[16:])
	at := func(i int) time.Time {
		t := now.Add(-time.Duration(clock - binary.LittleEndian.Uint64(answer[32+8*i:])))
		if t.Before(began) || t.After(now) { // the executor's claims are not trusted
			t = now
		}
		return t
	}
	times := make([]commandTime, b.count)
	for i := range times {
		times[i] = commandTime{at(2 * i), at(2*i + 1)}
		if times[i].end.Before(times[i].begin) {
			times[i].end = times[i].begin
		}
	}
	return times, nil
}

// check runs one dispatch under the checker, cancellable as in run, and returns the encoded findings.
func (p *process) check(ctx context.Context, request []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, _, err := p.cancellable(ctx, requestCheck, request, 16+maxFindings*findingBytes)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && (len(answer) < 16 || (len(answer)-16)%findingBytes != 0) {
		err = p.unbelievable("the findings have %d bytes", len(answer))
	}
	return answer, err
}

// cancellable sends a request that runs kernels. It returns the answer and when that came. p.mu is held.
func (p *process) cancellable(ctx context.Context, op uint32, payload []byte, most int) ([]byte, time.Time, error) {
	if err := p.start(ctx); err != nil {
		return nil, time.Time{}, err
	}
	if err := p.limits.set(p.memory, p.work); err != nil {
		return nil, time.Time{}, err
	}
	stop := p.stopFlag()
	stop.Store(0)
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&p.control[4])), 0)
	if ctx.Done() != nil {
		answered, stopped := make(chan struct{}), make(chan struct{})
		r := p.runner
		forget := context.AfterFunc(ctx, func() {
			defer close(stopped)
			stop.Store(1)
			select {
			case <-answered:
			case <-time.After(killAfter):
				r.Kill()
			}
		})
		defer func() {
			close(answered)
			if !forget() {
				<-stopped
			}
		}()
	}
	answer, err := p.request(op, payload, nil, most)
	now := time.Now()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, now, err
}

// close ends the executor.
func (p *process) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.runner != nil {
		p.gone() // it ends by itself when the channel closes
	}
	return unix.Munmap(p.control)
}
