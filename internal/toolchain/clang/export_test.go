package clang

// SetMachine makes Find look for packages of all users elsewhere, and returns a function that undoes that.
func SetMachine(prefix string) (restore func()) {
	before := machine
	machine = prefix
	return func() { machine = before }
}
