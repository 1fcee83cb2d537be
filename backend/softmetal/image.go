//go:build unix

package softmetal

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// image is the code of a kernel as the executor maps it: a shared object, laid out in this process, where a malicious
// file can do no harm. A kernel is code, constants, and addresses in these; it has no constructors, no thread-local
// variables and no libraries, and calls only what imports lists.
type image struct {
	size     uint64 // size of the address range in bytes
	kernel   uint64 // offset of struct kernel
	segments []segment
	fixes    []fix
}

// segment is a range of whole pages of an image.
type segment struct {
	at, bytes  uint64
	executable bool
	data       []byte // the first contents; the rest is zero
}

// fix is an address that the executor fills in at offset at: value plus the address of an import or, if imported is
// 0, of the image itself.
type fix struct {
	at, value uint64
	imported  uint32 // 1 + index in imports, or 0
}

// imports are the functions that a kernel may call, in the order of host/image.c.
var imports = []string{"mlxc_touch", "mlxc_private", "mlxc_own", "mlxc_used", "mlxc_stored",
	"mlxc_loaded", "mlxc_copied", "mlxc_forget", "mlxc_leave", "mlxc_taken",
	"memcpy", "memmove", "memset"}

// maxImage is MAX_IMAGE of host/executor.h.
const maxImage = 1 << 28

// shtRelr is the type of a section of packed relocations, for which debug/elf has no constant.
const shtRelr elf.SectionType = 19

// kernelBytes is the size of struct kernel (internal/air/host/abi.h).
const kernelBytes = 56

// newImage lays out a shared object for machines with pages of so many bytes.
func newImage(object []byte, page uint64) (*image, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("no shared object: %w", err)
	}
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || f.Type != elf.ET_DYN || f.Machine != elf.EM_X86_64 && f.Machine != elf.EM_AARCH64 {
		return nil, fmt.Errorf("no shared object of a machine that is known here: %v, %v, %v, %v", f.Class, f.Data, f.Type, f.Machine)
	}
	var m image
	if err := m.lay(f, page); err != nil {
		return nil, err
	}
	for _, tag := range []elf.DynTag{elf.DT_NEEDED, elf.DT_INIT, elf.DT_FINI, elf.DT_INIT_ARRAY, elf.DT_FINI_ARRAY, elf.DT_PREINIT_ARRAY, elf.DT_TEXTREL} {
		if values, err := f.DynValue(tag); err != nil || len(values) > 0 {
			return nil, errors.Join(fmt.Errorf("it has a %v: a kernel has no constructors and no libraries", tag), err)
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, fmt.Errorf("its symbols: %w", err)
	}
	found := false
	for _, s := range symbols {
		if s.Name == "mlxc_kernel" && s.Section != elf.SHN_UNDEF {
			m.kernel, found = s.Value, true
		}
	}
	if !found || !m.holds(m.kernel, kernelBytes, false) {
		return nil, errors.New("it exports no kernel")
	}
	return &m, m.relocate(f, symbols)
}

// lay reads the segments, and rounds them to whole pages.
func (m *image) lay(f *elf.File, page uint64) error {
	whole := func(v uint64) uint64 { return (v + page - 1) &^ (page - 1) }
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_LOAD:
		case elf.PT_PHDR, elf.PT_DYNAMIC, elf.PT_GNU_RELRO, elf.PT_GNU_STACK, elf.PT_NOTE, elf.PT_GNU_EH_FRAME:
			continue
		default:
			return fmt.Errorf("it has a segment of kind %v", p.Type)
		}
		if p.Vaddr > maxImage || p.Memsz > maxImage || p.Filesz > p.Memsz {
			return fmt.Errorf("its code and constants have more than %d bytes", maxImage)
		}
		if p.Flags&elf.PF_W != 0 && p.Flags&elf.PF_X != 0 {
			return errors.New("a segment of it may be both written and executed")
		}
		if p.Memsz == 0 {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err != nil && (err != io.EOF || p.Filesz > 0) {
			return fmt.Errorf("it ends within a segment: %w", err)
		}
		at := p.Vaddr &^ (page - 1)
		data = append(make([]byte, p.Vaddr-at), data...)
		m.segments = append(m.segments, segment{at: at, bytes: whole(p.Vaddr+p.Memsz) - at, executable: p.Flags&elf.PF_X != 0, data: data})
	}
	slices.SortFunc(m.segments, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	for i, s := range m.segments {
		if s.at < m.size {
			return errors.New("two segments of it share a page")
		}
		m.size = s.at + s.bytes
		if i == 15 {
			return errors.New("it has more than 15 segments")
		}
	}
	if m.size == 0 || m.size > maxImage {
		return fmt.Errorf("its code and constants have %d bytes, of %d that a kernel may have", m.size, maxImage)
	}
	return nil
}

