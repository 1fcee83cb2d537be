//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Ranges tells a tool of NVIDIA's, such as Nsight Systems, what the host does, by NVTX 3. That interface has no
// library: a program gives the tool, which the environment names, a table of pointers to functions, and
// the tool puts there those of its own that it wants to be called.
type Ranges struct{ push, pop uintptr }

// Modules of functions, and how many each has: the first is none. Of all of them two are called here; a tool may
// fill the others.
const (
	moduleCore = 1
	modules    = 7
	rangePush  = 9
	rangePop   = 11
)

var functionsOf = [modules]int{0, 16, 9, 16, 7, 16, 7}

// callbackTable and versionTable are what tools ask for by a number.
type callbackTable struct {
	size     uintptr
	function uintptr // (module, where to put the table, where to put its length)
}

type versionTable struct {
	size     uintptr
	version  uint32
	_        uint32
	function uintptr // (version of the tool)
}

const (
	callbackTableID = 1
	versionTableID  = 3
	nvtxVersion     = 3
)

// tables are what a tool sees. They are no memory of Go's: a tool may write to them at any time.
type tables struct {
	callbacks callbackTable
	versions  versionTable
	slots     [modules][16]uintptr // functions
	pointers  [modules][17]uintptr // to slots; the end is 0
}

var attached struct {
	sync.Mutex
	t   *tables
	get uintptr // which gives a tool its tables
}

// shared makes the tables, once in a process: nothing takes callbacks back.
func shared() (*tables, error) {
	if attached.t != nil {
		return attached.t, nil
	}
	room, err := syscall.Mmap(-1, 0, int(unsafe.Sizeof(tables{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for the functions of a tool: %w", err)
	}
	t := (*tables)(unsafe.Pointer(&room[0]))
	for m := range t.pointers {
		for i := range functionsOf[m] {
			t.pointers[m][i] = uintptr(unsafe.Pointer(&t.slots[m][i]))
		}
	}
	t.callbacks = callbackTable{unsafe.Sizeof(t.callbacks), purego.NewCallback(func(module uintptr, table *uintptr, count *uint32) uintptr {
		if m := uint32(module); m == 0 || m >= modules {
			return 0
		}
		if table != nil {
			*table = uintptr(unsafe.Pointer(&t.pointers[uint32(module)]))
		}
		if count != nil {
			*count = uint32(functionsOf[uint32(module)])
		}
		return 1
	})}
	t.versions = versionTable{size: unsafe.Sizeof(t.versions), version: nvtxVersion, function: purego.NewCallback(func(uintptr) uintptr { return 0 })}
	attached.get = purego.NewCallback(func(table uintptr) uintptr {
		switch uint32(table) {
		case callbackTableID:
			return uintptr(unsafe.Pointer(&t.callbacks))
		case versionTableID:
			return uintptr(unsafe.Pointer(&t.versions))
		}
		return 0
	})
	attached.t = t
	return t, nil
}

// ErrNoRanges says that a tool does not want ranges.
var ErrNoRanges = errors.New("the tool takes no ranges")

// AttachLibrary attaches a tool, which is a shared library. It stays loaded.
func AttachLibrary(path string) (*Ranges, error) {
	lib, err := openTool(path)
	if err != nil {
		return nil, err
	}
	begin, err := symbol(lib, "InitializeInjectionNvtx2")
	if err != nil {
		return nil, err
	}
	return attach(begin)
}

// attach attaches a tool, given its function that begins.
func attach(begin uintptr) (*Ranges, error) {
	attached.Lock()
	defer attached.Unlock()
	t, err := shared()
	if err != nil {
		return nil, err
	}
	t.slots = [modules][16]uintptr{}
	if ok, _, _ := purego.SyscallN(begin, attached.get); int32(ok) == 0 {
		return nil, errors.New("the tool does not begin")
	}
	r := &Ranges{t.slots[moduleCore][rangePush], t.slots[moduleCore][rangePop]}
	if r.push == 0 || r.pop == 0 {
		return nil, ErrNoRanges
	}
	return r, nil
}

// Push begins a range of this thread's; name ends with a zero byte. It does nothing without a tool.
func (r *Ranges) Push(name []byte) {
	if r == nil {
		return
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&name[0])
	purego.SyscallN(r.push, uintptr(unsafe.Pointer(&name[0])))
}

// Pop ends the last one.
func (r *Ranges) Pop() {
	if r != nil {
		purego.SyscallN(r.pop)
	}
}
