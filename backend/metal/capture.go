//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/objc"
)

// enableVariable has to be set in C's environment before Metal is loaded, or nothing can be captured.
const enableVariable = "MTL_CAPTURE_ENABLED"

// extension is that of capture files, which Xcode opens.
const extension = ".gputrace"

// wanted is the capture that Options.Capture asks for: of a device's n-th replay or live command buffer.
type wanted struct {
	path  string
	count atomic.Int64 // replays until the captured one, itself included
}

// parseCapture parses FILE or FILE:N.
func parseCapture(text string) (*wanted, error) {
	w := &wanted{path: text}
	w.count.Store(1)
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		n, err := strconv.Atoi(text[i+1:])
		if err == nil && n < 1 {
			return nil, fmt.Errorf("capture %q: replays count from 1 on", text)
		}
		if err == nil {
			w.path = text[:i]
			w.count.Store(int64(n))
		}
	}
	if filepath.Ext(w.path) != extension {
		return nil, fmt.Errorf("capture %q: the file's name ends with %s, as decode%s or decode%s:10", text, extension, extension, extension)
	}
	return w, nil
}

// prepareCaptures sets the variable that allows captures. It is called before Metal is loaded.
func prepareCaptures() error { return objc.Setenv(enableVariable, "1") }

// claimed has the paths of captures that options asked for and that have begun: if several devices of the
// process have the same path, the one that reaches its n-th replay first makes the file.
var claimed sync.Map

// captured is called when it is a replay's turn to be committed. It returns a function to call
// after all of the replay was committed. If this is the replay that the options name, it is
// captured between the two calls.
func (x *executor) captured() func() {
	w := x.wanted
	if w == nil || w.count.Load() <= 0 || w.count.Add(-1) != 0 {
		return func() {}
	}
	if _, other := claimed.LoadOrStore(w.path, true); other {
		return func() {}
	}
	x.flight.land()
	if err := startCapture(x.id, w.path); err != nil {
		x.warn("nothing is captured: %v", err)
		return func() {}
	}
	return func() {
		x.flight.land()
		stopCapture()
		x.log.say(0, "captured %s", w.path)
	}
}

// ErrNotCaptured is wrapped by the error of [Device.Capture] if the capture could not begin; f has run.
var ErrNotCaptured = errors.New("nothing is captured")

// Capture calls f and writes what the GPU does meanwhile to a file for Xcode. path ends with .gputrace
// and must not exist. It waits for what the queues of the device were given before, and then for what f
// gives them. f is called also if nothing can be captured ([ErrNotCaptured]); the error says why and
// what to do. [Options.Captures] prepares the process.
func (d *Device) Capture(path string, f func() error) error {
	ctx := context.Background()
	if err := d.flight.drain(ctx); err != nil {
		return err
	}
	err := startCapture(d.id, path)
	if err != nil {
		return errors.Join(fmt.Errorf("metal: %w: %w", ErrNotCaptured, err), f())
	}
	defer stopCapture()
	err = f()
	return errors.Join(err, d.flight.drain(ctx))
}

// startCapture begins to capture what is committed to a queue, or to all queues of a device.
func startCapture(of objc.ID, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if filepath.Ext(path) != extension {
		return fmt.Errorf("%s: the name of a capture ends with %s", path, extension)
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already: Metal overwrites no capture, so remove it or name another file", path)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("there is no folder for the capture: %w", err)
	}
	objc.Pool(func() {
		manager := objc.SharedCaptureManager.SendID(objc.ClassNamed("MTLCaptureManager"))
		if manager == 0 {
			err = errors.New("the system has no capture manager")
			return
		}
		if objc.IsCapturing.SendBool(manager) {
			err = errors.New("another capture is being made: the process makes one at a time")
			return
		}
		if !objc.SupportsDestination.SendBool(manager, uintptr(objc.CaptureDestinationGPUTraceDocument)) {
			err = fmt.Errorf("the system writes no captures to files: %s=1 has to be in the environment when Metal starts. "+
				"The option Captures and the variable %s put it there, unless something else in the program has started Metal before: then run the program as `%s=1 program`",
				enableVariable, captureVariable, enableVariable)
			return
		}
		how := objc.New("MTLCaptureDescriptor")
		defer objc.Release(how)
		objc.SetCaptureObject.Send(how, uintptr(of))
		objc.SetCaptureDestination.Send(how, uintptr(objc.CaptureDestinationGPUTraceDocument))
		url, failed := objc.FileURL(path)
		if err = failed; err != nil {
			return
		}
		objc.SetCaptureURL.Send(how, uintptr(url))
		_, err = objc.WithError(objc.StartCapture, func(slot uintptr) uintptr {
			return objc.StartCapture.Send(manager, uintptr(how), slot) & 0xff // a BOOL
		})
	})
	return err
}

func stopCapture() {
	objc.Pool(func() {
		objc.StopCapture.Send(objc.SharedCaptureManager.SendID(objc.ClassNamed("MTLCaptureManager")))
	})
}