// holds reports whether n bytes lie in one segment, which must not be executable if written is set.
func (m *image) holds(at, n uint64, written bool) bool {
	return slices.ContainsFunc(m.segments, func(s segment) bool {
		return at >= s.at && at-s.at <= s.bytes && n <= s.bytes-(at-s.at) && !(written && s.executable)
	})
}

// relocate translates the relocations of the file to fixes.
func (m *image) relocate(f *elf.File, symbols []elf.Symbol) error {
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		switch s.Type {
		case elf.SHT_REL, elf.SHT_INIT_ARRAY, elf.SHT_FINI_ARRAY, elf.SHT_PREINIT_ARRAY, shtRelr:
			return fmt.Errorf("its section %s is of kind %v", s.Name, s.Type)
		case elf.SHT_RELA:
		default:
			continue
		}
		data, err := s.Data()
		if err != nil {
			return fmt.Errorf("its section %s: %w", s.Name, err)
		}
		for ; len(data) >= 24; data = data[24:] {
			at, info, addend := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])
			x := fix{at: at, value: addend}
			kind, symbol := uint32(info), int(info>>32)
			switch relative, named := relocations(f.Machine, kind); {
			case relative && symbol == 0:
			case named && symbol > 0 && symbol <= len(symbols):
				t := &symbols[symbol-1] // the list lacks the first symbol, which has no name
				if elf.ST_TYPE(t.Info) == elf.STT_GNU_IFUNC || elf.ST_TYPE(t.Info) == elf.STT_TLS {
					return fmt.Errorf("%s is chosen when it is loaded, or a thread's own", t.Name)
				}
				if t.Section != elf.SHN_UNDEF {
					x.value += t.Value
					break
				}
				i := slices.Index(imports, t.Name)
				if i < 0 {
					return fmt.Errorf("it calls %s, which no kernel has", t.Name)
				}
				x.imported = uint32(1 + i)
			default:
				return fmt.Errorf("it wants a relocation of kind %d", kind)
			}
			if !m.holds(at, 8, true) {
				return fmt.Errorf("an address to be filled in lies at byte %#x, which is none of its constants", at)
			}
			m.fixes = append(m.fixes, x)
		}
	}
	return nil
}

// relocations reports whether a kind of relocation fills in an address of the image, or the address of a symbol.
func relocations(machine elf.Machine, kind uint32) (relative, named bool) {
	if machine == elf.EM_X86_64 {
		r := elf.R_X86_64(kind)
		return r == elf.R_X86_64_RELATIVE, r == elf.R_X86_64_64 || r == elf.R_X86_64_GLOB_DAT || r == elf.R_X86_64_JMP_SLOT
	}
	r := elf.R_AARCH64(kind)
	return r == elf.R_AARCH64_RELATIVE, r == elf.R_AARCH64_ABS64 || r == elf.R_AARCH64_GLOB_DAT || r == elf.R_AARCH64_JUMP_SLOT
}

// request appends the description of the image that load_image (host/image.c) reads.
func (m *image) request(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, m.size)
	to = binary.LittleEndian.AppendUint64(to, m.kernel)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(m.segments)))
	for _, s := range m.segments {
		to = binary.LittleEndian.AppendUint64(to, s.at)
		to = binary.LittleEndian.AppendUint64(to, s.bytes)
		executable := uint32(0)
		if s.executable {
			executable = 1
		}
		to = binary.LittleEndian.AppendUint32(to, executable)
	}
	to = binary.LittleEndian.AppendUint32(to, uint32(len(m.fixes)))
	for _, x := range m.fixes {
		to = binary.LittleEndian.AppendUint64(to, x.at)
		to = binary.LittleEndian.AppendUint64(to, x.value)
		to = binary.LittleEndian.AppendUint32(to, x.imported)
	}
	return to
}
