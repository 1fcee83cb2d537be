package bitcode

// Limits of one module. Real kernels stay a hundred times below. They bound memory to some 100 MiB, which the size of
// the file alone would not, since entries are larger in memory than in the file.
const (
	maxModule        = 1 << 28 // bytes
	maxAbbreviations = 1 << 12
	maxAbbrevParts   = 64      // of one abbreviation. Real ones have a dozen.
	maxOperands      = 1 << 16 // of one record that are kept
	maxTypes         = 1 << 16
	maxTypeMembers   = 1 << 20 // of all structs and functions
	maxValues        = 1 << 20
	maxMetadata      = 1 << 20 // strings, nodes and values
	maxNodeOperands  = 1 << 22 // of all nodes
	maxSymbols       = 1 << 16 // global variables, functions
	maxNames         = 1 << 24 // bytes of all names
	maxAllocation    = 1 << 40 // bytes of a type
)
