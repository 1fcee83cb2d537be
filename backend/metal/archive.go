//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/mlxc/mlxc/internal/files/regular"
	"github.com/mlxc/mlxc/internal/objc"
)

// archive keeps pipelines in a file, an MTLBinaryArchive, so that the next process need not compile
// them for the GPU again. The file's name begins with a digest of what the pipelines depend on: the GPU,
// the version of the system and our sources. It ends with a digest of the contents, so that Metal is
// never given a damaged file, and a new file, which is renamed into the folder, never replaces one that
// another process reads.
//
// The archive in which pipelines are looked up is never changed. New pipelines are collected; when none
// has come for a while, or the device is closed, they are added to a second archive, loaded from the
// newest file, and written to a new file. So it does not matter whether Metal's archives may be changed
// while they are used, which is not documented. Failures are warnings: without a file all is only slower.
type archive struct {
	device  *Device
	writing sync.Mutex // held while a file is written; it is locked before mu

	mu      sync.Mutex
	opened  bool
	dir     string  // folder of the files; "": nothing is kept
	key     string  // prefix of the files' names: the digest of GPU, system and sources
	known   objc.ID // NSArray with the one archive that was found; 0: none
	pending []objc.ID
	timer   *time.Timer
	closed  bool
}

const (
	archiveSuffix = ".metalarchive"
	// archiveIdle is the time without a new pipeline after which new ones are written.
	archiveIdle = 2 * time.Second
	// archiveBytes is the max length, in bytes, of a file that is still extended; folderBytes is the
	// max sum of all files.
	archiveBytes = 64 << 20
	folderBytes  = 256 << 20
)

func newArchive(d *Device) *archive { return &archive{device: d} }

// open looks for the file, once. The caller holds a.mu and has an autorelease pool.
func (a *archive) open() {
	if a.opened {
		return
	}
	a.opened = true
	if a.device.options.Cache == NoCache {
		return
	}
	dir := a.device.options.Cache
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			a.device.warn("compiled pipelines are not kept: %v", err)
			return
		}
		dir = filepath.Join(user, "mlxc", "metal")
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = regular.OwnFolder(dir)
	}
	if err != nil {
		a.device.warn("compiled pipelines are not kept: %v", err)
		return
	}
	system := objc.GoString(objc.SystemVersion.SendID(objc.ProcessInfo.SendID(objc.ClassNamed("NSProcessInfo"))))
	chip := objc.GoString(objc.ArchitectureName.SendID(objc.DeviceArchitecture.SendID(a.device.id)))
	h := sha256.Sum256(fmt.Appendf(nil, "pipelines, 1\n%q\n%q\n%q\n%s", a.device.Description.Name, chip, system, stamp()))
	a.dir, a.key = dir, hex.EncodeToString(h[:12])+"-"
	if id, _ := a.newest(); id != 0 {
		a.known = arrayOf(id)
		objc.Release(id)
	}
}

// arrayOf returns an NSArray of one object, retained for the caller.
func arrayOf(o objc.ID) objc.ID {
	word := new(objc.ID)
	*word = o
	var pin runtime.Pinner
	pin.Pin(word)
	defer pin.Unpin()
	return objc.Retain(objc.ArrayWithObjects.SendID(objc.ClassNamed("NSArray"), uintptr(unsafe.Pointer(word)), 1))
}

// newest loads the newest file that can be used, and removes newer ones that cannot. It returns the
// archive, which the caller releases, and its path; 0 if there is none.
func (a *archive) newest() (id objc.ID, path string) {
	for _, f := range a.files(a.key) {
		path := filepath.Join(a.dir, f.Name())
		err := whole(path, a.key, f.Name())
		if err == nil {
			if id, err = a.load(path); err == nil {
				now := time.Now()
				_ = os.Chtimes(path, now, now) // trim removes the files that were not used for the longest time
				return id, path
			}
		}
		if _, gone := os.Stat(path); errors.Is(gone, fs.ErrNotExist) { // another process has put a new one in its place
			continue
		}
		a.device.warn("the file of compiled pipelines %s cannot be used and is thrown away: %v", path, err)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.device.warn("%v", err)
		}
	}
	return 0, ""
}

// files returns the archive files whose names begin with a prefix, newest first.
func (a *archive) files(prefix string) (out []fs.FileInfo) {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), archiveSuffix) {
			continue
		}
		// A file that another process has just removed is skipped.
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(x, y fs.FileInfo) int {
		return cmp.Or(y.ModTime().Compare(x.ModTime()), strings.Compare(x.Name(), y.Name()))
	})
	return out
}

// named returns the part of a file's name after key: a digest of key and contents, and the suffix.
func named(key string, contents []byte) string {
	sum := sha256.Sum256(append([]byte(key+"\n"), contents...))
	return hex.EncodeToString(sum[:12]) + archiveSuffix
}

// whole returns an error if a file's contents do not match its name, or other users may have written it.
func whole(path, key, name string) error {
	data, err := regular.ReadOwn(path, folderBytes)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(name, named(key, data)) {
		return errors.New("its contents are not those that it was written with")
	}
	return nil
}

