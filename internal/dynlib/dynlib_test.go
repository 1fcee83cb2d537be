//go:build darwin || linux

package dynlib

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
)

// TestErrorsHaveTheirText: however many threads ask at once, each hears what was wrong with its own
// library and name.
func TestErrorsHaveTheirText(t *testing.T) {
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for k := range 200 {
				name := fmt.Sprintf("no-library-%d-%d.so", i, k)
				_, err := Open(name, purego.RTLD_NOW)
				assert.ErrorContains(t, err, name)
				symbol := fmt.Sprintf("no_symbol_%d_%d", i, k)
				_, err = Symbol(purego.RTLD_DEFAULT, symbol)
				assert.ErrorContains(t, err, symbol)
			}
		})
	}
	wait.Wait()
}
