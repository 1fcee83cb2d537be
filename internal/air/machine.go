package air

// MachineFlags are the flags by which clang compiles for a machine: the one that LLVM's triple
// names, with the least instructions that such machines have, or this one, if it is "".
func MachineFlags(triple string) []string {
	if triple == "" {
		return hostFlags()
	}
	return append(archFlags(triple), "--target="+triple)
}
