package metal

// Options of a device. The zero value is good.
type Options struct {
	// Device names the GPU: a part of its name, as [List] has it; "" is the one that the system
	// prefers.
	Device string
	// Library is a .metallib from which the kernels of our own library are taken, such as MLX's,
	// where they have the same names and arguments. Those that it lacks, and all if it is "", are
	// compiled from their Metal source.
	Library string
	// Precompiled is a .metallib that scripts/metallib.sh has made of our own kernels, so that they
	// need not be compiled here. If it cannot be used, or lacks some, there is a warning, and they
	// are compiled from their source.
	Precompiled string
	// Cache is the folder in which compiled pipelines are kept; "" is the user's own, [NoCache] none.
	Cache string
	// Warn, if not nil, hears what is done in another way than was asked for, each once. Goroutines
	// of the device call it, one at a time.
	Warn func(text string)
	// Plan is how replays are encoded.
	Plan Plan
	// Encoders is how many command buffers of a replay are encoded side by side by [Parallel], 2
	// to 8; 0 is 2.
	Encoders int
	// Fences has encoders ordered by fences, and Metal not track what they share. Only for GPUs of
	// which `mlxreplay doctor` has found that fences keep that order.
	Fences bool
	// Unretained: command buffers do not retain what they use. The device keeps it alive itself.
	Unretained bool
	// Memory is the most bytes that buffers may take together, if the system recommends no less; 0:
	// what it recommends.
	Memory int64
	// Private keeps from the host what it need not see: weights that are not mapped, states and
	// scratch. What goes to and from them is copied by the GPU.
	Private bool
	// Groups has the graph's groups and labels told to the encoder, for captures.
	Groups bool
}

// NoCache as [Options.Cache] keeps no pipelines.
const NoCache = "none"

// Description is a GPU of the machine.
type Description struct {
	Name    string
	Default bool  // the one that the system prefers
	Family  int   // of Apple's GPUs: 7 is M1's; 0: none of Apple's
	Memory  int64 // bytes that the system recommends to have in use at most
	// MaxBuffer is the greatest length of a buffer, ThreadgroupBytes the memory of a threadgroup.
	MaxBuffer        int64
	ThreadgroupBytes int
	Unified          bool // its memory is the host's
	RegistryID       uint64
}
