//go:build linux

package metal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// kept returns the path of the one file of pipelines in a folder, "" if there is none.
func kept(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	switch len(entries) {
	case 0:
		return ""
	case 1:
		return filepath.Join(dir, entries[0].Name())
	}
	assert.Fail(t, "more than one file is kept", "%v", entries)
	return ""
}

// TestArchive: a device finds the pipelines that an earlier one has compiled, and adds its own to the file. A
// file that cannot be used is removed with a warning, and nothing else fails.
func TestArchive(t *testing.T) {
	sample.Long(t)
	const added, serialized = "addComputePipelineFunctionsWithDescriptor:error:", "serializeToURL:error:"
	l := fakemetal.Build(t)
	dir := t.TempDir()
	few, more := chain(t, "v_Sigmoidfloat32float32"), chain(t, "v_Sigmoidfloat32float32", "v_Gelufloat32float32")
	rename := func(t *testing.T, text string) {
		old := kept(t, dir)
		key, _, _ := strings.Cut(filepath.Base(old), "-")
		sum := sha256.Sum256([]byte(key + "-\n" + text))
		path := filepath.Join(dir, key+"-"+hex.EncodeToString(sum[:12])+".metalarchive")
		require.NoError(t, os.WriteFile(old, []byte(text), 0o600))
		require.NoError(t, os.Rename(old, path))
	}
	var lines int
	for _, c := range []struct {
		name     string
		prepare  func(t *testing.T)
		options  metal.Options
		faults   []fakemetal.Fault
		more     bool
		added    int
		nothing  bool // no file is written
		warnings []string
		lines    int // lines of the stand-in's file: a head, and one for each pipeline
	}{
		{name: "the first", added: 1, lines: 2},
		{name: "the same", lines: 2},
		{name: "one more", more: true, added: 1, lines: 3},
		{name: "for indirect command buffers", options: metal.Options{Plan: metal.Indirect}, more: true, added: 2, lines: 5},
		{name: "not kept", options: metal.Options{Cache: metal.NoCache}, more: true, lines: 5},
		{name: "damaged", prepare: func(t *testing.T) { require.NoError(t, os.WriteFile(kept(t, dir), []byte("x"), 0o600)) }, more: true, added: 2,
			warnings: []string{"its contents are not those that it was written with"}, lines: 3},
		{name: "another system's", prepare: func(t *testing.T) { rename(t, "archive of a later Metal\n") }, more: true, added: 2, warnings: []string{"the file is no archive"}, lines: 3},
		{name: "another user's", prepare: func(t *testing.T) { require.NoError(t, os.Chmod(kept(t, dir), 0o666)) }, more: true, added: 2, warnings: []string{"others may write"}, lines: 3},
		{name: "not opened", faults: []fakemetal.Fault{{On: fakemetal.Archive, Nth: 1}}, added: 1, warnings: []string{"is thrown away: the archive cannot be used"}, lines: 2},
		{name: "not added", more: true, faults: []fakemetal.Fault{{On: fakemetal.Archive, Nth: 3, Text: "no room"}}, added: 1, nothing: true, warnings: []string{"not kept: no room"}, lines: 2},
		{name: "not written", more: true, faults: []fakemetal.Fault{{On: fakemetal.Archive, Nth: 4, Text: "disk is full"}}, added: 1, warnings: []string{"not kept: disk is full"}, lines: 2},
		{name: "not found, though it is there", faults: []fakemetal.Fault{{On: fakemetal.PipelineState, Nth: 1}}, added: 1, lines: 2},
		{name: "no folder", prepare: func(t *testing.T) {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.WriteFile(dir, nil, 0o600))
		}, warnings: []string{"compiled pipelines are not kept"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.prepare != nil {
				c.prepare(t)
			}
			m := serve(t, fakemetal.Options{Faults: c.faults})
			var warnings []string
			o := c.options
			o.Warn = func(w string) { warnings = append(warnings, w) }
			if o.Cache == "" {
				o.Cache = dir
			}
			before, written := l.Sent(added), l.Sent(serialized)
			d := open(t, o)
			g := few
			if c.more {
				g = more
			}
			_, err := prepared(d, g)
			require.NoError(t, err)
			require.NoError(t, d.Close())
			assert.Equal(t, c.added, l.Sent(added)-before)
			assert.Equal(t, c.added > 0 && !c.nothing, l.Sent(serialized)-written > 0)
			require.Len(t, warnings, len(c.warnings))
			for i := range warnings {
				assert.Contains(t, warnings[i], c.warnings[i])
			}
			if c.lines > 0 {
				text, err := os.ReadFile(kept(t, dir))
				require.NoError(t, err)
				lines = strings.Count(string(text), "\n")
				assert.Equal(t, c.lines, lines)
			}
			m.Close()
		})
	}
}

// TestArchiveIdle: pipelines are written also if a process never closes its device, and those that two
// devices add are both kept.
func TestArchiveIdle(t *testing.T) {
	dir := t.TempDir()
	serve(t, fakemetal.Options{})
	a, b := open(t, metal.Options{Cache: dir}), open(t, metal.Options{Cache: dir})
	for d, f := range map[*metal.Device]string{a: "v_Sigmoidfloat32float32", b: "v_Silufloat32float32"} {
		_, err := prepared(d, chain(t, f))
		require.NoError(t, err)
	}
	metal.Idle(a)
	text, err := os.ReadFile(kept(t, dir))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(text), "\n"))
	require.NoError(t, b.Close())
	text, err = os.ReadFile(kept(t, dir))
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(text), "\n"))
	require.NoError(t, a.Close())
}

// TestArchiveBounded: if the folder is too large, the files that were not used for the longest time are
// removed, but never the one that was just written.
func TestArchiveBounded(t *testing.T) {
	dir := t.TempDir()
	names := metal.Trimmed(t, dir, 100<<20, []string{"oldest", "old", "new", "newest"}, "oldest")
	assert.Equal(t, []string{"new.metalarchive", "newest.metalarchive", "oldest.metalarchive"}, names)
}

// TestArchiveTogether: devices that write at the same time leave one file that is valid.
func TestArchiveTogether(t *testing.T) {
	dir := t.TempDir()
	serve(t, fakemetal.Options{})
	o := metal.Options{Cache: dir, Warn: func(w string) { assert.Fail(t, "a warning", w) }}
	for range 5 {
		var devices []*metal.Device
		for i := range 4 {
			d := open(t, o)
			_, err := prepared(d, chain(t, []string{"v_Sigmoidfloat32float32", "v_Gelufloat32float32", "v_Silufloat32float32", "v_GeluErffloat32float32"}[i]))
			require.NoError(t, err)
			devices = append(devices, d)
		}
		var wait sync.WaitGroup
		for _, d := range devices {
			wait.Go(func() { assert.NoError(t, d.Close()) })
		}
		wait.Wait()
	}
	d := open(t, o)
	_, err := prepared(d, chain(t, "v_Sigmoidfloat32float32"))
	require.NoError(t, err)
	require.NoError(t, d.Close())
	assert.NotEmpty(t, kept(t, dir))
}
