package mmap

// Parsed maps the file at path and returns what parse makes of its contents, with the Map, which is to be closed when
// that is no longer used. If either fails, nothing stays mapped; a file that is cut while it is parsed is an error.
func Parsed[T any](path string, parse func(name string, data []byte) (T, error)) (out T, m *Map, err error) {
	defer Catch(&err)()
	if m, err = Open(path); err != nil {
		return out, nil, err
	}
	if out, err = parse(path, m.Bytes()); err != nil {
		m.Close() // the parse error matters more than one of Close
		return out, nil, err
	}
	return out, m, nil
}
