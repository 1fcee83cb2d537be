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

// Ranges reports ranges of the host's time to an NVIDIA tool such as Nsight Systems, by NVTX 3. That interface has
// no library of its own: the program loads the tool, which an environment variable names, and gives it a table of
// pointers to function slots; the tool stores its functions in those slots that it wants called.
type Ranges struct{ push, pop uintptr }

// NVTX groups functions in modules numbered from 1, and numbers them within each; functionsOf has the number of
// functions of each module. Only two of the core module are called here; a tool may fill the other slots too.
const (
	moduleCore = 1
	modules    = 7
	rangePush  = 9
	rangePop   = 11
)

var functionsOf = [modules]int{0, 16, 9, 16, 7, 16, 7}

// callbackTable and versionTable are the tables that tools ask for by number (callbackTableID, versionTableID).
type callbackTable struct {
	size     uintptr
	function uintptr // a C function of the module, the address for the table, and the address for its length
}

type versionTable struct {
	size     uintptr
	version  uint32
	_        uint32
	function uintptr // a C function whose argument is the version of NVTX in the tool
}

const (
	callbackTableID = 1
	versionTableID  = 3
	nvtxVersion     = 3
)

// tables is the memory that is shared with tools. It lies outside the Go heap: a tool may write to it at any time.
type tables struct {
	callbacks callbackTable
	versions  versionTable
	slots     [modules][16]uintptr // the tool's functions, by module
	pointers  [modules][17]uintptr // addresses of the slots, with a 0 behind the last
}

var attached struct {
	sync.Mutex
	t   *tables
	get uintptr // callback by which a tool asks for the tables
}

// shared returns the tables, which are made once per process: purego's callbacks are never freed.
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

// ErrNoRanges is returned for a tool that has set no function for the begin or the end of a range.
var ErrNoRanges = errors.New("the tool takes no ranges")

// AttachLibrary loads the shared library of a tool, and attaches it. The library stays loaded.
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

// attach attaches a tool, given the address of its InitializeInjectionNvtx2.
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

// Push begins a range on the calling thread; name ends with a zero byte. On a nil Ranges it does nothing.
func (r *Ranges) Push(name []byte) {
	if r == nil {
		return
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&name[0])
	purego.SyscallN(r.push, uintptr(unsafe.Pointer(&name[0])))
}

// Pop ends the innermost range of the calling thread.
func (r *Ranges) Pop() {
	if r != nil {
		purego.SyscallN(r.pop)
	}
}
