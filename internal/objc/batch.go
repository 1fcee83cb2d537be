//go:build (darwin || linux) && (amd64 || arm64)

package objc

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Batch is a list of messages that are sent by one call from Go to C, in memory outside of Go's.
// Its zero value is empty. It is used by one goroutine at a time, and kept: a second list of the
// same size allocates nothing.
type Batch struct {
	chunks []chunk
	used   int // chunks in use; the last of them is being filled
	err    error
}

// chunk is a piece of memory: records from its beginning on, what they point to from its end
// downwards.
type chunk struct {
	mem     []byte
	records int
	tail    int // where the pointed-to begins
}

// record is a message, as batch_*.s reads it.
type record struct {
	self   uintptr // the address of the word that holds the object
	object ID      // that word, of an object that is known
	sel    uintptr
	args   [6]uintptr
	result uintptr // written when it was sent
	number float64 // the same, of a method that returns one
}

const (
	chunkBytes  = 1 << 20
	recordBytes = unsafe.Sizeof(record{})
)

// Ref is the result of a message of a batch: an object that later messages of it can be sent to,
// and whose value is known when the batch was sent. It is good until the batch is reset.
type Ref uintptr

// Value is what the message returned.
func (r Ref) Value() uintptr { return *foreign[uintptr](uintptr(r)) }

// Double is what a message returned whose method returns a double.
func (r Ref) Double() float64 {
	return *foreign[float64](uintptr(r) + unsafe.Offsetof(record{}.number) - unsafe.Offsetof(record{}.result))
}

// reserve returns a chunk with room for a record and n bytes behind it.
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

// Bytes copies data to where a message may point to it, until the batch is reset.
func (b *Batch) Bytes(data []byte) uintptr {
	k := b.reserve((len(data) + 15) &^ 15)
	if k == nil {
		return 0
	}
	k.tail -= (len(data) + 15) &^ 15
	copy(k.mem[k.tail:], data)
	return uintptr(unsafe.Pointer(&k.mem[k.tail]))
}

// Size copies an MTLSize.
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

// Object is an object as messages of the batch can be sent to it, as to the results of others.
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

// SendTo appends a message to what an earlier message returns.
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

// Run sends all messages, by one call for each megabyte of them. Their results are good until
// Reset. An error means that there was no memory for them, and that none was sent.
func (b *Batch) Run() error { return b.run(0, 0) }

// RunInPool is Run with an autorelease pool around it, by the same call: what messages return that
// is not retained by one of them is gone then.
func (b *Batch) RunInPool() (err error) {
	if b.used > 1 { // by several calls
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

// Close gives the memory back.
func (b *Batch) Close() error {
	var errs []error
	for _, k := range b.chunks {
		errs = append(errs, syscall.Munmap(k.mem))
	}
	*b = Batch{}
	return errors.Join(errs...)
}

// sendAll sends the messages of n records by objc_msgSend, with a pool around them if it is given the
// functions of one. It has the calling convention of C and
// runs on a stack of C's; Go calls it by its address only.
func sendAll()

// sendAllABI0 is the address of sendAll (batch_*.s).
var sendAllABI0 uintptr
