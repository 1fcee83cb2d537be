//go:build !arm64

package simd

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/python"
)

// A machine runs the assembly for arm64 on another one: testdata/arm64/main.go,
// linked, in the emulator of testdata/arm64/emulate.py.
type machine struct {
	t      *testing.T
	pc     map[string]uint64 // of each function of this package
	in     io.WriteCloser
	out    *bufio.Scanner
	atEnd  bool // buffers end at an unmapped page, else they begin behind one
	called map[string]bool
}

func newMachine(t *testing.T) *machine {
	// Files for another architecture are read, so that a result of go test that is
	// kept does not outlive them.
	sources, err := filepath.Glob("*_arm64.*")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, f := range sources {
		_, err := os.ReadFile(f)
		require.NoError(t, err)
	}
	program := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-o", program, "./testdata/arm64")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()

	m := &machine{t: t, pc: map[string]uint64{}, called: map[string]bool{}}
	symbols, err := f.Symbols()
	require.NoError(t, err)
	const before, after = "github.com/mlxc/mlxc/backend/cpu/internal/simd.", "NEON.abi0"
	for _, s := range symbols {
		if n := len(s.Name); n > len(before)+len(after) && s.Name[:len(before)] == before && s.Name[n-len(after):] == after {
			m.pc[s.Name[len(before):n-len(".abi0")]] = s.Value
		}
	}
	type segment struct {
		At   uint64 `json:"at"`
		Data string `json:"data"`
	}
	var load struct {
		Segments []segment `json:"segments"`
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			data := make([]byte, p.Memsz)
			_, err := io.ReadFull(p.Open(), data[:p.Filesz])
			require.NoError(t, err)
			load.Segments = append(load.Segments, segment{p.Vaddr, hex.EncodeToString(data)})
		}
	}

	interpreter, err := python.Find("unicorn")
	require.NoError(t, err)
	cmd := exec.Command(interpreter, "-s", "testdata/arm64/emulate.py")
	cmd.Stderr = os.Stderr
	m.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	m.out = bufio.NewScanner(stdout)
	m.out.Buffer(nil, 64<<20)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		m.in.Close()
		require.NoError(t, cmd.Wait())
	})
	require.NoError(t, json.NewEncoder(m.in).Encode(load))
	return m
}

// call runs a function of the assembly. Slices are passed as pointers to copies,
// and take what the function left there; empty ones as pointers to nothing. The
// result is what a function that returns a float32 returned.
func (m *machine) call(name string, args ...any) float32 {
	m.t.Helper()
	m.called[name] = true
	type buffer struct {
		Data string `json:"data"`
		End  bool   `json:"end"`
	}
	var request struct {
		PC       uint64   `json:"pc"`
		Frame    string   `json:"frame"`
		Buffers  []buffer `json:"buffers"`
		Pointers [][3]int `json:"pointers"`
	}
	var frame []byte
	align := func(n int) {
		for len(frame)%n != 0 {
			frame = append(frame, 0)
		}
	}
	var slices [][]byte
	for _, a := range args {
		switch a := a.(type) {
		case int:
			align(8)
			frame = binary.LittleEndian.AppendUint64(frame, uint64(a))
		case float32:
			align(4)
			frame = binary.LittleEndian.AppendUint32(frame, math.Float32bits(a))
		case bool:
			frame = append(frame, 0)
			if a {
				frame[len(frame)-1] = 1
			}
		case []float32, []uint16, []byte:
			b, ok := a.([]byte)
			switch a := a.(type) {
			case []float32:
				b, ok = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(a))), 4*len(a)), true
			case []uint16:
				b, ok = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(a))), 2*len(a)), true
			}
			require.True(m.t, ok)
			align(8)
			request.Pointers = append(request.Pointers, [3]int{len(frame), len(slices), 0})
			frame = append(frame, make([]byte, 8)...)
			request.Buffers = append(request.Buffers, buffer{hex.EncodeToString(b), m.atEnd})
			slices = append(slices, b)
		default:
			require.Failf(m.t, "no such argument", "%T", a)
		}
	}
	align(8)
	result := len(frame)
	frame = append(frame, make([]byte, 8)...)
	pc, ok := m.pc[name]
	require.True(m.t, ok, "the program has no %s", name)
	request.PC, request.Frame = pc, hex.EncodeToString(frame)
	require.NoError(m.t, json.NewEncoder(m.in).Encode(request))

	require.True(m.t, m.out.Scan(), "the emulator ended: %v", m.out.Err())
	var answer struct {
		Frame   string   `json:"frame"`
		Buffers []string `json:"buffers"`
		Error   string   `json:"error"`
	}
	require.NoError(m.t, json.Unmarshal(m.out.Bytes(), &answer))
	require.Empty(m.t, answer.Error, "%s%v", name, shortened(args))
	for i, s := range slices {
		_, err := hex.Decode(s, []byte(answer.Buffers[i]))
		require.NoError(m.t, err)
	}
	got, err := hex.DecodeString(answer.Frame)
	require.NoError(m.t, err)
	return math.Float32frombits(binary.LittleEndian.Uint32(got[result:]))
}

// shortened has lengths in place of slices.
func shortened(args []any) []string {
	var s []string
	for _, a := range args {
		switch a := a.(type) {
		case []float32:
			s = append(s, fmt.Sprintf("[%d]float32", len(a)))
		case []uint16:
			s = append(s, fmt.Sprintf("[%d]uint16", len(a)))
		case []byte:
			s = append(s, fmt.Sprintf("[%d]byte", len(a)))
		default:
			s = append(s, fmt.Sprint(a))
		}
	}
	return s
}

// underQEMU runs this package's own tests of the loops under qemu's user mode,
// which try more shapes than the emulator has time for.
func underQEMU(t *testing.T, qemu string) {
	program := filepath.Join(t.TempDir(), "simd.test")
	build := exec.Command("go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	out, err = exec.Command(qemu, program, "-test.v", "-test.run", "Dot|Axpy|Max|Elementwise|GroupSums|MatVecShapes|MatMulShapes|MatMulUnpacks|ExpExact|ExpTails|Widen|Narrow|Blocks|HalvesAt|RowQ6K|Scales").CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	require.Contains(t, string(out), "/neon/")
}
