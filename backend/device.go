package backend

import (
	"context"

	"github.com/mlxc/mlxc/ir"
)

// Device executes graphs. Its methods, those of what it makes included, may be
// called by several goroutines, unless a type says otherwise.
type Device interface {
	// Name is unique among the devices of a machine: "cpu".
	Name() string
	// Info describes the device to people, and its limits to replay.
	Info() Info
	// Alloc returns a buffer of undefined contents.
	Alloc(s BufferSpec) (Buffer, error)
	// Map returns a buffer over memory of the host, uncopied. data begins at a
	// multiple of [Info.PageSize] and is whole pages; it must outlive the buffer. A
	// buffer that is not readOnly may be written by commands. An error where PageSize
	// is 0.
	Map(data []byte, readOnly bool) (Buffer, error)
	// NewQueue returns a queue of its own. Queues are ordered by nothing but
	// [Queue.Await].
	NewQueue() (Queue, error)
	// Compile makes a program ready to run, and ends with its context. What the
	// device cannot do is an error here, before anything is submitted; it names the
	// command.
	Compile(ctx context.Context, p *Program) (Executable, error)
}

// Info are a device's properties and limits. A limit of 0 is none.
type Info struct {
	Description string
	Threads     int // workers of a CPU, multiprocessors of a GPU that says how many

	PageSize  int64 // of [Device.Map]: 1 takes any memory, 0 none
	Alignment int64 // bytes, of places of memories that ask for none
	MaxBuffer int64 // bytes of the greatest buffer
	MaxOffset int64 // the greatest byte of a buffer at which a place may begin
	Memory    int64 // bytes that all buffers together may take

	MaxThreadgroup   int // threads of a threadgroup
	ThreadgroupBytes int // threadgroup memory of a dispatch
	ArgumentSlots    int // of a kernel: the slots are 0 to one less
	// MaxUncompleted is how many command buffers of a queue may be begun and not
	// completed (Metal: 64). Replay keeps a submission back until it has room beside those
	// in flight; [Queue.CommandBuffer] waits for room.
	MaxUncompleted int

	// Apart says that two replays of an executable never share an encoder. A barrier at the
	// end of a list would order nothing of the next replay then, and replay turns it into an
	// ordered commit, under the proof.
	Apart bool

	// Lower is the pipeline of passes that the device wants a graph to have been
	// through, "split,constants"; replay runs it, under the proof.
	Lower string

	Sampling Sampling
	Numerics Numerics
}

// Numerics says how a device's kernels compute where Metal leaves it to compiler and machine.
// The zero value is what docs/terms.md says: IEEE 754, to the bit.
type Numerics struct {
	// FlushesDenormals: numbers below the least normal one may count as zero, as operands and
	// as results (Metal's compilers: air.compile.denorms_disable).
	FlushesDenormals bool
	// Contracts: a·b + c in one expression of the source may be rounded once.
	Contracts bool
	// ManyNaNs: a NaN that is stored may have any sign and payload.
	ManyNaNs bool
}

// Sampling says where a device can take times.
type Sampling uint8

// The choices. Apple's GPUs take times where an encoder ends.
const (
	SampleCommands Sampling = iota // around each command
	SampleEncoders                 // around an encoder: one for each command, if asked for times
	SampleNothing
)

// Program is a graph to compile.
type Program struct {
	Graph *ir.Graph
	// Places, by memory, are bound for ever: those of all weights that commands bind,
	// and of what else the caller does not want frames and states to choose.
	Places []Place
	// Profile asks for the times of each command.
	Profile bool
	// Progress, if not nil, hears which part of the work is done, from 0 to 1.
	Progress func(done float64)
}

// Place returns where memory root lies; the zero Place if the program does not say.
func (p *Program) Place(root ir.MemID) Place {
	if int(root) < len(p.Places) {
		return p.Places[root]
	}
	return Place{}
}

// Executable is a compiled program. Its frames and states are closed before it is.
type Executable interface {
	// NewFrame returns a slot for a replay: inputs, outputs, scratch and argument
	// memory. As many replays can be in flight as there are frames.
	NewFrame(s FrameSpec) (Frame, error)
	// NewStates takes the places of states, by memory, of all that commands bind and
	// the program does not place. They remain the caller's.
	NewStates(places []Place) (States, error)
	Close() error
}

// FrameSpec says what a frame is to be like.
type FrameSpec struct {
	// Places, by memory, of what the caller allocates itself; the frame allocates the
	// rest. Two frames may have one place for scratch only if the order of replays
	// keeps what the first does to it before what the second does.
	Places []Place
	// Replays is the greatest [Submission.Replays] that the frame serves; 0 means 1.
	Replays int
}

// Frame is what one submission at a time uses of its own.
type Frame interface {
	// Place returns where an input, output or scratch memory lies, by its root. It is the
	// zero Place for other memories, and for argument memory that the device keeps
	// elsewhere. Of an output that is kept of every replay ([ir.Memory.Every]), the copy of
	// replay i begins i times the memory's size behind the place.
	Place(root ir.MemID) Place
	Close() error
}

// States are a set of states that an executable can run on. One set runs in one
// replay after another; frames of several sets may be in flight together.
type States interface {
	Close() error
}

// Described is a Device that knows more of itself and its system than [Info] has, for reports of bugs.
type Described interface {
	Facts() []Fact
}

// Fact is one thing that is known, for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Modelled is an Executable that knows what a replay costs.
type Modelled interface {
	// Work is the modelled time of one replay on one worker, in seconds; it may be
	// infinite.
	Work(f Frame, s States, params []uint32) float64
}
