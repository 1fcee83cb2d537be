package objc

// Counter sample buffers, for times of commands.
var (
	CounterSetName        = method("MTLCounterSet", "name", "@")
	SetCounterSet         = method("MTLCounterSampleBufferDescriptor", "setCounterSet:", "v@")
	SetSampleCount        = method("MTLCounterSampleBufferDescriptor", "setSampleCount:", "vQ")
	SetSampleStorage      = method("MTLCounterSampleBufferDescriptor", "setStorageMode:", "vQ")
	ResolveCounters       = method("MTLCounterSampleBuffer", "resolveCounterRange:", "@R")
	ComputePassDescriptor = static("MTLComputePassDescriptor", "computePassDescriptor", "@")
	SetPassDispatchType   = method("MTLComputePassDescriptor", "setDispatchType:", "vQ")
	PassSamples           = method("MTLComputePassDescriptor", "sampleBufferAttachments", "@")
	PassSampleAt          = method("MTLComputePassSampleBufferAttachmentDescriptorArray", "objectAtIndexedSubscript:", "@Q")
	SetPassSampleBuffer   = method("MTLComputePassSampleBufferAttachmentDescriptor", "setSampleBuffer:", "v@")
	SetPassStartIndex     = method("MTLComputePassSampleBufferAttachmentDescriptor", "setStartOfEncoderSampleIndex:", "vQ")
	SetPassEndIndex       = method("MTLComputePassSampleBufferAttachmentDescriptor", "setEndOfEncoderSampleIndex:", "vQ")
)

// Captures to .gputrace files.
var (
	SharedCaptureManager  = static("MTLCaptureManager", "sharedCaptureManager", "@")
	SupportsDestination   = method("MTLCaptureManager", "supportsDestination:", "BQ")
	IsCapturing           = method("MTLCaptureManager", "isCapturing", "B")
	StartCapture          = method("MTLCaptureManager", "startCaptureWithDescriptor:error:", "B@^")
	StopCapture           = method("MTLCaptureManager", "stopCapture", "v")
	SetCaptureObject      = method("MTLCaptureDescriptor", "setCaptureObject:", "v@")
	SetCaptureDestination = method("MTLCaptureDescriptor", "setDestination:", "vQ")
	SetCaptureURL         = method("MTLCaptureDescriptor", "setOutputURL:", "v@")
)
