package mlxfn

// states says which fields follow the name of a primitive: i int, f float, d double, u size, b bool, t type, S shape, L strides,
// I list of ints, U list of sizes, s string, and for a custom kernel g (three ints), V list of three bools, o optional float,
// A list of scalars. A primitive that is not here is not known, and since a file does not say how long a state is, nothing
// behind it can be read.
var states = map[string]string{
	"AddMM": "ff", "Arange": "ddd", "ArgPartition": "ii", "Partition": "ii", "ArgReduce": "ii", "ArgSort": "i", "Sort": "i", "AsType": "t",
	"AsStrided": "SLu", "BitwiseBinary": "i", "BlockMaskedMM": "i", "Broadcast": "S", "BroadcastAxes": "I", "Cholesky": "b", "Concatenate": "i",
	"Convolution": "IIIIIib", "DynamicSlice": "IS", "DynamicSliceUpdate": "I", "Eig": "b", "Eigh": "sb", "Equal": "b", "ExpandDims": "I", "Squeeze": "I",
	"FFT": "Ubb", "Flatten": "ii", "Gather": "IS", "GatherAxis": "i", "GatherMM": "bb", "GatherQMM": "iiibbb", "Hadamard": "f", "Inverse": "bb",
	"LayerNorm": "f", "LayerNormVJP": "f", "Log": "i", "NumberOfElements": "Ibt", "Pad": "ISS", "QuantizedMatmul": "iiib", "Quantize": "iiib",
	"RandomBits": "Si", "Reduce": "iI", "Reshape": "S", "RMSNorm": "f", "RMSNormVJP": "f", "RoPE": "ibffb", "ScaledDotProductAttention": "fbbb",
	"Scan": "iibb", "Scatter": "iI", "ScatterAxis": "ii", "SearchSorted": "b", "Slice": "SSS", "SliceUpdate": "iSSS", "Softmax": "b", "Split": "Si",
	"Sqrt": "b", "SVD": "b", "Transpose": "I", "Unflatten": "iS", "View": "t", "CustomKernel": "ssggVboAbii",
}

func init() {
	for _, name := range []string{
		"Abs", "Add", "ArcCos", "ArcCosh", "ArcSin", "ArcSinh", "ArcTan", "ArcTan2", "ArcTanh", "Ceil", "Conjugate", "Copy", "Cos", "Cosh",
		"Depends", "Divide", "DivMod", "FloorDivide", "Erf", "ErfInv", "Exp", "Expm1", "Floor", "Full", "Greater", "GreaterEqual", "Imag", "Less", "LessEqual",
		"Log1p", "LogicalNot", "LogicalAnd", "LogicalOr", "LogAddExp", "LogSumExp", "MaskedScatter", "Matmul", "Maximum", "Minimum", "Multiply",
		"Negative", "NotEqual", "Power", "QRF", "Real", "Remainder", "Round", "Select", "Sigmoid", "Sign", "Sin", "Sinh", "Square", "StopGradient",
		"Subtract", "Tan", "Tanh",
	} {
		states[name] = ""
	}
}

// before lists the releases that wrote a state otherwise than the next one did, oldest first: before a release, states were
// these. Older releases than the first of these are refused.
var before = []struct {
	release [3]int
	states  map[string]string
}{
	{[3]int{0, 31, 2}, map[string]string{"SliceUpdate": "SSS"}},
	{[3]int{0, 32, 0}, map[string]string{"CustomKernel": "ssggVboAbi"}},
}

// oldest is the first release whose files are read.
var oldest = [3]int{0, 30, 0}

// Versions between two releases, and releases that differ in nothing else that a file says, have written other states than the
// table's: attention with one more flag, and transforms with one.
var (
	forced      = map[string]string{"ScaledDotProductAttention": "fbbbb"}
	transformed = map[string]string{"ScaledDotProductAttention": "fbbbb", "FFT": "Ubbb"}
)
