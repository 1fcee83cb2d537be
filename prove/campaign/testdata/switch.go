package prove

// This file is compiled into a prover that has a switch at each check.

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// off is the check that is switched off, −1 for none.
var off atomic.Int64

func init() {
	switchOff(-1)
	if n, err := strconv.Atoi(os.Getenv("MLXC_PROVE_CHECK_OFF")); err == nil {
		switchOff(n)
	}
}

// reached holds the checks that were come to while somebody watched.
var (
	watching atomic.Bool
	reached  sync.Map
)

func switchOff(n int) { off.Store(int64(n)) }

// watchChecks returns the checks that f comes to.
func watchChecks(f func()) (out []int) {
	reached.Clear()
	watching.Store(true)
	f()
	watching.Store(false)
	reached.Range(func(n, _ any) bool { out = append(out, n.(int)); return true })
	slices.Sort(out)
	return out
}

// reachedFile gets the numbers of the checks that a whole process comes to.
var reachedFile = func() *os.File {
	path := os.Getenv("MLXC_PROVE_REACHED")
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	watching.Store(true)
	return f
}()

func checkOff(n int) bool {
	if watching.Load() {
		if _, known := reached.LoadOrStore(n, true); !known && reachedFile != nil {
			fmt.Fprintln(reachedFile, n)
		}
	}
	return int64(n) == off.Load()
}

func checkOffValue[T any](n int, v T) T {
	if checkOff(n) {
		var zero T
		return zero
	}
	return v
}
