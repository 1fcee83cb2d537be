package clang

// SetMachine makes Find look for packages of all users elsewhere, and returns a function that undoes that.
func SetMachine(prefix string) (restore func()) {
	before := machine
	machine = prefix
	return func() { machine = before }
}

// SetExecutable makes Find take another program for this one, and returns a function that undoes that.
func SetExecutable(path string) (restore func()) {
	before := executable
	executable = func() (string, error) { return path, nil }
	return func() { executable = before }
}
