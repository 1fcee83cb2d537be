// Package ptx reads PTX, as LLVM and our own emitter write it, and prints it: lines, each with its statements and their
// operands, and the ways that control takes between them. What nobody changes is printed as it stood.
//
//	m, err := ptx.Parse(text)
//	for i := range m.Lines {
//		if s := m.Lines[i].Instruction(); s != nil && s.Op == "bar.sync" { … }
//	}
//	text = m.Bytes()
//
// A text has one entry, and perhaps functions. Each line is read once; a line that is put in place of another is read
// when it is made.
package ptx