// load makes an MTLBinaryArchive from a file, or an empty one if path is "". The caller releases it.
func (a *archive) load(path string) (objc.ID, error) {
	d := objc.New("MTLBinaryArchiveDescriptor")
	defer objc.Release(d)
	if path != "" {
		url, err := objc.FileURL(path)
		if err != nil {
			return 0, err
		}
		objc.SetArchiveURL.Send(d, uintptr(url))
	}
	id, err := objc.WithError(objc.NewBinaryArchive, func(slot uintptr) uintptr {
		return objc.NewBinaryArchive.Send(a.device.id, uintptr(d), slot)
	})
	return objc.ID(id), err
}

// pipeline makes the pipeline of a descriptor, from the archive if that has it; else it compiles it and
// notes it to be kept. The caller has an autorelease pool.
func (a *archive) pipeline(descriptor objc.ID) (objc.ID, error) {
	a.mu.Lock()
	a.open()
	known, keep := a.known, a.dir != ""
	a.mu.Unlock()
	create := func(options uint64) (objc.ID, error) {
		id, err := objc.WithError(objc.NewPipeline, func(slot uintptr) uintptr {
			return objc.NewPipeline.Send(a.device.id, uintptr(descriptor), uintptr(options), 0, slot)
		})
		return objc.ID(id), err
	}
	if known != 0 {
		objc.SetBinaryArchives.Send(descriptor, uintptr(known))
		// Without this option Metal would compile a pipeline that the archive lacks, and not say so.
		if id, err := create(objc.PipelineOptionFailOnBinaryArchiveMiss); err == nil {
			return id, nil
		}
		objc.SetBinaryArchives.Send(descriptor, 0)
	}
	id, err := create(0)
	if err == nil && keep {
		a.add(descriptor)
	}
	return id, err
}

// add notes a descriptor whose pipeline is to be written to the file.
func (a *archive) add(descriptor objc.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.pending = append(a.pending, objc.Retain(descriptor))
	if a.timer == nil {
		a.timer = time.AfterFunc(archiveIdle, a.idle)
	} else {
		a.timer.Reset(archiveIdle)
	}
}

// idle is called when no pipeline was made for archiveIdle.
func (a *archive) idle() {
	a.flush()
}

// close writes new pipelines to the file and releases the archive.
func (a *archive) close() {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.flush()
	objc.Release(a.known)
	a.known = 0
}

// flush writes new pipelines to the file, one call at a time. Those that cannot be written are dropped.
func (a *archive) flush() {
	a.writing.Lock()
	defer a.writing.Unlock()
	a.mu.Lock()
	pending := a.pending
	a.pending = nil
	a.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	var err error
	objc.Pool(func() { err = a.write(pending) })
	for _, d := range pending {
		objc.Release(d)
	}
	if err != nil {
		a.device.warn("compiled pipelines are not kept: %v", err)
	}
}

// write makes a file of the pipelines in the newest file, which may be another process's, and new ones.
func (a *archive) write(pending []objc.ID) error {
	id, old := a.newest()
	if i, err := os.Stat(old); id != 0 && (err != nil || i.Size() > archiveBytes) {
		objc.Release(id)
		id = 0 // begin anew: most of its pipelines are of other graphs
	}
	if id == 0 {
		var err error
		if id, err = a.load(""); err != nil {
			return err
		}
	}
	defer objc.Release(id)
	added := 0
	var failed error
	for _, d := range pending {
		_, err := objc.WithError(objc.AddToArchive, func(slot uintptr) uintptr {
			return objc.AddToArchive.Send(id, uintptr(d), slot) & 0xff
		})
		if err == nil {
			added++
		} else if failed == nil {
			failed = err
		}
	}
	if added == 0 {
		return failed
	}
	// Metal takes a path to write to, not an open file, so the file is made in a folder of our own.
	folder, err := os.MkdirTemp(a.dir, temporary+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "pipelines"+archiveSuffix)
	url, err := objc.FileURL(file)
	if err != nil {
		return err
	}
	_, err = objc.WithError(objc.SerializeArchive, func(slot uintptr) uintptr {
		return objc.SerializeArchive.Send(id, uintptr(url), slot) & 0xff
	})
	if err != nil {
		return err
	}
	if err := os.Chmod(file, 0o600); err != nil { // Metal makes it with the umask's permissions
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	path := filepath.Join(a.dir, a.key+named(a.key, data))
	if err := os.Rename(file, path); err != nil {
		return err
	}
	// Two processes may have begun with the same file: the file that is written last is kept.
	for _, f := range a.files(a.key) {
		if f.Name() != filepath.Base(path) {
			_ = os.Remove(filepath.Join(a.dir, f.Name())) // if it stays, it is still older and not taken
		}
	}
	return errors.Join(failed, a.trim(filepath.Base(path)))
}

// temporary is the prefix of the names of folders in which files are written.
const temporary = ".writing-"

// trim removes the files that were not used for the longest time, but not keep, until the rest has at most
// folderBytes. It also removes temporary folders that killed processes have left.
func (a *archive) trim(keep string) error {
	total := int64(0)
	for _, f := range a.files("") {
		if total += f.Size(); total <= folderBytes || f.Name() == keep {
			continue
		}
		if err := os.Remove(filepath.Join(a.dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	entries, err := os.ReadDir(a.dir)
	for _, e := range entries {
		if i, gone := e.Info(); gone == nil && e.IsDir() && strings.HasPrefix(e.Name(), temporary) && time.Since(i.ModTime()) > 24*time.Hour {
			err = errors.Join(err, os.RemoveAll(filepath.Join(a.dir, e.Name())))
		}
	}
	return err
}
