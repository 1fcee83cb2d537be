package mslshim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A source names files: by #include, by #embed, and by asking whether one is there. It may name those of its own
// folder and of this package, and no others: what a kernel of somebody else includes of its user's files it
// could hand on as results. The compiler's cage sees to that as well; what stands here holds without one too, and
// says where the line is.

// directives returns an error for what a source says that no Metal has: #embed, and questions for files by names
// that lead out of its folder. It reads as the preprocessor does, lines that go on joined and comments left out.
func directives(name, source string) error {
	return eachLine(source, func(number int, line string) error {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			rest, ok = strings.CutPrefix(strings.TrimSpace(line), "%:")
		}
		if ok {
			word := strings.TrimLeft(rest, " \t")
			if strings.HasPrefix(word, "embed") && (len(word) == 5 || !letter(word[5])) {
				return fmt.Errorf("%s:%d: error: #embed reads a file into the kernel, which Metal does not have and no kernel may", name, number)
			}
		}
		for _, ask := range []string{"__has_embed", "__has_include"} {
			_, after, found := strings.Cut(line, ask)
			if !found {
				continue
			}
			if ask == "__has_embed" {
				return fmt.Errorf("%s:%d: error: __has_embed asks for a file, which Metal does not have and no kernel may", name, number)
			}
			after = strings.TrimLeft(strings.TrimPrefix(after, "_next"), " \t")
			asked, open := strings.CutPrefix(after, "(")
			asked = strings.TrimSpace(asked)
			end := strings.IndexAny(asked[min(1, len(asked)):], `">`)
			if after == "" || !open { // defined(__has_include), #ifdef __has_include
				continue
			}
			if end < 0 || asked[0] != '"' && asked[0] != '<' {
				return fmt.Errorf("%s:%d: error: __has_include asks for a file by a macro: it has to name the file", name, number)
			}
			if p := asked[1 : 1+end]; filepath.IsAbs(p) || strings.Contains("/"+p+"/", "/../") {
				return fmt.Errorf("%s:%d: error: __has_include asks for %s, which is outside of the source's folder: no kernel may", name, number, p)
			}
		}
		return nil
	})
}

func letter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// eachLine calls f with each line of a source and its number: lines that end with a backslash are joined with the
// next, and comments are a space. Strings stay.
func eachLine(source string, f func(number int, line string) error) error {
	var line strings.Builder
	number, began := 1, 1
	comment := byte(0) // '*' or '/' within one
	quote := byte(0)
	flush := func() error {
		err := f(began, line.String())
		line.Reset()
		began = number
		return err
	}
	for i := 0; i < len(source); i++ {
		c := source[i]
		if c == '\\' {
			k := i + 1
			for k < len(source) && (source[k] == ' ' || source[k] == '\t' || source[k] == '\r') {
				k++
			}
			if k < len(source) && source[k] == '\n' {
				i, number = k, number+1
				continue
			}
		}
		next := byte(0)
		if i+1 < len(source) {
			next = source[i+1]
		}
		switch {
		case c == '\n':
			number++
			quote = 0
			if comment == '/' {
				comment = 0
			}
			if comment == '*' { // the line goes on behind the comment
				continue
			}
			if err := flush(); err != nil {
				return err
			}
		case comment == '*':
			if c == '*' && next == '/' {
				comment = 0
				i++
			}
		case comment == '/':
		case quote != 0:
			line.WriteByte(c)
			if c == '\\' && next != 0 && next != '\n' {
				line.WriteByte(next)
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '/' && (next == '*' || next == '/'):
			comment = next
			line.WriteByte(' ')
			i++
		default:
			if c == '"' || c == '\'' {
				quote = c
			}
			line.WriteByte(c)
		}
	}
	return flush()
}

// within returns an error if the compiler has read a file outside of the folders that it may read, with the line
// of text, which is the preprocessed source, that named it. list is the compiler's own list of files, in the
// form of make.
func (f *Folder) within(text, list string) error {
	data, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) { // clang leaves out the list, and says nothing, where it cannot read what is embedded
		return fmt.Errorf("%s: error: it embeds a file that is outside of its folder, which no kernel may", f.Name)
	} else if err != nil {
		return err
	}
	roots := []string{f.Dir}
	roots = append(roots, f.reads...)
	for i, r := range roots {
		if real, err := filepath.EvalSymlinks(r); err == nil {
			roots[i] = real
		}
	}
	checked := map[string]bool{}
	for _, path := range prerequisites(string(data)) {
		if checked[path] {
			continue
		}
		checked[path] = true
		if f.inside(path, roots) {
			continue
		}
		where := f.Name
		if file, line := includer(text, path); line > 0 {
			where = fmt.Sprintf("%s:%d", file, line)
		}
		return fmt.Errorf("%s: error: the file %s is outside of the source's folder: a kernel includes what lies there, and Metal's headers", where, path)
	}
	return nil
}

// inside reports whether a file, links followed, lies in one of the folders.
func (f *Folder) inside(path string, roots []string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	for _, r := range roots {
		if rel, err := filepath.Rel(r, real); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// prerequisites are the files of a rule of make's, in which spaces and backslashes stand behind backslashes.
func prerequisites(rule string) (out []string) {
	_, rule, _ = strings.Cut(rule, ":")
	var name strings.Builder
	flush := func() {
		if name.Len() > 0 {
			out = append(out, name.String())
		}
		name.Reset()
	}
	for i := 0; i < len(rule); i++ {
		switch c := rule[i]; {
		case c == '\\' && i+1 < len(rule) && rule[i+1] == '\n':
			i++
			flush()
		case c == '\\' && i+1 < len(rule) && strings.IndexByte(" #\\", rule[i+1]) >= 0, c == '$' && i+1 < len(rule) && rule[i+1] == '$':
			i++
			name.WriteByte(rule[i])
		case c == ' ' || c == '\n' || c == '\t':
			flush()
		default:
			name.WriteByte(c)
		}
	}
	flush()
	return out
}

// includer finds, in a preprocessed source, where a file was included: the place before the first marker that
// enters it.
func includer(text, path string) (file string, line int) {
	at, in := 0, ""
	for l := range strings.Lines(text) {
		rest, marker := strings.CutPrefix(l, "# ")
		if !marker {
			at++
			continue
		}
		number, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
		n, err := strconv.Atoi(number)
		quoted, err2 := strconv.QuotedPrefix(rest)
		if err != nil || err2 != nil {
			at++
			continue
		}
		name, _ := strconv.Unquote(quoted)
		if flags := strings.Fields(rest[len(quoted):]); len(flags) > 0 && flags[0] == "1" && name == path {
			return in, at
		}
		at, in = n, name
	}
	return "", 0
}
