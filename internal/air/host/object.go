package host

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"fmt"
	"strings"
)

// What clang has made of a module is looked at once more, whatever the module was: an object of a kernel
// wants nothing but what the executor has for it, and nothing of it runs before the kernel is called.

// wanted are the functions that an object may want: those which LLVM makes of copies, and those of the
// executor that an object of a checked kernel asks.
func wanted(name string, checked bool) bool {
	switch name {
	case "memcpy", "memmove", "memset", "_GLOBAL_OFFSET_TABLE_", "":
		return true
	}
	return checked && strings.HasPrefix(name, "mlxc_")
}

// constructors are the sections of functions that run when an object is loaded or leaves.
var constructors = []string{".init", ".fini", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", "__mod_init_func", "__mod_term_func", "__init_offsets"}

// standsAlone returns what an object wants beside that, or runs by itself.
func standsAlone(object []byte, checked bool) error {
	sections, undefined, err := outside(object)
	if err != nil {
		return fmt.Errorf("what clang has made cannot be read: %w", err)
	}
	for _, s := range sections {
		for _, c := range constructors {
			if s == c || strings.HasPrefix(s, c+".") {
				return fmt.Errorf("the module has functions that run when it is loaded, in the section %s: no kernel may", s)
			}
		}
	}
	for _, name := range undefined {
		if !wanted(name, checked) {
			return fmt.Errorf("the compiled kernel calls or reads %s, which it has not and which the executor has for no kernel", name)
		}
	}
	return nil
}

// outside lists the sections of an object, and the names that it has not.
func outside(object []byte) (sections, undefined []string, err error) {
	if f, err := macho.NewFile(bytes.NewReader(object)); err == nil {
		for _, s := range f.Sections {
			sections = append(sections, s.Name)
		}
		if f.Symtab != nil {
			for _, s := range f.Symtab.Syms {
				if external, kind := s.Type&1 != 0, s.Type&0x0e; external && kind == 0 {
					undefined = append(undefined, strings.TrimPrefix(s.Name, "_"))
				}
			}
		}
		return sections, undefined, nil
	}
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, nil, err
	}
	for _, s := range f.Sections {
		sections = append(sections, s.Name)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range symbols {
		switch {
		case elf.ST_TYPE(s.Info) == elf.STT_GNU_IFUNC:
			return nil, nil, fmt.Errorf("%s is chosen when it is loaded", s.Name)
		case elf.ST_TYPE(s.Info) == elf.STT_TLS:
			return nil, nil, fmt.Errorf("%s is a variable of each thread", s.Name)
		case s.Section == elf.SHN_UNDEF, s.Section == elf.SHN_COMMON:
			undefined = append(undefined, s.Name)
		}
	}
	return sections, undefined, nil
}
