package frontend

import (
	"bytes"
	"context"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/tokenizer"
)

// Source is one kind of model file, or of folders that hold a model.
type Source struct {
	// Name is the kind, for messages: "GGUF".
	Name string
	// Holds says in a few words which models of this kind can be recorded.
	Holds string
	// Match reports whether a file looks like one of this kind. At most one source of a table matches a file.
	Match func(f *File) bool
	// Open opens a file that matches, and checks that its model can be recorded. Its error names everything that is not
	// supported ([Faults]).
	Open func(f *File) (Model, error)
}

// File is a file, or a folder, that a user has named as a model.
type File struct {
	Name   string // for messages
	Path   string // "": it has no path, since it comes through a pipe; Read gives its contents
	Head   []byte // the first bytes of the file, at least 16 if it has so many; nil of a folder
	Folder bool
	// Read returns everything that comes through a pipe. Files that have a path are mapped instead.
	Read func() ([]byte, error)
}

// Begins reports whether the file begins with these bytes.
func (f *File) Begins(magic string) bool { return bytes.HasPrefix(f.Head, []byte(magic)) }

// Model is an open model.
type Model interface {
	// Record returns a module with the model's graphs, its tokenizer and its [Interface]. If ctx is cancelled, it
	// returns its error.
	Record(ctx context.Context, o Options) (*ir.Module, error)
	// Tokenizer returns the model's tokenizer, without recording anything.
	Tokenizer() (*tokenizer.Spec, error)
	// Context returns the greatest number of positions that the model knows.
	Context() int64
	// Remarks say what a user may want to know of a model that can be recorded: what its file has that is not used.
	Remarks() []string
	// Close releases the file. Modules that were recorded with [Options.External] or [Options.Mapped] refer to it.
	Close() error
}

// Options of a recording. Zero values mean the defaults.
type Options struct {
	// Context is the number of positions of the KV cache; default: the model's,
	// at most 2048.
	Context int64
	// Prefill is the greatest number of tokens of one prefill; default 128.
	Prefill int64
	// Draft is the greatest number of guessed tokens that a step verifies; 0: there is no such graph.
	Draft int64
	// Type is the type of activations, norms, scales, biases and logits: f32, f16 or bf16; default f32, or what the
	// front end says of its files. Weights that are not quantized are converted to it, rounded to the nearest, ties to even.
	Type ir.DType
	// Cache is the type of the KV cache: that of activations, which is the default; f16 beside activations of f32; or i8, which
	// means codes of 8 bits with a scale for each 32, GGML's q8_0. Keys and values are rounded to it as they are written.
	Cache ir.DType
	// External is the model's path relative to the file that the module will be written
	// to. If it is set, weights that are not repacked stay in the model file.
	External string
	// Blocks leaves quantized matrices in the blocks of the model file, though they could be repacked without loss to what
	// faster kernels take.
	Blocks bool
	// Mapped makes the module refer to the weights where the open model has them: it must not be used after
	// [Model.Close]. Without it they are copied.
	Mapped bool
	// Unread, with Mapped, names such weights by where they lie and not by the digest of their bytes, none of which is read
	// then. It is for a module that stays in memory: a container cannot be written of it.
	Unread bool
	// Advance makes the decode graph ready for bursts of replays: the position advances by 1, and
	// the token found is carried to the next replay's input, so that one submission can
	// decode many tokens.
	Advance bool
	// Sample makes both graphs draw their token with record.Session.Sample, by params for the temperature, top-p and
	// the seed ([Draw]), and by the token's position. At temperature 0, and without Sample, the token is always the
	// most likely one.
	Sample bool
	// Traced, if not nil, has what is asked for functions that a framework has traced. Other models have none of it.
	Traced *Traced
	// Progress, if not nil, is called with the share of the work done, from 0 to 1, by one goroutine at a time. The share
	// never goes back.
	Progress func(done float64)
}

// Traced has options of a recording of an exported function.
type Traced struct {
	// Function is which trace is recorded, counted from 1; 0: the only one there is.
	Function int
	// Weights is the path of a safetensors file that has contents for arguments with names.
	Weights string
	// States are arguments that are, in the next run, what a result is in this one.
	States []StatePair
	// NoStates says that no other states are looked for: an argument of which a result is made by writing slices.
	NoStates bool
	// Compiled describes kernels of MLX's library, which are taken where there are none of ours (record.Compiled).
	Compiled func(function string) (ir.Kernel, bool)
	// Source takes the Metal source of a kernel that the function brings along, which the caller will write to a file, and
	// returns how the module names that. Functions with such kernels are refused if it is nil.
	Source func(name string, text []byte) ir.Library
}

// Trace is a [Model] that is a function: [Options].Traced is for these.
type Trace interface {
	Model
	// Traces returns how many traces the file has.
	Traces() int
}

// StatePair are the names of an argument and a result.
type StatePair struct{ In, Out string }
