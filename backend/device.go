package backend

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/ir"
)

// Device executes graphs.
type Device interface {
	// Name is unique among the devices of a machine: "cpu".
	Name() string
	// Info describes the device to people and to replay's checks.
	Info() Info
	// Alloc returns a buffer of size bytes of undefined contents.
	Alloc(size int64) (Buffer, error)
	// Map returns a buffer over data without copying it, if the device can. data
	// must outlive it, and must be writable if a program writes the buffer.
	Map(data []byte) (Buffer, error)
	// Compile makes a program ready to run. What the device cannot do is an
	// error here, before anything is submitted.
	Compile(p *Program) (Executable, error)
}

// Info are a device's properties and limits.
type Info struct {
	Description      string
	Threads          int   // workers, for a CPU
	MaxBuffer        int64 // bytes; 0: memory only
	Memory           int64 // bytes that may be allocated in all; 0: unknown
	MaxThreadgroup   int   // threads of a threadgroup
	ThreadgroupBytes int   // threadgroup memory
	Alignment        int64 // bytes, of memories that say nothing
	Sampling         Sampling
}

// Sampling says where a device can take times.
type Sampling uint8

// The places. Apple's GPUs sample where an encoder ends.
const (
	SampleCommands Sampling = iota // around each command
	SampleEncoders                 // around an encoder: one for each command, if asked for times
	SampleNothing
)

// Buffer is memory that a device can bind.
type Buffer interface {
	// Bytes is the buffer's memory as the host sees it. It may be read and
	// written only while no submitted program uses the buffer.
	Bytes() []byte
	Close() error
}

// Program is a graph bound to buffers.
type Program struct {
	Graph *ir.Graph
	// Buffers holds one buffer for each root memory that a command binds, by MemID,
	// of at least the memory's size; nil for aliases.
	Buffers []Buffer
	// Profile asks for a time for each dispatch.
	Profile bool
}

// Executable is a compiled program.
type Executable interface {
	// Submit starts one replay. params holds the value of every param of the
	// graph, in order: a u32, or the bits of an f32. They are valid: replay has
	// checked bounds and constraints. The host may change params after Submit
	// returns, buffers after Wait.
	Submit(ctx context.Context, params []uint32) (Pending, error)
	Close() error
}

// Modelled is an Executable that knows what a replay costs.
type Modelled interface {
	// Work is the modelled time of a replay with these params on one worker, in
	// seconds; it may be infinite.
	Work(params []uint32) float64
}

// Pending is a submitted replay.
type Pending interface {
	// Wait blocks until the replay has ended. An error means that outputs and
	// states are undefined.
	Wait() (Timing, error)
}

// Timing says how long a replay took.
type Timing struct {
	Encode time.Duration // on the host, before the device could begin
	Total  time.Duration // from begin to end on the device
	// Dispatches holds one entry for each command when Program.Profile is set.
	Dispatches []DispatchTime
}

// DispatchTime is the time of one command.
type DispatchTime struct {
	ID   ir.ID
	Time time.Duration
}
