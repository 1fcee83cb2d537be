package kernelcases

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Source is a Metal file that instantiates kernels of MLX's templates.
type Source struct {
	Name    string // of the file
	Text    string // with the headers in place
	Kernels []string
}

var (
	included     = regexp.MustCompile(`^\s*#include "([^"]+)"`)
	instantiated = regexp.MustCompile(`(?m)^instantiate_kernel\("([^"]+)"`)
)

// Sources reads the Metal files of a folder, with the headers from another folder in place of the first line that
// includes them, so that each text compiles alone.
func Sources(dir, headers string) (out []Source, _ error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.metal"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		s := Source{Name: filepath.Base(f)}
		for _, m := range instantiated.FindAllStringSubmatch(string(text), -1) {
			s.Kernels = append(s.Kernels, m[1])
		}
		var b strings.Builder
		if err := flatten(&b, f, string(text), headers, map[string]bool{}); err != nil {
			return nil, err
		}
		s.Text = b.String()
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no Metal files", dir)
	}
	return out, nil
}

func flatten(b *strings.Builder, file, text, headers string, done map[string]bool) error {
	for l := range strings.Lines(text) {
		m := included.FindStringSubmatch(l)
		if m == nil {
			if !strings.HasPrefix(strings.TrimSpace(l), "#pragma once") {
				b.WriteString(l)
			}
			continue
		}
		if done[m[1]] {
			continue
		}
		done[m[1]] = true
		header, err := os.ReadFile(filepath.Join(headers, filepath.FromSlash(m[1])))
		if err != nil {
			return fmt.Errorf("%s includes what is not there: %w", file, err)
		}
		if err := flatten(b, m[1], string(header)+"\n", headers, done); err != nil {
			return err
		}
	}
	return nil
}
