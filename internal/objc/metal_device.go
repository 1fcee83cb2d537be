package objc

// The device: its properties, and the objects that it makes.
var (
	DeviceName            = method("MTLDevice", "name", "@")
	RegistryID            = method("MTLDevice", "registryID", "Q")
	DeviceArchitecture    = method("MTLDevice", "architecture", "@")
	ArchitectureName      = method("MTLArchitecture", "name", "@")
	SupportsFamily        = method("MTLDevice", "supportsFamily:", "BQ")
	HasUnifiedMemory      = method("MTLDevice", "hasUnifiedMemory", "B")
	IsLowPower            = method("MTLDevice", "isLowPower", "B")
	IsRemovable           = method("MTLDevice", "isRemovable", "B")
	IsHeadless            = method("MTLDevice", "isHeadless", "B")
	MaxBufferLength       = method("MTLDevice", "maxBufferLength", "Q")
	MaxThreadgroupMemory  = method("MTLDevice", "maxThreadgroupMemoryLength", "Q")
	RecommendedWorkingSet = method("MTLDevice", "recommendedMaxWorkingSetSize", "Q")
	CurrentAllocatedSize  = method("MTLDevice", "currentAllocatedSize", "Q")

	NewBuffer       = method("MTLDevice", "newBufferWithLength:options:", "@QQ")
	NewBufferNoCopy = method("MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:", "@^QQ?")
	NewQueue        = method("MTLDevice", "newCommandQueueWithMaxCommandBufferCount:", "@Q")
	NewFence        = method("MTLDevice", "newFence", "@")
	NewEvent        = method("MTLDevice", "newEvent", "@")
	NewSharedEvent  = method("MTLDevice", "newSharedEvent", "@")

	NewLibraryWithSource = method("MTLDevice", "newLibraryWithSource:options:error:", "@@@^")
	NewLibraryWithURL    = method("MTLDevice", "newLibraryWithURL:error:", "@@^")
	NewPipeline          = method("MTLDevice", "newComputePipelineStateWithDescriptor:options:reflection:error:", "@@Q^^")
	NewBinaryArchive     = method("MTLDevice", "newBinaryArchiveWithDescriptor:error:", "@@^")

	NewIndirectCommandBuffer = method("MTLDevice", "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:", "@@QQ")
	NewResidencySet          = since(15, "MTLDevice", "newResidencySetWithDescriptor:error:", "@@^")

	CounterSets             = method("MTLDevice", "counterSets", "@")
	SupportsCounterSampling = method("MTLDevice", "supportsCounterSampling:", "BQ")
	NewCounterSampleBuffer  = method("MTLDevice", "newCounterSampleBufferWithDescriptor:error:", "@@^")
	SampleTimestamps        = method("MTLDevice", "sampleTimestamps:gpuTimestamp:", "v^^")
)

// Buffers and shared events.
var (
	Contents         = method("MTLBuffer", "contents", "^")
	BufferLength     = method("MTLBuffer", "length", "Q")
	SetResourceLabel = method("MTLResource", "setLabel:", "v@")

	SignaledValue    = method("MTLSharedEvent", "signaledValue", "Q")
	SetSignaledValue = method("MTLSharedEvent", "setSignaledValue:", "vQ")
	WaitUntilValue   = since(15, "MTLSharedEvent", "waitUntilSignaledValue:timeoutMS:", "BQQ")
)

// Residency sets.
var (
	SetInitialCapacity   = since(15, "MTLResidencySetDescriptor", "setInitialCapacity:", "vQ")
	AddAllocation        = since(15, "MTLResidencySet", "addAllocation:", "v@")
	RemoveAllocation     = since(15, "MTLResidencySet", "removeAllocation:", "v@")
	CommitResidency      = since(15, "MTLResidencySet", "commit", "v")
	RequestResidency     = since(15, "MTLResidencySet", "requestResidency", "v")
	EndResidency         = since(15, "MTLResidencySet", "endResidency", "v")
	QueueAddResidency    = since(15, "MTLCommandQueue", "addResidencySet:", "v@")
	QueueRemoveResidency = since(15, "MTLCommandQueue", "removeResidencySet:", "v@")
)
