package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// MemID is the index of a memory in [Graph.Memories]; NoMem is none.
type MemID int32

// NoMem is the MemID of no memory.
const NoMem MemID = -1

// MemKind says who fills a memory and how long its bytes live.
type MemKind uint8

// The kinds of memory.
const (
	Weight  MemKind = iota // read-only, contents given with the graph
	Input                  // read-only, the host fills it before each replay
	Output                 // undefined at the start of each replay, read by the host after it
	State                  // survives from replay to replay
	Scratch                // undefined at the start of each replay, nobody reads it after
	// Argument memory is read-only. It holds values of constant arguments that dispatches would
	// otherwise bind inline ([Value]). The replay computes them from the params before it begins,
	// so that from replay to replay bytes change, and commands do not.
	Argument
)

var memKinds = [...]string{"weight", "input", "output", "state", "scratch", "argument"}

func (k MemKind) String() string {
	if int(k) >= len(memKinds) {
		return fmt.Sprintf("MemKind(%d)", uint8(k))
	}
	return memKinds[k]
}

// ParseMemKind is the inverse of [MemKind.String].
func ParseMemKind(s string) (MemKind, bool) {
	for i, n := range memKinds {
		if n == s {
			return MemKind(i), true
		}
	}
	return 0, false
}

// ReadOnly reports whether a graph may not write memory of this kind.
func (k MemKind) ReadOnly() bool { return k == Weight || k == Input || k == Argument }

// Storage is Metal's storage mode.
type Storage uint8

// The storage modes; Shared is the default on unified memory.
const (
	Shared Storage = iota
	Private
)

func (s Storage) String() string {
	if s == Private {
		return "private"
	}
	return "shared"
}

// Memory is a byte array that dispatches bind. Two memories are disjoint unless one is an alias of
// the other or both are aliases of a third.
type Memory struct {
	Name    string
	Kind    MemKind
	Storage Storage
	Size    int64 // bytes
	Align   int64 // bytes, a power of two; 0 means the device's default

	// DType and Shape (row-contiguous, outermost first) describe the contents
	// to people and to .npy files; they may be absent (Invalid, nil).
	DType DType
	Shape []int64

	// Every says that the host gets the contents of this output after every replay of a submission,
	// not only after the last one.
	Every bool

	Init Init

	// Alias is the memory in which this one lies, from byte AliasOff on. An alias has the kind of
	// that memory. Alias is NoMem for a root.
	Alias    MemID
	AliasOff int64
}

// InitKind says where a memory's first contents come from.
type InitKind uint8

// The kinds of initial contents.
const (
	InitNone   InitKind = iota // undefined
	InitBlob                   // Blob's bytes
	InitFill                   // Pattern, repeated
	InitRandom                 // a generator's output from Seed (see [Memory.WriteInit])
	InitValues                 // Values, written before every replay; only for argument memory
)

// Init is the initial contents of a memory. A weight keeps them for ever, a state has them at the
// first replay, and argument memory at every replay.
type Init struct {
	Kind    InitKind
	Blob    *Blob
	Pattern [4]byte
	Seed    uint64
	Values  []Value // in ascending order, without overlap
}

// FillU32 returns contents that repeat the little-endian word v.
func FillU32(v uint32) Init {
	return Init{Kind: InitFill, Pattern: [4]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}}
}

// WriteInit fills dst, of m.Size bytes, with m's initial contents. Random contents are the
// little-endian words of SplitMix64 (Steele, Lea, Flood 2014) started at Seed. A memory of type f32
// gets numbers instead, uniform in [−1, 1): the upper 24 bits of each half word, so that kernels
// have something to compute with.
func (m *Memory) WriteInit(dst []byte) error {
	if err := m.Init.Write(dst); err != nil || m.Init.Kind != InitRandom || m.DType != F32 {
		return err
	}
	for ; len(dst) >= 4; dst = dst[4:] {
		u := binary.LittleEndian.Uint32(dst)
		f := float32(u>>8)/(1<<23) - 1
		binary.LittleEndian.PutUint32(dst, math.Float32bits(f))
	}
	return nil
}

// SameContents reports whether m and o have the same initial bytes. Blobs are compared by digest,
// wherever they are kept.
func (m *Memory) SameContents(o *Memory) bool {
	x, y := m.Init, o.Init
	if x.Kind != y.Kind {
		return false
	}
	switch x.Kind {
	case InitBlob:
		return x.Blob.Digest == y.Blob.Digest && x.Blob.Length == y.Blob.Length
	case InitFill:
		return x.Pattern == y.Pattern
	case InitValues:
		return slices.EqualFunc(x.Values, y.Values, func(v, w Value) bool { return v.equal(&w) })
	case InitRandom:
		return x.Seed == y.Seed && (m.DType == F32) == (o.DType == F32) // see WriteInit
	}
	return true
}

// Write fills dst with the contents, random ones as raw bytes.
func (in Init) Write(dst []byte) error {
	switch in.Kind {
	case InitBlob:
		return in.Blob.Fill(dst)
	case InitFill:
		for n := copy(dst, in.Pattern[:]); n > 0 && n < len(dst); {
			n += copy(dst[n:], dst[:min(n, 1<<16)]) // n is a multiple of 4 until the end
		}
	case InitRandom:
		x := in.Seed
		for i := 0; i < len(dst); i += 8 {
			x += 0x9e3779b97f4a7c15
			z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			z ^= z >> 31
			for j := i; j < min(i+8, len(dst)); j++ {
				dst[j] = byte(z)
				z >>= 8
			}
		}
	}
	return nil
}

// Root returns the root memory in which m lies, and the offset of m's first byte there. It is
// defined for graphs that [Check] accepted.
func (g *Graph) Root(m MemID) (MemID, int64) {
	off := int64(0)
	for g.Memories[m].Alias != NoMem {
		off += g.Memories[m].AliasOff
		m = g.Memories[m].Alias
	}
	return m, off
}
