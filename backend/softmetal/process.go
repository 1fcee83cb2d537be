//go:build unix

package softmetal

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process is the executor: started when it is first needed, and anew after a kernel has
// ended it. host/main.c is the other end.
type process struct {
	line    []string // the command
	memory  *sharedMemory
	workers int
	control []byte // the page in which it is told to stop

	mu      sync.Mutex // one request at a time
	cmd     *exec.Cmd
	to      *os.File
	from    *os.File
	answers *bufio.Reader // of from
	ended   chan struct{} // closed when cmd has ended
	buffers map[uint64]*buffer
	objects []object // by kernel number
	closed  bool
}

// object is a shared object that was loaded.
type object struct {
	path, name string
	again      func() (string, error) // compiles it once more; nil: cannot
}

// Requests, as enum request has them.
const (
	requestMap = 1 + iota
	requestUnmap
	requestLoad
	requestRun
	requestStart
	requestCheck
)

// killAfter is how long the executor has to stop.
const killAfter = 2 * time.Second

func newProcess(emulator []string, program string, memory *sharedMemory, workers int) (*process, error) {
	control, err := unix.Mmap(int(memory.file.Fd()), 0, int(memory.page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &process{line: append(slices.Clone(emulator), program), memory: memory, workers: workers, control: control, buffers: map[uint64]*buffer{}}, nil
}

// stopFlag is what the executor looks at between threadgroups.
func (p *process) stopFlag() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(p.control)))
}

// start starts the executor, with all buffers and kernels that there are.
func (p *process) start() (err error) {
	if p.closed {
		return errors.New("softmetal: the device is closed")
	}
	if p.cmd != nil {
		select {
		case <-p.ended: // by someone else's hand, while nothing ran
			p.gone()
		default:
			return nil
		}
	}
	requests, to, err := os.Pipe()
	if err != nil {
		return err
	}
	from, answers, err := os.Pipe()
	if err != nil {
		return errors.Join(err, requests.Close(), to.Close())
	}
	var cmd *exec.Cmd
	for wait := time.Millisecond; ; wait *= 2 {
		cmd = exec.Command(p.line[0], p.line[1:]...)
		cmd.ExtraFiles = []*os.File{requests, answers, p.memory.file}
		cmd.Stderr = os.Stderr
		// A child of this process that was just born may still hold the new program open for
		// writing.
		if err = cmd.Start(); !errors.Is(err, unix.ETXTBSY) || wait > time.Second {
			break
		}
		time.Sleep(wait)
	}
	requests.Close()
	answers.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("softmetal: the executor: %w", err), to.Close(), from.Close())
	}
	p.cmd, p.to, p.from, p.answers, p.ended = cmd, to, from, bufio.NewReader(from), make(chan struct{})
	go func(ended chan struct{}) {
		_ = cmd.Wait() // what it ended by is told by its last answer, or its silence
		close(ended)
	}(p.ended)
	defer func() {
		if err != nil && p.cmd != nil {
			p.gone() // an executor that lacks something would run other kernels
		}
	}()
	if _, err := p.request(requestStart, binary.LittleEndian.AppendUint32(nil, uint32(max(0, p.workers-1)))); err != nil {
		return err
	}
	for _, b := range p.buffers {
		if _, err := p.request(requestMap, b.description()); err != nil {
			return err
		}
	}
	for i := range p.objects {
		o := &p.objects[i]
		if _, err := os.Stat(o.path); err != nil && o.again != nil { // the cache has dropped it
			if o.path, err = o.again(); err != nil {
				return err
			}
		}
		if _, err := p.request(requestLoad, o.description()); err != nil {
			return err
		}
	}
	return nil
}

// died is the error of an executor that a kernel has ended.
type died struct{ message string }

func (e *died) Error() string { return "softmetal: " + e.message }

// request sends one and returns the answer. p.mu is held.
func (p *process) request(op uint32, payload []byte) ([]byte, error) {
	head := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, op), uint32(len(payload)))
	_, err := p.to.Write(append(head, payload...))
	var answer [8]byte
	if err == nil {
		_, err = io.ReadFull(p.answers, answer[:])
	}
	if err != nil {
		return nil, &died{"the executor has ended without a word: " + p.gone()}
	}
	data := make([]byte, binary.LittleEndian.Uint32(answer[4:]))
	if _, err := io.ReadFull(p.answers, data); err != nil {
		return nil, &died{"the executor has ended within a word: " + p.gone()}
	}
	switch binary.LittleEndian.Uint32(answer[:]) {
	case 0:
		return data, nil
	case 1:
		return nil, errors.New("softmetal: " + string(data))
	}
	p.gone()
	return nil, &died{string(data)}
}

