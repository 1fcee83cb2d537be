package capture

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// blob is a part of a code signature.
func blob(magic uint32, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, magic), uint32(8+len(body))), body...)
}

// signatureOf is a code signature with flags and, if there are some, entitlements.
func signatureOf(flags uint32, rights string) []byte {
	directory := blob(codeDirectory, binary.BigEndian.AppendUint32(make([]byte, 4), flags))
	head := binary.BigEndian.AppendUint32(nil, superBlob)
	for _, v := range []uint32{0, 2, 0, 28, 5, uint32(28 + len(directory))} {
		head = binary.BigEndian.AppendUint32(head, v)
	}
	return append(append(head, directory...), blob(entitlements, []byte(rights))...)
}

// program is a Mach-O file for arm64 with a signature and nothing else.
func program(t *testing.T, signature []byte) string {
	t.Helper()
	const headers = 32 + 16
	var b []byte
	for _, v := range []uint32{0xfeedfacf, 0x0100000c, 0, 2, 1, 16, 0, 0, loadCodeSignature, 16, headers, uint32(len(signature))} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, append(b, signature...), 0o700))
	return path
}

// What a program's signature forbids is said before the program runs.
func TestRefuses(t *testing.T) {
	plain, hardened := program(t, signatureOf(2, "")), program(t, signatureOf(flagRuntime, ""))
	require.Empty(t, Refuses(plain))
	require.Contains(t, Refuses(hardened), "has the hardened runtime")
	require.Contains(t, Refuses(program(t, signatureOf(flagRestrict, ""))), "is signed as restricted")
	const inserted = "com.apple.security.cs.allow-dyld-environment-variables"
	require.Contains(t, Refuses(program(t, signatureOf(flagRuntime, inserted))), "of its own team alone")
	require.Empty(t, Refuses(program(t, signatureOf(flagRuntime, inserted+" com.apple.security.cs.disable-library-validation"))))
	script := filepath.Join(t.TempDir(), "script")
	for interpreter, why := range map[string]string{hardened: "is a script: start its interpreter with it", plain: ""} {
		require.NoError(t, os.WriteFile(script, []byte("#!"+interpreter+" -x\n"), 0o700))
		if why == "" {
			require.Empty(t, Refuses(script))
		} else {
			require.Contains(t, Refuses(script), why)
		}
	}
	require.Empty(t, Refuses(filepath.Join(t.TempDir(), "nothing")))
	system := "/usr/bin/env"
	if _, err := os.Stat(system); err == nil {
		require.Contains(t, Refuses(system), "one of the system's programs")
	}
}

// Signatures that are cut short, or name what is not there, say nothing and end nothing.
func TestHostileSignatures(t *testing.T) {
	whole := signatureOf(flagRuntime, "rights")
	for cut := range len(whole) {
		signature(whole[:cut])
		Refuses(program(t, whole[:cut]))
	}
	for i := range 8 * len(whole) {
		d := bytes.Clone(whole)
		d[i/8] ^= 1 << (i % 8)
		signature(d)
	}
}
