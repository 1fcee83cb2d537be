package mlxg

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/ir"
)

// digests remembers the SHA-256 of ranges of files, one small text
// file for each of them:
//
//	mlxc digests 2
//	file "/models/a.gguf" 98362432 1763722800000000000 1763722800000000000 2049 131
//	range 1792 65536 5f16f4c7f1…
//	end 1c291ca3
//
// The second line has the size in bytes, the times of the last write and of the last
// change of anything about the file in nanoseconds, its device and inode: where any
// differs it is another state, of which nothing is known. A range has its offset and length in
// bytes. The last line has the CRC-32C of everything before it. A file that does not parse counts
// as absent, and digests that cannot be written are computed again next time. The zero value remembers nothing.
type digests struct{ dir string }

// fileState is a file as it was at one time.
type fileState struct {
	path          string // absolute
	size          int64
	mtime, ctime  int64 // ns
	device, inode uint64
}

// identityOf is identity; a test may take another.
var identityOf = identity

func stateOf(path string, info os.FileInfo) fileState {
	s := fileState{path: path, size: info.Size(), mtime: info.ModTime().UnixNano()}
	s.ctime, s.device, s.inode = identityOf(info)
	return s
}

// fileRange is a range of bytes of a file.
type fileRange struct{ offset, length int64 }

const (
	digestsHead = "mlxc digests 2\n"
	// maxDigestFile bounds what is read of a cache file.
	maxDigestFile = 8 << 20
)

// settled is how old a file's modification time must be before its
// digests are remembered: a younger file may be written again within the
// resolution of its clock.
var settled = 2 * time.Second

// openDigests returns the digests remembered in dir, "" for the user's cache.
func openDigests(dir string) digests {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return digests{}
		}
		dir = filepath.Join(base, "mlxc", "digests")
	}
	return digests{dir}
}

func (d digests) file(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(d.dir, hex.EncodeToString(sum[:16]))
}

// load returns what is known of s, nil for nothing.
func (d digests) load(s fileState) map[fileRange]ir.Digest {
	if d.dir == "" {
		return nil
	}
	f, err := os.Open(d.file(s.path))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDigestFile+1))
	if err != nil || len(text) > maxDigestFile {
		return nil
	}
	body, ok := bytes.CutPrefix(text, []byte(digestsHead+s.line()))
	if !ok {
		return nil // corrupt, or of another state of the file
	}
	out := map[fileRange]ir.Digest{}
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		var r fileRange
		var sum []byte
		var crc uint32
		line := lines.Text()
		if n, _ := fmt.Sscanf(line, "end %08x", &crc); n == 1 {
			at := len(text) - len(line) - 1
			if at >= 0 && crc == crc32.Checksum(text[:at], castagnoli) {
				return out
			}
			return nil
		}
		if n, _ := fmt.Sscanf(line, "range %d %d %x", &r.offset, &r.length, &sum); n != 3 || len(sum) != len(ir.Digest{}) {
			return nil
		}
		out[r] = ir.Digest(sum)
	}
	return nil // the end is missing
}

// save replaces what is known of the file of s.
func (d digests) save(s fileState, known map[fileRange]ir.Digest) {
	if d.dir == "" || time.Since(time.Unix(0, max(s.mtime, s.ctime))) < settled {
		return
	}
	var b strings.Builder
	b.WriteString(digestsHead + s.line())
	ranges := slices.SortedFunc(maps.Keys(known), func(x, y fileRange) int {
		return cmp.Or(cmp.Compare(x.offset, y.offset), cmp.Compare(x.length, y.length))
	})
	for _, r := range ranges {
		fmt.Fprintf(&b, "range %d %d %s\n", r.offset, r.length, known[r])
	}
	fmt.Fprintf(&b, "end %08x\n", crc32.Checksum([]byte(b.String()), castagnoli))
	if b.Len() > maxDigestFile || os.MkdirAll(d.dir, 0o755) != nil {
		return
	}
	d.forget()
	// This is a cache: an error here only costs time later.
	_ = atomicfile.Replace(d.file(s.path), func(f *os.File) error {
		_, err := f.WriteString(b.String())
		return err
	})
}

// maxRemembered is how many files are remembered.
const maxRemembered = 512

// forget removes the files that were remembered first, where there are too many.
func (d digests) forget() {
	entries, err := os.ReadDir(d.dir)
	if err != nil || len(entries) < maxRemembered {
		return
	}
	age := func(e os.DirEntry) int64 {
		if info, err := e.Info(); err == nil {
			return info.ModTime().UnixNano()
		}
		return 0
	}
	slices.SortFunc(entries, func(x, y os.DirEntry) int { return cmp.Compare(age(x), age(y)) })
	for _, e := range entries[:len(entries)-maxRemembered+1] {
		_ = os.Remove(filepath.Join(d.dir, e.Name())) // somebody else may have
	}
}

func (s fileState) line() string {
	return fmt.Sprintf("file %q %d %d %d %d %d\n", s.path, s.size, s.mtime, s.ctime, s.device, s.inode)
}
