package cage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// Job is a program to run, and what it may do.
type Job struct {
	Path string
	Args []string
	// Folder is the program's own: it may write there, and runs there.
	Folder string
	// Reads are files and folders that it may read beside the shared libraries of the system. Those that
	// are not there are left out.
	Reads []string
	// Executes are files and folders of programs that it may start, and read.
	Executes []string
	// Env are variables that it gets beside those which every job has.
	Env    []string
	Limits Limits
	// Trust runs the program without a cage where none is to be had.
	Trust bool
}

// Limits are what a program may take. Zeros are those of [Default].
type Limits struct {
	Time   time.Duration // by the clock
	CPU    time.Duration // of processors, in whole seconds
	Memory int64         // bytes of its address space
	File   int64         // bytes of each file that it writes
	Output int           // bytes that it prints as its result
}

// Default are the limits of a job that says nothing. The largest source of kernels that is known, all of MLX's copies at
// once, takes a fifth of the time and of the memory.
var Default = Limits{Time: 20 * time.Minute, CPU: 10 * time.Minute, Memory: 4 << 30, File: 1 << 30, Output: 256 << 20}

// messageBytes is how much of a program's messages is kept.
const messageBytes = 256 << 10

func (l Limits) filled() Limits {
	if l.Time <= 0 {
		l.Time = Default.Time
	}
	if l.CPU <= 0 {
		l.CPU = Default.CPU
	}
	if l.Memory <= 0 {
		l.Memory = Default.Memory
	}
	if l.File <= 0 {
		l.File = Default.File
	}
	if l.Output <= 0 {
		l.Output = Default.Output
	}
	return l
}

// ErrLimit is what errors are of a program that has taken more than it may.
var ErrLimit = errors.New("this was stopped")

// ErrNone is what errors are where no cage is to be had and the job is not trusted.
var ErrNone = errors.New("there is no cage on this system")

// Failed is the error of a program that has run and failed.
type Failed struct {
	Messages string // what it has printed as its messages, perhaps nothing
	Err      error
}

func (f *Failed) Error() string {
	if f.Messages == "" {
		return f.Err.Error()
	}
	return f.Err.Error() + "\n" + f.Messages
}

func (f *Failed) Unwrap() error { return f.Err }

// Kind is a way to keep a program in.
type Kind int32

// The kinds.
const (
	Best       Kind = iota // whichever there is
	Landlock               // Linux, from 5.13 on
	Namespaces             // Linux, where users may make them
	Sandbox                // Macs
	None
)

func (k Kind) String() string {
	return [...]string{"best", "Landlock", "namespaces", "sandbox", "none"}[k]
}

// pretended is the kind that [Pretend] has set.
var pretended atomic.Int32

// Pretend has this process believe that a kind is the best that there is, until the function that it returns
// is called. It is for tests.
func Pretend(k Kind) (undo func()) {
	old := pretended.Swap(int32(k))
	return func() { pretended.Store(old) }
}

// Available returns the kind of cages here, and if that is [None] why.
func Available() (Kind, error) {
	switch k := Kind(pretended.Load()); k {
	case Best:
		return available()
	case None:
		return None, errors.New("a test says so")
	default:
		return k, nil
	}
}

// Has returns why a kind is not to be had here, or nil.
func Has(k Kind) error {
	if k == None {
		return nil
	}
	return tried(k)
}

// Run runs a program and returns what it prints. The error is a [*Failed] if the program fails, an [ErrLimit]
// if it took more than it may, an [ErrNone] if it was not started for want of a cage, or that of ctx.
func Run(ctx context.Context, j Job) ([]byte, error) {
	j.Limits = j.Limits.filled()
	kind, why := Available()
	if kind == None && !j.Trust {
		return nil, fmt.Errorf("%w: %w; a program that reads what others have written does not run without one: where you trust the kernels of the graph, say so with --trust-kernels", ErrNone, why)
	}
	timed, end := context.WithTimeout(ctx, j.Limits.Time)
	defer end()
	out := &limited{most: j.Limits.Output, end: end}
	messages := &limited{most: messageBytes}
	err := start(timed, kind, j, out, messages)
	switch text := messages.String(); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case out.over():
		return nil, fmt.Errorf("%w: it has printed more than %d bytes", ErrLimit, j.Limits.Output)
	case timed.Err() != nil:
		return nil, fmt.Errorf("%w: it took longer than %v", ErrLimit, j.Limits.Time)
	case err == nil:
		return out.data.Bytes(), nil
	default:
		if limit := overLimit(err, text, j.Limits); limit != nil {
			return nil, limit
		}
		return nil, &Failed{text, err}
	}
}

// command is the job's program as it is started in any cage.
func command(ctx context.Context, j Job, out, messages *limited) *exec.Cmd {
	cmd := exec.CommandContext(ctx, j.Path, j.Args...)
	cmd.Dir = j.Folder
	cmd.Env = append(environment(j.Folder), j.Env...)
	cmd.Stdout, cmd.Stderr = out, messages
	cmd.WaitDelay = time.Second // for whoever holds the pipes open when it has ended
	return cmd
}

// environment is all that the program has of it: nothing of the user's.
func environment(folder string) []string {
	return []string{
		"LC_ALL=C", "PATH=/usr/bin:/bin", "TMPDIR=" + folder, "HOME=" + folder,
		"ZIG_LOCAL_CACHE_DIR=" + folder, "ZIG_GLOBAL_CACHE_DIR=" + folder,
	}
}

// limited keeps the beginning of what is written to it. If more comes and end is set, the program is ended.
type limited struct {
	most int
	end  func()

	mu   sync.Mutex
	data bytes.Buffer
	more bool
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := l.most - l.data.Len(); len(p) > room {
		l.data.Write(p[:room])
		if l.more = true; l.end != nil {
			l.end()
		}
		return len(p), nil
	}
	return l.data.Write(p)
}

func (l *limited) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.more
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(bytes.TrimSpace(l.data.Bytes()))
	if l.more {
		text += "\n…"
	}
	return text
}

// present are those of some paths that are there.
func present(paths []string) (out []string) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			out = append(out, p)
		}
	}
	return out
}
