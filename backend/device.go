package backend

import (
	"context"

	"github.com/mlxc/mlxc/ir"
)

// Device executes graphs. Several goroutines may call its methods, and those of the objects
// that it makes, at the same time, unless a type says otherwise.
type Device interface {
	// Name is unique among the devices of a machine: "cpu".
	Name() string
	// Info returns a description for people, and limits that package replay keeps to.
	Info() Info
	// Alloc returns a buffer of undefined contents.
	Alloc(s BufferSpec) (Buffer, error)
	// Map returns a buffer over memory of the host, uncopied. data begins at a
	// multiple of [Info.PageSize] and is whole pages; it must outlive the buffer. A
	// buffer that is not readOnly may be written by commands. An error where PageSize
	// is 0.
	Map(data []byte, readOnly bool) (Buffer, error)
	// NewQueue returns a new queue. Only [Queue.Await] orders operations of two
	// queues.
	NewQueue() (Queue, error)
	// Compile makes a program ready to run; it stops when ctx ends. If the device
	// cannot do something, that is an error here, before anything is submitted, which
	// names the command.
	Compile(ctx context.Context, p *Program) (Executable, error)
}

// Info is a device's properties and limits. A limit of 0 means no limit.
type Info struct {
	Description string
	Threads     int // workers of a CPU, multiprocessors of a GPU that says how many

	PageSize  int64 // bytes, for [Device.Map]: 1 means that any memory can be mapped, 0 none
	Alignment int64 // bytes: alignment of memories that ask for none
	Loads     int64 // bytes: the widest load of a kernel, by which mapped weights that ask for no alignment are aligned; 0: as their elements
	MaxBuffer int64 // max bytes of a buffer
	MaxOffset int64 // max byte of a buffer at which a place may begin
	Memory    int64 // max bytes of all buffers together

	MaxThreadgroup   int // max threads of a threadgroup
	ThreadgroupBytes int // max bytes of threadgroup memory of a dispatch
	ArgumentSlots    int // number of a kernel's argument slots, from 0
	// MaxUncompleted is the max number of command buffers of a queue that are begun and
	// not completed (Metal: 64). Package replay holds a submission back until there is room;
	// [Queue.CommandBuffer] waits for room.
	MaxUncompleted int

	// Submits says that a submission costs the host and the device time that the replays of a burst share, as on a GPU.
	Submits bool

	// Apart says that two replays of an executable never share an encoder. A barrier at the end
	// of a graph would then not order the next replay, so package replay turns it into an
	// ordered commit, under the proof.
	Apart bool

	// Lower names the passes that package replay runs on a graph, under the proof, before it
	// is compiled for this device: "split,constants".
	Lower string

	Sampling Sampling
	Numerics Numerics
}

// Numerics says how a device's kernels compute where Metal leaves that to the compiler and the GPU.
// The zero value is IEEE 754 to the bit, as docs/terms.md describes.
type Numerics struct {
	// FlushesDenormals: denormal operands and results may count as zero (Metal's compilers:
	// air.compile.denorms_disable).
	FlushesDenormals bool
	// Contracts: a·b + c in one expression of the source may be rounded once.
	Contracts bool
	// ManyNaNs: a NaN that is stored may have any sign and payload.
	ManyNaNs bool
}

// Sampling says at which points a device can take timestamps.
type Sampling uint8

// The choices. Apple's GPUs can sample where encoders begin and end.
const (
	SampleCommands Sampling = iota // around each command
	SampleEncoders                 // around an encoder: with profiling each command has an encoder of its own
	SampleNothing
)

// Program is a graph to compile.
type Program struct {
	Graph *ir.Graph
	// Places, by memory, are fixed for all replays: those of all weights that commands
	// bind, and of any memory that the caller does not leave to frames and states.
	Places []Place
	// Profile asks for the times of each command.
	Profile bool
	// Progress, if not nil, is called with the share of the work that is done, from 0 to 1.
	Progress func(done float64)
}

// Place returns where memory root lies; the zero Place if the program does not say.
func (p *Program) Place(root ir.MemID) Place {
	if int(root) < len(p.Places) {
		return p.Places[root]
	}
	return Place{}
}

// Executable is a compiled program. Its frames and states must be closed before it.
type Executable interface {
	// NewFrame returns the memory of one replay in flight: inputs, outputs, scratch and
	// argument memory. As many submissions can be in flight as there are frames.
	NewFrame(s FrameSpec) (Frame, error)
	// NewStates takes, by memory, the places of all states that commands bind and the
	// program does not place. The buffers remain the caller's.
	NewStates(places []Place) (States, error)
	Close() error
}

// FrameSpec describes a frame to make.
type FrameSpec struct {
	// Places, by memory, are those that the caller allocates itself; the frame allocates
	// the rest. Two frames may share a place for scratch only if their replays are ordered,
	// so that the first has done with it before the second begins.
	Places []Place
	// Replays is the max of [Submission.Replays] for this frame; 0 means 1.
	Replays int
}

// Frame is the memory that one submission at a time has for itself.
type Frame interface {
	// Place returns where an input, output or scratch memory lies, by its root. It is the
	// zero Place for other memories, and for argument memory that the device keeps
	// elsewhere. Of an output that is kept of every replay ([ir.Memory.Every]), the copy of
	// replay i begins i times the memory's size behind the place.
	Place(root ir.MemID) Place
	Close() error
}

// States is a set of places for the states of an executable. Replays on one set run one after
// another; replays on several sets may be in flight together.
type States interface {
	Close() error
}

// Described is a Device that can tell more about itself and its system than [Info], for bug reports.
type Described interface {
	Facts() []Fact
}

// Fact is a name with a value, for people to read.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Modelled is an Executable that can estimate the time of a replay.
type Modelled interface {
	// Work is the modelled time of one replay on one worker, in seconds; it may be
	// infinite.
	Work(f Frame, s States, params []uint32) float64
}
