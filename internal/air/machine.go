package air

// HostFlags are the flags by which clang compiles for this machine.
func HostFlags() []string { return hostFlags() }
