//go:build (darwin || linux) && (amd64 || arm64)

package objc

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Batch is a list of messages, in memory outside of Go, that one call from Go to C sends. The zero
// value is an empty batch. One goroutine at a time may use it. After Reset it keeps its memory, so that
// another list of the same size allocates nothing.
type Batch struct {
	chunks []chunk
	used   int // chunks in use; the last of them is being filled
	err    error
}

// chunk is a piece of a batch's memory: records grow from its beginning up, and the data that they
// point to from its end down.
type chunk struct {
	mem     []byte
	records int
	tail    int // index in mem of the first byte of this data
}

// record is a message, in the layout that batch_*.s reads.
type record struct {
	self   uintptr // address of the word with the receiver: object, or the result of an earlier record
	object ID      // the receiver, if it is known when the message is appended
	sel    uintptr
	args   [6]uintptr
	result uintptr // what the method returned, set when the message is sent
	number float64 // the same, if the method returns a double
}

const (
	chunkBytes  = 1 << 20
	recordBytes = unsafe.Sizeof(record{})
)

// Ref is the future result of a message in a batch. Later messages of the batch can be sent to it as an
// object; its value is known after Run. It is valid until the batch is reset.
type Ref uintptr

// Value is what the message returned; Run must have been called.
func (r Ref) Value() uintptr { return *foreign[uintptr](uintptr(r)) }

// Double is Value for a method that returns a double.
func (r Ref) Double() float64 {
	return *foreign[float64](uintptr(r) + unsafe.Offsetof(record{}.number) - unsafe.Offsetof(record{}.result))
}

// reserve returns a chunk with room for a record and n bytes of data; nil if there is no memory.
func (b *Batch) reserve(n int) *chunk {
	if b.used > 0 {
		if k := &b.chunks[b.used-1]; k.tail-int(recordBytes)*(k.records+1) >= n {
			return k
		}
	}
	if b.used == len(b.chunks) {
		mem, err := syscall.Mmap(-1, 0, max(chunkBytes, n+int(recordBytes)), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			b.err = fmt.Errorf("memory for messages: %w", err)
			return nil
		}
		b.chunks = append(b.chunks, chunk{mem: mem})
	}
	k := &b.chunks[b.used]
	if len(k.mem) < n+int(recordBytes) {
		b.err = fmt.Errorf("%d bytes for a message: a batch has %d", n, len(k.mem))
		return nil
	}
	b.used++
	k.records, k.tail = 0, len(k.mem)
	return k
}

// Bytes copies data into the batch's memory, until the batch is reset, and returns the address.
func (b *Batch) Bytes(data []byte) uintptr {
	k := b.reserve((len(data) + 15) &^ 15)
	if k == nil {
		return 0
	}
	k.tail -= (len(data) + 15) &^ 15
	copy(k.mem[k.tail:], data)
	return uintptr(unsafe.Pointer(&k.mem[k.tail]))
}

// Size is like Bytes, for an MTLSize.
func (b *Batch) Size(x, y, z uint64) uintptr {
	k := b.reserve(32)
	if k == nil {
		return 0
	}
	k.tail -= 32
	p := uintptr(unsafe.Pointer(&k.mem[k.tail]))
	*foreign[[3]uint64](p) = [3]uint64{x, y, z}
	return p
}

// Object returns a Ref of an object that is known already, for SendTo.
func (b *Batch) Object(id ID) Ref {
	var word [8]byte
	*(*ID)(unsafe.Pointer(&word)) = id
	return Ref(b.Bytes(word[:]))
}

// Send appends a message to an object.
func (b *Batch) Send(m *Method, self ID, args ...uintptr) Ref {
	r := b.append(m, args)
	if r == nil {
		return 0
	}
	r.object = self
	r.self = uintptr(unsafe.Pointer(&r.object))
	return Ref(unsafe.Pointer(&r.result))
}

// SendTo appends a message to the object that an earlier message returns.
func (b *Batch) SendTo(m *Method, self Ref, args ...uintptr) Ref {
	r := b.append(m, args)
	if r == nil {
		return 0
	}
	r.self = uintptr(self)
	return Ref(unsafe.Pointer(&r.result))
}

func (b *Batch) append(m *Method, args []uintptr) *record {
	k := b.reserve(0)
	if k == nil {
		return nil
	}
	r := foreign[record](uintptr(unsafe.Pointer(unsafe.SliceData(k.mem))) + uintptr(k.records)*recordBytes)
	k.records++
	r.sel, r.result = m.sel, 0
	clear(r.args[copy(r.args[:], args):])
	return r
}

// Len is the number of messages.
func (b *Batch) Len() int {
	n := 0
	for i := range b.used {
		n += b.chunks[i].records
	}
	return n
}

// Run sends all messages, by one call for each megabyte of them. Their results are valid until
// Reset. An error means that a message had no memory, and that none was sent.
func (b *Batch) Run() error { return b.run(0, 0) }

// RunInPool is Run with an autorelease pool around it, by the same call to C. Objects that messages
// return are released at its end, unless a message of the batch retains them.
func (b *Batch) RunInPool() (err error) {
	if b.used > 1 { // one pool must cover several calls
		Pool(func() { err = b.Run() })
		return err
	}
	return b.run(c.poolPush, c.poolPop)
}

func (b *Batch) run(push, pop uintptr) error {
	if b.err != nil {
		return b.err
	}
	for i := range b.used {
		k := &b.chunks[i]
		if k.records == 0 {
			continue
		}
		transitions.Add(1)
		messages.Add(uint64(k.records))
		purego.SyscallN(sendAllABI0, uintptr(unsafe.Pointer(unsafe.SliceData(k.mem))), uintptr(k.records), c.msgSend, push, pop)
	}
	return nil
}

// Reset makes the batch empty, and keeps its memory.
func (b *Batch) Reset() { b.used, b.err = 0, nil }

// Close frees the batch's memory.
func (b *Batch) Close() error {
	var errs []error
	for _, k := range b.chunks {
		errs = append(errs, syscall.Munmap(k.mem))
	}
	*b = Batch{}
	return errors.Join(errs...)
}

// Batches are empty batches that several goroutines take and give back, so that their memory is used again.
type Batches struct {
	mu   sync.Mutex
	free []*Batch
}

// Take returns an empty batch, which the caller gives back.
func (l *Batches) Take() *Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free) - 1
	if n < 0 {
		return &Batch{}
	}
	b := l.free[n]
	l.free = l.free[:n]
	return b
}

// Give resets a batch and keeps it.
func (l *Batches) Give(b *Batch) {
	b.Reset()
	l.mu.Lock()
	l.free = append(l.free, b)
	l.mu.Unlock()
}

// Close frees the memory of all batches that were given back.
func (l *Batches) Close() error {
	var errs []error
	for _, b := range l.free {
		errs = append(errs, b.Close())
	}
	l.free = nil
	return errors.Join(errs...)
}

// sendAll sends the messages of n records by objc_msgSend, with an autorelease pool around them if the
// functions to push and pop one are not 0. It has the calling convention of C and runs on a C stack; Go
// calls it by its address only.
func sendAll()

// sendAllABI0 is the address of sendAll (batch_*.s).
var sendAllABI0 uintptr
