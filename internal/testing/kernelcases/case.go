package kernelcases

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Case is a dispatch, or several, with the expected results.
type Case struct {
	Name      string // unique: the kernel, and what is special about the case
	Kernel    string // function in MLX's library
	Oracle    string // what computed the results
	Constants []Constant
	Args      []Arg
	Family    string    // of a case with steps: what they compute
	Extra     bool      // one of many similar cases, which tests may leave out
	Defect    string    // why the kernel's author gets other results; "" if he does not
	Steps     []Step    // dispatches of kernels of a source; a case of MLX's library has one, of Kernel
	Threads   [3]uint32 // of the grid
	Group     [3]uint32 // of a threadgroup

	data []byte // of the file of stored values
}

// Constant is the value of a function constant.
type Constant struct {
	Name  string
	Value int64
}

// Arg is an argument of the kernel: bytes that are bound inline, a buffer, or threadgroup memory.
type Arg struct {
	Name        string
	Bytes       string // hexadecimal
	Threadgroup uint32 // bytes of threadgroup memory

	Type  string // of a buffer's elements
	Count int
	Rule  *Rule
	Given *Stored // contents before, if no rule gives them
	Want  *Want   // expected contents afterwards; nil: unchanged
	// Free says that the contents afterwards do not matter.
	Free bool
}

// Stored is a part of the file of stored values.
type Stored struct{ At, Size int }

// Want are expected results: integers as they are, floats as float32. A result may differ from them by Abs +
// Rel·|want| + ULP·(the distance to the next float there).
type Want struct {
	Stored
	Every         int // only each Every-th element of a large buffer is stored; 0: all
	Abs, Rel, ULP float64
	Why           string // where the tolerance comes from; "" if there is none
}

// of returns how many of count elements are stored.
func (w *Want) of(count int) int {
	every := max(w.Every, 1)
	return (count + every - 1) / every
}

// Load reads the cases of a folder, in the order of the files and of the cases in them.
func Load(dir string) (out []*Case, _ error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	names := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		data, err := unpack(strings.TrimSuffix(f, ".json") + ".bin.gz")
		if err != nil {
			return nil, err
		}
		var cases []*Case
		if err := json.Unmarshal(text, &cases); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		for _, c := range cases {
			c.data = data
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f, c.Name, err)
			}
			if names[c.Name] {
				return nil, fmt.Errorf("%s: two cases are called %s", f, c.Name)
			}
			names[c.Name] = true
		}
		out = append(out, cases...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no cases", dir)
	}
	return out, nil
}

// unpack decompresses a file of stored values.
func unpack(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// check returns an error if a field of the case has a value that it must not have.
func (c *Case) check() error {
	wanted := false
	for i := range c.Args {
		a := &c.Args[i]
		if a.Bytes != "" || a.Threadgroup > 0 {
			if _, err := hex.DecodeString(a.Bytes); err != nil {
				return fmt.Errorf("%s: %w", a.Name, err)
			}
			continue
		}
		if a.Given == nil && a.Rule == nil && a.Want == nil && !a.Free {
			return fmt.Errorf("%s holds nothing, and nothing is wanted of it", a.Name)
		}
		t, ok := types[a.Type]
		if !ok || a.Count <= 0 {
			return fmt.Errorf("%s has %d elements of type %q", a.Name, a.Count, a.Type)
		}
		within := func(s *Stored, count, size int) error {
			// In a case with steps, a buffer may be longer than the results: the rest is scratch memory.
			if s.At < 0 || s.Size > count*size || s.Size < count*size && len(c.Steps) == 0 || s.At+s.Size > len(c.data) {
				return fmt.Errorf("%s: %d bytes at %d of %d are stored for %d elements of %d", a.Name, s.Size, s.At, len(c.data), count, size)
			}
			return nil
		}
		if a.Given != nil {
			if err := within(a.Given, a.Count, t.size); err != nil {
				return err
			}
		}
		if a.Want != nil {
			wanted = true
			if a.Want.Every < 0 {
				return fmt.Errorf("%s wants every %dth element", a.Name, a.Want.Every)
			}
			if err := within(&a.Want.Stored, a.Want.of(a.Count), t.wanted); err != nil {
				return err
			}
			if a.Want.Why == "" && (a.Want.Abs != 0 || a.Want.Rel != 0 || a.Want.ULP != 0) {
				return fmt.Errorf("%s has a tolerance without a reason", a.Name)
			}
		}
	}
	if !wanted {
		return fmt.Errorf("it wants nothing")
	}
	return nil
}
