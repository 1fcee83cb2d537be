//go:build linux

package metal

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Stamp is the name of the function by which a precompiled library of our kernels is recognized.
func Stamp() string { return stamp() }

// Idle writes new pipelines to the archive, as the device does when none was made for a while.
func Idle(d *Device) { d.pipelines.archive.idle() }

// Trimmed makes archive files of a size, each an hour newer than the one before, and a temporary folder that a
// killed process has left. It returns the names that are left after trim, which keeps the file keep.
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

// Machine returns the error with which a system and processor are refused, if they are.
func Machine(system, processor string) error { return machine(system, processor) }

// Limits are limits of Metal that tests lower, so that small graphs exceed them; 0: Metal's own.
type Limits struct {
	Commands    int   // max commands of an indirect command buffer
	Reach       int64 // the first offset, in bytes, that is too large for indirect commands
	Samples     int   // max samples of a sample buffer
	Uncompleted int   // max command buffers of a queue: at least twice atOnce
}

// Lower sets limits for devices that are opened from now on, until the function that it returns is called.
func Lower(l Limits) (back func()) {
	was := Limits{mostCommands, reach, mostSamples, maxUncompleted}
	set := func(l Limits) {
		mostCommands, reach, mostSamples, maxUncompleted = l.Commands, l.Reach, l.Samples, l.Uncompleted
	}
	set(Limits{cmp.Or(l.Commands, was.Commands), cmp.Or(l.Reach, was.Reach), cmp.Or(l.Samples, was.Samples), cmp.Or(l.Uncompleted, was.Uncompleted)})
	return func() { set(was) }
}
