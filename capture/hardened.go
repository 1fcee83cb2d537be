package capture

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
)

// Of a code signature, as Apple publishes it in xnu's cs_blobs.h; its numbers are big-endian.
const (
	loadCodeSignature = 0x1d
	superBlob         = 0xfade0cc0
	codeDirectory     = 0xfade0c02
	entitlements      = 0xfade7171

	flagRestrict = 0x800
	flagRuntime  = 0x10000
)

// Refuses says why macOS's loader puts no libraries into the program at a path; "" if nothing says so. Programs that it cannot read
// are no reason.
func Refuses(path string) string { return refuses(path, 0) }

func refuses(path string, depth int) string {
	if depth > 4 { // scripts that name each other
		return ""
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		path = p
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, folder := range []string{"/System/", "/usr/bin/", "/usr/libexec/", "/usr/sbin/", "/bin/", "/sbin/"} {
		if strings.HasPrefix(path, folder) {
			return path + " is one of the system's programs, which macOS protects: use one that was installed elsewhere"
		}
	}
	head := make([]byte, 256)
	n, _ := f.ReadAt(head, 0)
	if line, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		if words := strings.Fields(string(line)); len(words) > 0 {
			if why := refuses(words[0], depth+1); why != "" {
				return path + " is a script: start its interpreter with it; " + why
			}
		}
		return ""
	}
	m, err := macho.NewFile(f)
	if err != nil {
		fat, err := macho.NewFatFile(f)
		if err != nil {
			return ""
		}
		for _, a := range fat.Arches {
			if a.Cpu == macho.CpuArm64 {
				m = a.File
			}
		}
		if m == nil {
			return path + " has no code for arm64"
		}
	}
	return signed(path, f, m)
}

// signed says what the code signature of a program has against libraries.
func signed(path string, f *os.File, m *macho.File) string {
	const most = 16 << 20 // a signature has a few digests a page
	for _, l := range m.Loads {
		raw := l.Raw()
		if len(raw) < 16 || m.ByteOrder.Uint32(raw) != loadCodeSignature {
			continue
		}
		at, size := m.ByteOrder.Uint32(raw[8:]), m.ByteOrder.Uint32(raw[12:])
		if size > most {
			return ""
		}
		data := make([]byte, size)
		// The place counts from the begin of the program, which in a file of several is not that of the file: those are seldom.
		if _, err := f.ReadAt(data, int64(at)); err != nil {
			return ""
		}
		flags, granted := signature(data)
		const advice = "; sign a copy of it without: codesign -f -s - --remove-signature COPY, then codesign -s - COPY"
		switch {
		case flags&flagRestrict != 0:
			return path + " is signed as restricted: its loader drops libraries that are inserted" + advice
		case flags&flagRuntime != 0 && !strings.Contains(granted, "com.apple.security.cs.allow-dyld-environment-variables"):
			return path + " has the hardened runtime: its loader drops libraries that are inserted" + advice
		case flags&flagRuntime != 0 && !strings.Contains(granted, "com.apple.security.cs.disable-library-validation"):
			return path + " has the hardened runtime, which takes libraries of its own team alone" + advice
		}
	}
	return ""
}

// signature returns the flags of the code directory and the text of the entitlements.
func signature(data []byte) (flags uint32, granted string) {
	be := binary.BigEndian
	if len(data) < 12 || be.Uint32(data) != superBlob {
		return 0, ""
	}
	for i := range int(min(be.Uint32(data[8:]), 64)) {
		if len(data) < 12+8*i+8 {
			break
		}
		at := be.Uint32(data[12+8*i+4:])
		if uint64(at)+16 > uint64(len(data)) {
			continue
		}
		b := data[at:]
		switch n := be.Uint32(b[4:]); be.Uint32(b) {
		case codeDirectory:
			flags |= be.Uint32(b[12:])
		case entitlements:
			granted = string(b[8:min(uint64(max(n, 8)), uint64(len(b)))])
		}
	}
	return flags, granted
}
