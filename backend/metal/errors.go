//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/objc"
)

// Cause says why a command buffer failed, as far as Metal tells.
type Cause uint8

// The causes.
const (
	Unknown         Cause = iota
	OutOfMemory           // the GPU has no memory for what the command buffer needs
	Timeout               // it ran for too long
	Interactivity         // it kept the GPU from drawing the screen
	PageFault             // a kernel accessed an address without memory
	InvalidResource       // it uses a resource that was released or is not resident
	DeviceLost            // the GPU was removed, reset, or taken away from the process
	NotPermitted          // the process may not use the GPU now
	StackOverflow         // a kernel calls too deep
)

var causes = [...]string{"", "out of memory", "ran too long", "kept the screen from being drawn", "page fault", "invalid resource", "the GPU was lost", "not permitted", "stack overflow"}

// advice says for each cause what to do about it; "": nothing is known.
var advice = [...]string{
	"", "use a smaller graph or context, or close other programs",
	"cut the graph into more command buffers (the pass split, with max-ms)",
	"cut the graph into shorter command buffers (the pass split, with max-ms)",
	"run `mlxreplay check` on the graph: a kernel leaves its memory", "", "open the device again",
	"", "",
}

func (c Cause) String() string { return causes[c] }

// CommandBufferError is the error of a command buffer that failed.
type CommandBufferError struct {
	Cause Cause
	Err   error // Metal's NSError
}

// Error implements error.
func (e *CommandBufferError) Error() string {
	s := "metal: the command buffer failed"
	if e.Cause != Unknown {
		s += ": " + causes[e.Cause]
	}
	if e.Err != nil {
		s += fmt.Sprintf(": %v", e.Err)
	}
	if a := advice[e.Cause]; a != "" {
		s += " (" + a + ")"
	}
	return s
}

// Unwrap returns Metal's error.
func (e *CommandBufferError) Unwrap() error { return e.Err }

// decode wraps the error of a command buffer as a CommandBufferError with its cause. Interactivity has no
// code of its own and is known by the text.
func decode(err error) error {
	out := &CommandBufferError{Err: err}
	var e *objc.Error
	if !errors.As(err, &e) {
		return out
	}
	switch code := uint64(e.Code); {
	case strings.Contains(e.Description, "Interactivity"):
		out.Cause = Interactivity
	case code == objc.CommandBufferErrorOutOfMemory:
		out.Cause = OutOfMemory
	case code == objc.CommandBufferErrorTimeout:
		out.Cause = Timeout
	case code == objc.CommandBufferErrorPageFault:
		out.Cause = PageFault
	case code == objc.CommandBufferErrorInvalidResource:
		out.Cause = InvalidResource
	case code == objc.CommandBufferErrorNotPermitted:
		out.Cause = NotPermitted
	case code == objc.CommandBufferErrorStackOverflow:
		out.Cause = StackOverflow
	case code == objc.CommandBufferErrorDeviceRemoved, code == objc.CommandBufferErrorAccessRevoked:
		out.Cause = DeviceLost
	}
	return out
}
