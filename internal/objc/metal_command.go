package objc

// Queues and command buffers.
var (
	SetQueueLabel           = method("MTLCommandQueue", "setLabel:", "v@")
	CommandBuffer           = method("MTLCommandQueue", "commandBuffer", "@")
	CommandBufferUnretained = method("MTLCommandQueue", "commandBufferWithUnretainedReferences", "@")
	CommandBufferDescribed  = method("MTLCommandQueue", "commandBufferWithDescriptor:", "@@")

	SetErrorOptions       = method("MTLCommandBufferDescriptor", "setErrorOptions:", "vQ")
	SetRetainedReferences = method("MTLCommandBufferDescriptor", "setRetainedReferences:", "vB")

	SetBufferLabel       = method("MTLCommandBuffer", "setLabel:", "v@")
	BufferPushDebugGroup = method("MTLCommandBuffer", "pushDebugGroup:", "v@")
	BufferPopDebugGroup  = method("MTLCommandBuffer", "popDebugGroup", "v")
	ComputeEncoderOfType = method("MTLCommandBuffer", "computeCommandEncoderWithDispatchType:", "@Q")
	ComputeEncoderOfPass = method("MTLCommandBuffer", "computeCommandEncoderWithDescriptor:", "@@")
	EncodeSignalEvent    = method("MTLCommandBuffer", "encodeSignalEvent:value:", "v@Q")
	EncodeWaitForEvent   = method("MTLCommandBuffer", "encodeWaitForEvent:value:", "v@Q")
	Enqueue              = method("MTLCommandBuffer", "enqueue", "v")
	Commit               = method("MTLCommandBuffer", "commit", "v")
	WaitUntilCompleted   = method("MTLCommandBuffer", "waitUntilCompleted", "v")
	BufferStatus         = method("MTLCommandBuffer", "status", "Q")
	BufferError          = method("MTLCommandBuffer", "error", "@")
	GPUStartTime         = method("MTLCommandBuffer", "GPUStartTime", "d")
	GPUEndTime           = method("MTLCommandBuffer", "GPUEndTime", "d")
)

// Compute encoders.
var (
	SetEncoderLabel      = method("MTLCommandEncoder", "setLabel:", "v@")
	PushDebugGroup       = method("MTLCommandEncoder", "pushDebugGroup:", "v@")
	PopDebugGroup        = method("MTLCommandEncoder", "popDebugGroup", "v")
	EndEncoding          = method("MTLCommandEncoder", "endEncoding", "v")
	SetPipeline          = method("MTLComputeCommandEncoder", "setComputePipelineState:", "v@")
	SetBuffer            = method("MTLComputeCommandEncoder", "setBuffer:offset:atIndex:", "v@QQ")
	SetBufferOffset      = method("MTLComputeCommandEncoder", "setBufferOffset:atIndex:", "vQQ")
	SetBytes             = method("MTLComputeCommandEncoder", "setBytes:length:atIndex:", "v^QQ")
	SetThreadgroupMemory = method("MTLComputeCommandEncoder", "setThreadgroupMemoryLength:atIndex:", "vQQ")
	DispatchThreadgroups = method("MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:", "vSS")
	DispatchThreads      = method("MTLComputeCommandEncoder", "dispatchThreads:threadsPerThreadgroup:", "vSS")
	DispatchIndirect     = method("MTLComputeCommandEncoder", "dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:", "v@QS")
	MemoryBarrier        = method("MTLComputeCommandEncoder", "memoryBarrierWithScope:", "vQ")
	UpdateFence          = method("MTLComputeCommandEncoder", "updateFence:", "v@")
	WaitForFence         = method("MTLComputeCommandEncoder", "waitForFence:", "v@")
	UseResource          = method("MTLComputeCommandEncoder", "useResource:usage:", "v@Q")
	UseResources         = method("MTLComputeCommandEncoder", "useResources:count:usage:", "v^QQ")
	ExecuteCommands      = method("MTLComputeCommandEncoder", "executeCommandsInBuffer:withRange:", "v@R")
	SampleCounters       = method("MTLComputeCommandEncoder", "sampleCountersInBuffer:atSampleIndex:withBarrier:", "v@QB")
)

// Indirect command buffers.
var (
	SetCommandTypes          = method("MTLIndirectCommandBufferDescriptor", "setCommandTypes:", "vQ")
	SetInheritBuffers        = method("MTLIndirectCommandBufferDescriptor", "setInheritBuffers:", "vB")
	SetInheritPipelineState  = method("MTLIndirectCommandBufferDescriptor", "setInheritPipelineState:", "vB")
	SetMaxKernelBuffers      = method("MTLIndirectCommandBufferDescriptor", "setMaxKernelBufferBindCount:", "vQ")
	SetMaxKernelThreadgroups = method("MTLIndirectCommandBufferDescriptor", "setMaxKernelThreadgroupMemoryBindCount:", "vQ")
	IndirectCommand          = method("MTLIndirectCommandBuffer", "indirectComputeCommandAtIndex:", "@Q")

	IndirectSetPipeline          = method("MTLIndirectComputeCommand", "setComputePipelineState:", "v@")
	IndirectSetBuffer            = method("MTLIndirectComputeCommand", "setKernelBuffer:offset:atIndex:", "v@QQ")
	IndirectSetThreadgroupMemory = method("MTLIndirectComputeCommand", "setThreadgroupMemoryLength:atIndex:", "vQQ")
	IndirectDispatchThreadgroups = method("MTLIndirectComputeCommand", "concurrentDispatchThreadgroups:threadsPerThreadgroup:", "vSS")
	IndirectDispatchThreads      = method("MTLIndirectComputeCommand", "concurrentDispatchThreads:threadsPerThreadgroup:", "vSS")
	IndirectSetBarrier           = method("MTLIndirectComputeCommand", "setBarrier", "v")
	IndirectClearBarrier         = method("MTLIndirectComputeCommand", "clearBarrier", "v")
	IndirectReset                = method("MTLIndirectComputeCommand", "reset", "v")
)