// gone forgets an executor that has ended, or ends it, and says how it ended.
func (p *process) gone() string {
	_ = p.to.Close()
	_ = p.from.Close() // one that goes on writing must not wait for ever
	select {
	case <-p.ended:
	case <-time.After(time.Second): // it has said its last word
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	how := p.cmd.ProcessState.String()
	p.cmd = nil
	return how
}

func (b *buffer) description() []byte {
	out := binary.LittleEndian.AppendUint64(nil, b.id)
	out = binary.LittleEndian.AppendUint64(out, uint64(b.at))
	out = binary.LittleEndian.AppendUint64(out, uint64(b.size))
	return binary.LittleEndian.AppendUint32(out, 0)
}

func (o object) description() []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(o.path)))
	out = append(out, o.path...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(o.name)))
	return append(out, o.name...)
}

// mapBuffer makes a buffer known to the executor.
func (p *process) mapBuffer(b *buffer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffers[b.id] = b
	if p.cmd == nil {
		return nil // it will be, when there is one
	}
	_, err := p.request(requestMap, b.description())
	return p.unlessDead(err)
}

func (p *process) unmapBuffer(b *buffer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buffers[b.id] != b {
		return nil
	}
	delete(p.buffers, b.id)
	if p.cmd == nil {
		return nil
	}
	_, err := p.request(requestUnmap, binary.LittleEndian.AppendUint64(nil, b.id))
	return p.unlessDead(err)
}

// unlessDead is err, or nil if there is no executor any more: the next one will know which
// buffers there are.
func (p *process) unlessDead(err error) error {
	if d := (*died)(nil); errors.As(err, &d) {
		return nil
	}
	return err
}

// load loads a shared object and returns its number.
func (p *process) load(o object) (uint32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.start(); err != nil {
		return 0, err
	}
	answer, err := p.request(requestLoad, o.description())
	if p.unlessDead(err) == nil && err != nil { // it had ended before: loading is nothing that ends it
		if err = p.start(); err == nil {
			answer, err = p.request(requestLoad, o.description())
		}
	}
	if err != nil {
		return 0, err
	}
	if n := binary.LittleEndian.Uint32(answer); int(n) != len(p.objects) {
		return 0, fmt.Errorf("softmetal: the executor has loaded kernel %d for %d", n, len(p.objects))
	}
	p.objects = append(p.objects, o)
	return uint32(len(p.objects) - 1), nil
}

// commandTime is when a command began and ended.
type commandTime struct{ begin, end time.Time }

// run runs a batch. If ctx ends, it stops the executor between two threadgroups, or kills
// it, and returns the context's cause.
func (p *process) run(ctx context.Context, b *batch, timed bool) ([]commandTime, error) {
	flag := uint32(0)
	if timed {
		flag = 1
	}
	binary.LittleEndian.PutUint32(b.data, uint32(b.count))
	binary.LittleEndian.PutUint32(b.data[4:], flag)
	answer, now, err := p.cancellable(ctx, requestRun, b.data)
	if err != nil {
		return nil, err
	}
	if len(answer) < 32 {
		return nil, errors.New("softmetal: the executor's answer is too short")
	}
	done := int(binary.LittleEndian.Uint64(answer))
	if done < b.count || binary.LittleEndian.Uint64(answer[8:]) != 0 && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !timed {
		return nil, nil
	}
	clock := binary.LittleEndian.Uint64(answer[16:])
	at := func(i int) time.Time {
		return now.Add(-time.Duration(clock - binary.LittleEndian.Uint64(answer[32+8*i:])))
	}
	times := make([]commandTime, done)
	for i := range times {
		times[i] = commandTime{at(2 * i), at(2*i + 1)}
	}
	return times, nil
}

// check runs one dispatch under the checker, as run does, and returns the findings.
func (p *process) check(ctx context.Context, request []byte) ([]byte, error) {
	answer, _, err := p.cancellable(ctx, requestCheck, request)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// cancellable sends a request that runs kernels, and returns the answer and when it came.
func (p *process) cancellable(ctx context.Context, op uint32, payload []byte) ([]byte, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.start(); err != nil {
		return nil, time.Time{}, err
	}
	stop := p.stopFlag()
	stop.Store(0)
	if ctx.Done() != nil {
		answered := make(chan struct{})
		watched := make(chan struct{})
		cmd := p.cmd
		go func() {
			defer close(watched)
			select {
			case <-answered:
				return
			case <-ctx.Done():
			}
			stop.Store(1)
			select {
			case <-answered:
			case <-time.After(killAfter):
				_ = cmd.Process.Kill()
			}
		}()
		defer func() {
			close(answered)
			<-watched
		}()
	}
	answer, err := p.request(op, payload)
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
	if p.cmd != nil {
		p.gone() // it ends by itself when no more requests can come
	}
	return unix.Munmap(p.control)
}
