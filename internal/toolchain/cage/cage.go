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
	// Folder is the program's working folder, and the only one that it may write.
	Folder string
	// Reads are files and folders that it may read besides the shared libraries of the system. Those that do not
	// exist are ignored.
	Reads []string
	// Executes are programs, and folders of programs, that it may start and read.
	Executes []string
	// Env are variables that it gets besides those that every job gets.
	Env    []string
	Limits Limits
	// Trust lets the program run without a cage where none is available.
	Trust bool
}

// Limits are the resource limits of a program. Zeros stand for those of [Default].
type Limits struct {
	Time   time.Duration // by the clock
	CPU    time.Duration // of processors, in whole seconds
	Memory int64         // bytes of its address space
	File   int64         // bytes of each file that it writes
	Output int           // bytes of its standard output
}

// Default are the limits of a job that sets none. The largest known source of kernels, with all of MLX's copy
// kernels, takes a fifth of the time and of the memory.
var Default = Limits{Time: 20 * time.Minute, CPU: 10 * time.Minute, Memory: 4 << 30, File: 1 << 30, Output: 256 << 20}

// messageBytes is the maximum number of bytes that are kept of a program's messages.
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

// ErrLimit is the error of a program that has exceeded a limit.
var ErrLimit = errors.New("this was stopped")

// ErrNone is the error of a job that is not trusted where no cage is available.
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

// Kind is a mechanism that confines a program.
type Kind int32

// The kinds.
const (
	Best       Kind = iota // the best that is available
	Landlock               // Linux, from 5.13 on
	Namespaces             // Linux, where users may create them
	Sandbox                // Macs
	None
)

func (k Kind) String() string {
	return [...]string{"best", "Landlock", "namespaces", "sandbox", "none"}[k]
}

// pretended is the kind that [Pretend] has set.
var pretended atomic.Int32

// Pretend makes this process believe that a kind is the best that is available, until undo is called. It is for
// tests.
func Pretend(k Kind) (undo func()) {
	old := pretended.Swap(int32(k))
	return func() { pretended.Store(old) }
}

// Available returns the best kind of cage that is available here; the error says why that is [None].
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

// Has returns nil if a kind is available here, or the reason why not.
func Has(k Kind) error {
	if k == None {
		return nil
	}
	return tried(k)
}

// Run runs a program and returns its standard output. The error is a [*Failed] if the program fails, an [ErrLimit] if
// it exceeded a limit, an [ErrNone] if it was not started for lack of a cage, or that of ctx.
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

// command returns the command of the job's program, which is the same in any cage.
func command(ctx context.Context, j Job, out, messages *limited) *exec.Cmd {
	cmd := exec.CommandContext(ctx, j.Path, j.Args...)
	cmd.Dir = j.Folder
	cmd.Env = append(environment(j.Folder), j.Env...)
	cmd.Stdout, cmd.Stderr = out, messages
	cmd.WaitDelay = time.Second // in case a child still has the pipes open when the program has ended
	return cmd
}

// environment returns all variables of a confined program, none of which are the user's.
func environment(folder string) []string {
	return []string{
		"LC_ALL=C", "PATH=/usr/bin:/bin", "TMPDIR=" + folder, "HOME=" + folder,
		"ZIG_LOCAL_CACHE_DIR=" + folder, "ZIG_GLOBAL_CACHE_DIR=" + folder,
	}
}

// limited keeps the first bytes that are written to it. If there are more, it calls end, unless that is nil.
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

// present returns the paths that exist.
func present(paths []string) (out []string) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			out = append(out, p)
		}
	}
	return out
}
