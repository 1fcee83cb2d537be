package objc

// Libraries, functions, pipelines and binary archives, with their descriptors.
var (
	SetFastMath        = method("MTLCompileOptions", "setFastMathEnabled:", "vB")
	SetMathMode        = since(15, "MTLCompileOptions", "setMathMode:", "vQ")
	SetMathFunctions   = since(15, "MTLCompileOptions", "setMathFloatingPointFunctions:", "vQ")
	SetLanguageVersion = method("MTLCompileOptions", "setLanguageVersion:", "vQ")

	FunctionNames    = method("MTLLibrary", "functionNames", "@")
	NewFunction      = method("MTLLibrary", "newFunctionWithName:constantValues:error:", "@@@^")
	SetConstantValue = method("MTLFunctionConstantValues", "setConstantValue:type:atIndex:", "v^QQ")

	SetComputeFunction   = method("MTLComputePipelineDescriptor", "setComputeFunction:", "v@")
	SetSupportIndirect   = method("MTLComputePipelineDescriptor", "setSupportIndirectCommandBuffers:", "vB")
	SetPipelineLabel     = method("MTLComputePipelineDescriptor", "setLabel:", "v@")
	SetBinaryArchives    = method("MTLComputePipelineDescriptor", "setBinaryArchives:", "v@")
	MaxThreads           = method("MTLComputePipelineState", "maxTotalThreadsPerThreadgroup", "Q")
	ThreadExecutionWidth = method("MTLComputePipelineState", "threadExecutionWidth", "Q")
	StaticThreadgroup    = method("MTLComputePipelineState", "staticThreadgroupMemoryLength", "Q")

	SetArchiveURL    = method("MTLBinaryArchiveDescriptor", "setUrl:", "v@")
	AddToArchive     = method("MTLBinaryArchive", "addComputePipelineFunctionsWithDescriptor:error:", "B@^")
	SerializeArchive = method("MTLBinaryArchive", "serializeToURL:error:", "B@^")
)
