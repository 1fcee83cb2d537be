package mslcheck

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// threadgroupBytes returns, for each of the first n kernels of a compiled object, the
// size of its threadgroup variables. These are static variables in the object: a
// variable of kernel _Z3rms… is called _ZZ3rms…E7partial (Itanium C++ ABI, 5.1.6, local
// names). The compiler has dropped variables that no code uses.
func threadgroupBytes(object []byte, n int) ([]int64, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("the compiled object: %w", err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("the compiled object: %w", err)
	}
	out := make([]int64, n)
	for k := range out {
		name, err := target(f, symbols, kernelSymbol(k))
		if err != nil {
			return nil, err
		}
		local := "_ZZ" + strings.TrimPrefix(name, "_Z") + "E"
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) == elf.STT_OBJECT && strings.HasPrefix(s.Name, local) {
				out[k] += int64(s.Size)
			}
		}
	}
	return out, nil
}

// target returns the symbol whose address the pointer called name holds, which is the
// symbol of the relocation at its place.
func target(f *elf.File, symbols []elf.Symbol, name string) (string, error) {
	for _, s := range symbols {
		if s.Name != name || int(s.Section) >= len(f.Sections) {
			continue
		}
		for _, rel := range f.Sections {
			if rel.Type != elf.SHT_RELA || rel.Info != uint32(s.Section) {
				continue
			}
			data, err := rel.Data()
			if err != nil {
				return "", fmt.Errorf("the compiled object: %s: %w", rel.Name, err)
			}
			const entry = 24 // Elf64_Rela: offset, info, addend
			for ; len(data) >= entry; data = data[entry:] {
				if binary.LittleEndian.Uint64(data) != s.Value {
					continue
				}
				// The list of symbols leaves out the null symbol, which has number 0.
				i := int(binary.LittleEndian.Uint64(data[8:])>>32) - 1
				if i < 0 || i >= len(symbols) {
					return "", fmt.Errorf("the compiled object: %s names symbol %d of %d", rel.Name, i, len(symbols))
				}
				return symbols[i].Name, nil
			}
		}
	}
	return "", fmt.Errorf("the compiled object has no pointer %s", name)
}
