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

// digests remembers the SHA-256 of ranges of files. For each file there is a small text file
// in a cache directory:
//
//	mlxc digests 2
//	file "/models/a.gguf" 98362432 1763722800000000000 1763722800000000000 2049 131
//	range 1792 65536 5f16f4c7f1…
//	end 1c291ca3
//
// The second line has the state of the file: its size in bytes, the times of its last write
// (mtime) and of its last change of any kind (ctime) in nanoseconds, its device and its
// inode. Digests count only for a file in exactly this state. A range has its offset and
// length in bytes. The last line has the CRC-32C of everything before it. A text file that
// does not parse is ignored, and digests that cannot be written are computed again next
// time. The zero value remembers nothing.
type digests struct{ dir string }

// fileState identifies a file and its contents at one time.
type fileState struct {
	path          string // absolute
	size          int64  // in bytes
	mtime, ctime  int64  // in nanoseconds
	device, inode uint64
}

// identityOf is the function identity, which tests replace.
var identityOf = identity

func stateOf(path string, info os.FileInfo) fileState {
	s := fileState{path: path, size: info.Size(), mtime: info.ModTime().UnixNano()}
	s.ctime, s.device, s.inode = identityOf(info)
	return s
}

// fileRange is a range of bytes of a file.
type fileRange struct{ offset, length int64 }

const (
	digestsHead   = "mlxc digests 2\n"
	maxDigestFile = 8 << 20 // the max size of a cache file in bytes
)

// settled is how long ago a file must have changed last before its digests are remembered.
// A younger file might be written again without a visible change of its times, because file
// systems record times with a limited resolution.
var settled = 2 * time.Second

// openDigests returns the digests that are remembered in dir; "" stands for mlxc/digests in
// the user's cache directory.
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

// load returns the digests that are remembered for state s, or nil.
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
		return nil // damaged, or about another state of the file
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

// save replaces what is remembered of the file of s. It does nothing if the file changed a
// moment ago.
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
	// An error is ignored, because without the cache only time is lost.
	_ = atomicfile.Replace(d.file(s.path), func(f *os.File) error {
		_, err := f.WriteString(b.String())
		return err
	})
}

// maxRemembered is the max number of files of which digests are remembered.
const maxRemembered = 512

// forget makes room for one more cache file by removing the oldest ones.
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
		_ = os.Remove(filepath.Join(d.dir, e.Name())) // another process may have removed it already
	}
}

func (s fileState) line() string {
	return fmt.Sprintf("file %q %d %d %d %d %d\n", s.path, s.size, s.mtime, s.ctime, s.device, s.inode)
}
