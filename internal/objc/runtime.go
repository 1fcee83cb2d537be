//go:build darwin || linux

package objc

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/ebitengine/purego"

	"github.com/mlxc/mlxc/internal/dynlib"
)

// system has Apple's libraries. CoreGraphics is among them since Metal finds no device without it.
var system = []string{
	"/usr/lib/libobjc.A.dylib",
	"/System/Library/Frameworks/Foundation.framework/Foundation",
	"/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics",
	"/System/Library/Frameworks/Metal.framework/Metal",
}

// functions are the addresses of the C functions that are called.
type functions struct {
	getClass, registerName, msgSend uintptr
	poolPush, poolPop               uintptr
	retain, release                 uintptr
	systemDefaultDevice, allDevices uintptr
	sendDouble                      func(self, sel uintptr) float64
}

// Functions are the names of these functions, in the order of the struct.
var Functions = []string{
	"objc_getClass", "sel_registerName", "objc_msgSend",
	"objc_autoreleasePoolPush", "objc_autoreleasePoolPop",
	"objc_retain", "objc_release",
	"MTLCreateSystemDefaultDevice", "MTLCopyAllDevices",
}

var (
	c       functions
	loading sync.Mutex
	loaded  string // the paths of the libraries that Load has opened
)

// Load opens libraries, Apple's if none are given, and looks up every function and selector. A process can
// load one set of libraries; to load the same again does nothing, and others are an error.
func Load(libraries ...string) error {
	if len(libraries) == 0 {
		if runtime.GOOS != "darwin" {
			return errors.New("Metal is on Macs alone")
		}
		libraries = system
	}
	loading.Lock()
	defer loading.Unlock()
	if id := fmt.Sprint(libraries); loaded != "" {
		if id != loaded {
			return fmt.Errorf("%s is loaded, and a process loads one: %s", loaded, id)
		}
		return nil
	} else if err := load(libraries); err != nil {
		return err
	} else {
		loaded = id
	}
	return nil
}

// Loaded reports whether libraries were opened.
func Loaded() bool {
	loading.Lock()
	defer loading.Unlock()
	return loaded != ""
}

func load(libraries []string) error {
	var handles []uintptr
	for _, path := range libraries {
		h, err := dynlib.Open(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return err
		}
		handles = append(handles, h)
	}
	var f functions
	for i, to := range []*uintptr{
		&f.getClass, &f.registerName, &f.msgSend, &f.poolPush, &f.poolPop, &f.retain, &f.release,
		&f.systemDefaultDevice, &f.allDevices,
	} {
		var err error
		for _, h := range handles {
			if *to, err = dynlib.Symbol(h, Functions[i]); err == nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("the function %s is missing: %w", Functions[i], err)
		}
	}
	purego.RegisterFunc(&f.sendDouble, f.msgSend)
	for _, m := range Table {
		m.register(f.registerName)
	}
	c = f
	return nil
}

func (m *Method) register(name uintptr) {
	m.sel = withCString(m.Selector, func(text uintptr) uintptr {
		r, _, _ := purego.SyscallN(name, text)
		return r
	})
}

// ClassNamed returns the class object of a name, 0 if there is no such class.
func ClassNamed(name string) ID {
	transitions.Add(1)
	return ID(withCString(name, func(text uintptr) uintptr {
		r, _, _ := purego.SyscallN(c.getClass, text)
		return r
	}))
}

// SystemDefaultDevice returns the system's default MTLDevice, 0 if there is none. The caller
// releases it.
func SystemDefaultDevice() ID {
	r, _, _ := purego.SyscallN(c.systemDefaultDevice)
	return ID(r)
}

// AllDevices returns an NSArray of all MTLDevices, which the caller releases.
func AllDevices() ID {
	r, _, _ := purego.SyscallN(c.allDevices)
	return ID(r)
}

// Retain adds a reference to an object, which [Release] gives up, and returns the object.
func Retain(o ID) ID {
	transitions.Add(1)
	r, _, _ := purego.SyscallN(c.retain, uintptr(o))
	return ID(r)
}

// Release gives up a reference that the caller owns; nil is allowed.
func Release(o ID) {
	if o != 0 {
		transitions.Add(1)
		purego.SyscallN(c.release, uintptr(o))
	}
}

// Pool calls f, on one thread, with an autorelease pool around it: objects that methods return in f live
// until f returns, unless they are retained.
func Pool(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	transitions.Add(2)
	pool, _, _ := purego.SyscallN(c.poolPush)
	defer purego.SyscallN(c.poolPop, pool)
	f()
}
