package cmd_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// contradict is "contradict OLD NEW FILE.mlxg": it replaces bytes of a container's
// contents and makes all its checksums right again, so that only the digests of the
// contents say that they are others.
func contradict(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 || len(args[0]) != len(args[1]) {
		ts.Fatalf("usage: contradict OLD NEW FILE.mlxg, OLD and NEW of one length")
	}
	path := ts.MkAbs(args[2])
	data, err := os.ReadFile(path)
	ts.Check(err)
	at := bytes.LastIndex(data, []byte(args[0]))
	if at < 0 {
		ts.Fatalf("%s has no %q", args[2], args[0])
	}
	copy(data[at:], args[1])
	// docs/file-format.md, section 1.
	const head, entry = 16, 28
	le, table := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	n := int(le.Uint32(data[12:]))
	for i := range n {
		e := data[head+i*entry:]
		off, length := le.Uint64(e[8:]), le.Uint64(e[16:])
		le.PutUint32(e[24:], crc32.Checksum(data[off:off+length], table))
	}
	end := head + n*entry
	le.PutUint32(data[end:], crc32.Checksum(data[:end], table))
	ts.Check(os.WriteFile(path, data, 0o666))
}
