//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"fmt"
	"sync"
)

// warnings tells the user, once each, what a device does otherwise than it was asked to.
type warnings struct {
	tell func(text string) // receives them; nil: nobody does

	mu   sync.Mutex
	told map[string]bool
}

// warn sends a text to tell, unless this was done before in the life of the device.
func (w *warnings) warn(format string, args ...any) {
	text := "metal: " + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tell == nil || w.told[text] {
		return
	}
	if w.told == nil {
		w.told = map[string]bool{}
	}
	w.told[text] = true
	w.tell(text)
}
