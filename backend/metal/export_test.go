//go:build linux

package metal

import (
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
