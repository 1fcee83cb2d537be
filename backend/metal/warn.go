//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"fmt"
	"sync"
)

// warnings tell the user what is done in another way than was asked for.
type warnings struct {
	tell func(text string) // nil: nobody listens

	mu   sync.Mutex
	told map[string]bool
}

// warn says something once in the life of a device.
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
