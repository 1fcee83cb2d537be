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
// them for the GPU again. A file is found by what its pipelines depend on: the GPU, the version of
// the system, our sources. Its name ends with the digest of its contents: what a disk has damaged is
// never given to Metal, and a new file, which comes by renaming, never takes an old one's place while
// somebody reads that.
//
// The archive in which pipelines are looked up never changes: what is new waits, and goes to another,
// which begins as the file is then, when no more has come for a while or the device is closed. So
// nothing that is not known of Metal's archives, whether they can be changed while they are used,
// matters. Without the file everything works, and takes longer: whatever is wrong is a warning.
type archive struct {
	device  *Device
	writing sync.Mutex // held while a file is written; taken without mu

	mu      sync.Mutex
	opened  bool
	dir     string  // "": nothing is kept
	key     string  // how the names of its files begin
	known   objc.ID // NSArray of the archive that was found; 0: none
	pending []objc.ID
	timer   *time.Timer
	closed  bool
}

const (
	archiveSuffix = ".metalarchive"
	// archiveIdle is for how long no pipeline is made before new ones are written.
	archiveIdle = 2 * time.Second
	// archiveBytes is the greatest length of a file that is extended, folderBytes that of all files
	// together.
	archiveBytes = 64 << 20
	folderBytes  = 256 << 20
)

func newArchive(d *Device) *archive { return &archive{device: d} }

// open finds the file, once; a.mu is held, inside of a pool.
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

// arrayOf is an NSArray of one object, which it retains. It is the caller's.
func arrayOf(o objc.ID) objc.ID {
	word := new(objc.ID)
	*word = o
	var pin runtime.Pinner
	pin.Pin(word)
	defer pin.Unpin()
	return objc.Retain(objc.ArrayWithObjects.SendID(objc.ClassNamed("NSArray"), uintptr(unsafe.Pointer(word)), 1))
}

// newest opens the newest file that Metal takes, and throws away those that it does not take. The
// archive, 0 if there is none, is the caller's.
func (a *archive) newest() (id objc.ID, path string) {
	for _, f := range a.files(a.key) {
		path := filepath.Join(a.dir, f.Name())
		err := whole(path, a.key, f.Name())
		if err == nil {
			if id, err = a.load(path); err == nil {
				now := time.Now()
				_ = os.Chtimes(path, now, now) // says what was used last
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

// files are those whose names begin with a prefix, newest first.
func (a *archive) files(prefix string) (out []fs.FileInfo) {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), archiveSuffix) {
			continue
		}
		// What another process removes meanwhile is gone.
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(x, y fs.FileInfo) int {
		return cmp.Or(y.ModTime().Compare(x.ModTime()), strings.Compare(x.Name(), y.Name()))
	})
	return out
}

// named is the end of the name of a file whose name begins with a key and that has these contents.
func named(key string, contents []byte) string {
	sum := sha256.Sum256(append([]byte(key+"\n"), contents...))
	return hex.EncodeToString(sum[:12]) + archiveSuffix
}

// whole returns an error if a file does not hold what its name says, or others may have written it.
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

// load makes an archive of a file, or an empty one of "".
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

// pipeline makes the pipeline of a descriptor, inside of a pool: from the archive if that has it.
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
		// Only if it is asked for does Metal say that an archive lacks a pipeline.
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

// add notes a descriptor whose pipeline is to be kept.
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

// idle is called when no pipeline was made for a while.
func (a *archive) idle() {
	a.flush()
}

// close writes what is new, and releases all.
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

// flush writes what is new, after whoever writes now. What cannot be written is forgotten.
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

// write makes a file of the newest that there is, another process's perhaps, and of pipelines.
func (a *archive) write(pending []objc.ID) error {
	id, old := a.newest()
	if i, err := os.Stat(old); id != 0 && (err != nil || i.Size() > archiveBytes) {
		objc.Release(id)
		id = 0 // what it holds is mostly of other graphs
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
	// Metal writes to a name, not to a file that is open.
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
	if err := os.Chmod(file, 0o600); err != nil { // Metal's is as the user's mask has it
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
	// Two processes may have begun with the same file: the later one's is kept.
	for _, f := range a.files(a.key) {
		if f.Name() != filepath.Base(path) {
			_ = os.Remove(filepath.Join(a.dir, f.Name())) // it is an older one also if it stays
		}
	}
	return errors.Join(failed, a.trim(filepath.Base(path)))
}

// temporary is how the names of folders begin that files are written in.
const temporary = ".writing-"

// trim removes what was not used for the longest time until the rest is no more than the folder may
// hold, and what processes have left that were killed. It keeps the file keep.
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
