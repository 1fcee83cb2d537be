//go:build linux

package metal

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Stamp is what a library made of our kernels is known by.
func Stamp() string { return stamp() }

// Idle does what a device does when no pipeline was made for a while.
func Idle(d *Device) { d.pipelines.archive.idle() }

// Trimmed makes files of a size, each an hour newer than the one before, and a folder that a killed
// process has left; it returns what is left when the archive keep was written.
func Trimmed(t *testing.T, dir string, size int64, files []string, keep string) (left []string) {
	for i, name := range files {
		path := filepath.Join(dir, name+archiveSuffix)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-len(files)) * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	stale := filepath.Join(dir, temporary+"1")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(stale, at, at); err != nil {
		t.Fatal(err)
	}
	a := &archive{device: &Device{}, dir: dir}
	if err := a.trim(keep + archiveSuffix); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	return left
}

// Machine says whether a machine is refused.
func Machine(system, processor string) error { return machine(system, processor) }

// Limits are limits of Metal's that tests lower, so that small graphs reach them; 0: as Metal has them.
type Limits struct {
	Commands    int   // of an indirect command buffer
	Reach       int64 // beyond all offsets in indirect commands
	Samples     int   // of a sample buffer
	Uncompleted int   // command buffers of a queue: at least twice as many as are committed before one looks for a context
}

// Lower has devices that are opened from now on keep limits, until what it returns is called.
func Lower(l Limits) (back func()) {
	was := Limits{mostCommands, reach, mostSamples, maxUncompleted}
	set := func(l Limits) {
		mostCommands, reach, mostSamples, maxUncompleted = l.Commands, l.Reach, l.Samples, l.Uncompleted
	}
	set(Limits{cmp.Or(l.Commands, was.Commands), cmp.Or(l.Reach, was.Reach), cmp.Or(l.Samples, was.Samples), cmp.Or(l.Uncompleted, was.Uncompleted)})
	return func() { set(was) }
}
