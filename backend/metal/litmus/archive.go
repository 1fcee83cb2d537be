//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/objc"
)

// archived writes the pipeline of a kernel to an archive file, opens the file, and makes the pipeline of what
// is in it; the caller releases that. It is an error if the archive has a pipeline of the kernel other.
func (p *program) archived(kernel, other string) (objc.ID, error) {
	dir, err := os.MkdirTemp("", "litmus")
	if err != nil {
		return 0, &unsupported{err.Error(), "make room in the folder for temporary files"}
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pipelines.metalarchive")
	d, err := p.descriptor(kernel)
	if err != nil {
		return 0, err
	}
	defer objc.Release(d)
	first, err := p.archive("")
	if err != nil {
		return 0, err
	}
	defer objc.Release(first)
	if _, err := objc.WithError(objc.AddToArchive, func(slot uintptr) uintptr {
		return objc.AddToArchive.Send(first, uintptr(d), slot) & 0xff
	}); err != nil {
		return 0, fmt.Errorf("the archive does not take a pipeline: %w", err)
	}
	url, err := objc.FileURL(file)
	if err != nil {
		return 0, err
	}
	if _, err := objc.WithError(objc.SerializeArchive, func(slot uintptr) uintptr {
		return objc.SerializeArchive.Send(first, uintptr(url), slot) & 0xff
	}); err != nil {
		return 0, fmt.Errorf("the archive is not written: %w", err)
	}
	again, err := p.archive(file)
	if err != nil {
		return 0, fmt.Errorf("the archive that was written is not opened: %w", err)
	}
	defer objc.Release(again)
	found, err := p.only(kernel, d, again)
	if err != nil {
		return 0, fmt.Errorf("the archive that was written has not the pipeline: %w", err)
	}
	missing, err := p.descriptor(other)
	if err == nil {
		defer objc.Release(missing)
		var wrong objc.ID
		if wrong, err = p.only(other, missing, again); err == nil {
			objc.Release(wrong)
			objc.Release(found)
			return 0, errors.New("the archive is said to have a pipeline that nobody has put there")
		}
	}
	return found, nil
}

// archive opens the archive in a file, or makes an empty one if file is "". The caller releases it.
func (r *rig) archive(file string) (objc.ID, error) {
	d := objc.New("MTLBinaryArchiveDescriptor")
	defer objc.Release(d)
	if file != "" {
		url, err := objc.FileURL(file)
		if err != nil {
			return 0, err
		}
		objc.SetArchiveURL.Send(d, uintptr(url))
	}
	id, err := objc.WithError(objc.NewBinaryArchive, func(slot uintptr) uintptr {
		return objc.NewBinaryArchive.Send(r.device, uintptr(d), slot)
	})
	return objc.ID(id), err
}

// only makes the pipeline of a descriptor from an archive, and fails if that lacks it.
func (r *rig) only(name string, descriptor, archive objc.ID) (objc.ID, error) {
	pinned(&archive, func(p uintptr) {
		objc.SetBinaryArchives.Send(descriptor, uintptr(objc.ArrayWithObjects.SendID(objc.ClassNamed("NSArray"), p, 1)))
	})
	return r.described(name, descriptor, objc.PipelineOptionFailOnBinaryArchiveMiss)
}
