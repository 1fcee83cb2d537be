package msltree

// ThreadgroupLocal is a threadgroup variable in the body of a function.
type ThreadgroupLocal struct {
	Tok   int // the keyword
	Depth int // the number of braces around it, within the body
	Init  bool
}

// ThreadgroupLocals returns the threadgroup variables in f's body, without pointers to
// threadgroup memory.
func (u *Unit) ThreadgroupLocals(f *Function) []ThreadgroupLocal {
	if f.Body < 0 {
		return nil
	}
	var out []ThreadgroupLocal
	depth := 0
	for i := f.Body; i <= u.Match[f.Body]; i++ {
		switch u.At(i) {
		case "{":
			depth++
		case "}":
			depth--
		case "threadgroup":
			begin := i
			for p := u.At(begin - 1); p == "const" || p == "static" || p == "volatile"; p = u.At(begin - 1) {
				begin--
			}
			if p := u.At(begin - 1); p != ";" && p != "{" && p != "}" && p != ")" || u.At(begin-1) == ")" && u.At(u.Match[begin-1]-1) != "alignas" {
				continue
			}
			v := ThreadgroupLocal{Tok: i, Depth: depth}
			isPointer := false
			for j := i + 1; u.At(j) != ";" && u.At(j) != ""; j++ {
				switch {
				case u.At(j) == "*" || u.At(j) == "&":
					isPointer = isPointer || !v.Init
				case u.At(j) == "=" || u.At(j) == "{":
					v.Init = true
				}
				if u.Match[j] > j {
					j = u.Match[j]
				}
			}
			if !isPointer {
				out = append(out, v)
			}
		}
	}
	return out
}
