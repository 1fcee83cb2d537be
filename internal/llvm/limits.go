package llvm

import (
	"fmt"
	"strings"
)

// What a text may have at most. Kernels stay far below; without these limits a short text could
// ask for any amount of work or memory.
const (
	MaxLine    = 1 << 16 // bytes of a line, but for globals and metadata
	MaxNesting = 256     // brackets in brackets, and loops in loops
	maxLanes   = 1 << 10 // elements of a vector
	maxInlined = 1 << 22 // lines that the kernel has when all that it calls is inlined
)

// Count is told how many characters, lines or blocks a loop of this package has looked at. Only
// tests set it, which hold that a text twice as long takes twice as many.
var Count func(int)

// Counted tells [Count], if it is set.
func Counted(n int) {
	if Count != nil {
		Count(n)
	}
}

// withinLimits returns what is absurd about a line.
func withinLimits(l string) error {
	switch l[0] {
	case '!':
		return nil
	case '@':
	default:
		if len(l) > MaxLine {
			return fmt.Errorf("a line of %d bytes, of at most %d: %.40q", len(l), MaxLine, l)
		}
	}
	depth := 0
	for i := 0; i < len(l); i++ {
		switch l[i] {
		case '"':
			i = Closing(l, i)
		case '(', '[', '{', '<':
			lanes := 0
			for k := i + 1; l[i] == '<' && k < len(l) && l[k] >= '0' && l[k] <= '9' && lanes <= maxLanes; k++ {
				lanes = 10*lanes + int(l[k]-'0')
			}
			if lanes > maxLanes {
				return fmt.Errorf("at column %d a vector has more than %d elements: %.40q", i+1, maxLanes, l[i:])
			}
			if depth++; depth > MaxNesting {
				return fmt.Errorf("at column %d brackets lie more than %d deep: %.40q", i+1, MaxNesting, l)
			}
		case ')', ']', '}', '>':
			depth = max(0, depth-1)
		}
	}
	return nil
}

// Closing returns the index of the quote that ends the string which begins at i, or len(s).
func Closing(s string, i int) int {
	for i++; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return min(i, len(s))
}

// Inlined returns an error if the kernel becomes absurdly long once all functions that it calls,
// and these call, stand where they are called.
func (m *Module) Inlined(kernel *Function) error {
	byName := make(map[string]*Function, len(m.Funcs))
	for _, f := range m.Funcs {
		byName[strings.Trim(f.Name, `"`)] = f
	}
	const open = -1 // of a function whose callees are being looked at
	size := make(map[*Function]int, len(m.Funcs))
	var of func(f *Function, depth int) (int, error)
	of = func(f *Function, depth int) (int, error) {
		if n, ok := size[f]; ok {
			return max(n, 0), nil // LLVM leaves a call of what calls itself
		}
		if depth > MaxNesting {
			return 0, fmt.Errorf("functions call each other more than %d deep, at @%s", MaxNesting, f.Name)
		}
		size[f] = open
		total := len(f.Lines)
		Counted(total)
		for _, l := range f.Lines {
			if !strings.Contains(l, "call ") {
				continue
			}
			in := Read(l)
			if in == nil || in.Callee == "" {
				continue
			}
			if callee := byName[in.Callee]; callee != nil {
				n, err := of(callee, depth+1)
				if err != nil {
					return 0, err
				}
				total += n
			}
			if total > maxInlined {
				return 0, fmt.Errorf("with all that it calls @%s has more than %d lines", f.Name, maxInlined)
			}
		}
		size[f] = total
		return total, nil
	}
	_, err := of(kernel, 0)
	return err
}
