package objc

// Constant is a value of an enumeration in Apple's headers.
type Constant struct {
	Name  string
	Value uint64
}

// Constants has all constants that this module uses; a test compares them with the headers.
var Constants []Constant

func constant(name string, value uint64) uint64 {
	Constants = append(Constants, Constant{name, value})
	return value
}

// Enumerations. The names are the headers' without MTL or NS.
var (
	UTF8StringEncoding = constant("NSUTF8StringEncoding", 4)

	DispatchTypeSerial     = constant("MTLDispatchTypeSerial", 0)
	DispatchTypeConcurrent = constant("MTLDispatchTypeConcurrent", 1)
	BarrierScopeBuffers    = constant("MTLBarrierScopeBuffers", 1)

	ResourceStorageModeShared           = constant("MTLResourceStorageModeShared", 0)
	ResourceStorageModePrivate          = constant("MTLResourceStorageModePrivate", 1<<5)
	ResourceHazardTrackingModeUntracked = constant("MTLResourceHazardTrackingModeUntracked", 1<<8)
	ResourceHazardTrackingModeTracked   = constant("MTLResourceHazardTrackingModeTracked", 1<<9)
	StorageModeShared                   = constant("MTLStorageModeShared", 0)
	ResourceUsageRead                   = constant("MTLResourceUsageRead", 1)
	ResourceUsageWrite                  = constant("MTLResourceUsageWrite", 2)

	CommandBufferStatusCompleted                   = constant("MTLCommandBufferStatusCompleted", 4)
	CommandBufferStatusError                       = constant("MTLCommandBufferStatusError", 5)
	CommandBufferErrorOptionEncoderExecutionStatus = constant("MTLCommandBufferErrorOptionEncoderExecutionStatus", 1)
	CommandBufferErrorInternal                     = constant("MTLCommandBufferErrorInternal", 1)
	CommandBufferErrorTimeout                      = constant("MTLCommandBufferErrorTimeout", 2)
	CommandBufferErrorPageFault                    = constant("MTLCommandBufferErrorPageFault", 3)
	CommandBufferErrorAccessRevoked                = constant("MTLCommandBufferErrorAccessRevoked", 4)
	CommandBufferErrorNotPermitted                 = constant("MTLCommandBufferErrorNotPermitted", 7)
	CommandBufferErrorOutOfMemory                  = constant("MTLCommandBufferErrorOutOfMemory", 8)
	CommandBufferErrorInvalidResource              = constant("MTLCommandBufferErrorInvalidResource", 9)
	CommandBufferErrorDeviceRemoved                = constant("MTLCommandBufferErrorDeviceRemoved", 11)
	CommandBufferErrorStackOverflow                = constant("MTLCommandBufferErrorStackOverflow", 12)

	GPUFamilyApple1  = constant("MTLGPUFamilyApple1", 1001)
	GPUFamilyApple7  = constant("MTLGPUFamilyApple7", 1007)
	GPUFamilyApple10 = constant("MTLGPUFamilyApple10", 1010)
	GPUFamilyMac2    = constant("MTLGPUFamilyMac2", 2002)
	GPUFamilyMetal3  = constant("MTLGPUFamilyMetal3", 5001)
	GPUFamilyMetal4  = constant("MTLGPUFamilyMetal4", 5002)

	LanguageVersion3_1                    = constant("MTLLanguageVersion3_1", 3<<16+1)
	MathModeSafe                          = constant("MTLMathModeSafe", 0)
	MathFunctionsPrecise                  = constant("MTLMathFloatingPointFunctionsPrecise", 1)
	DataTypeFloat                         = constant("MTLDataTypeFloat", 3)
	DataTypeHalf                          = constant("MTLDataTypeHalf", 16)
	DataTypeInt                           = constant("MTLDataTypeInt", 29)
	DataTypeUInt                          = constant("MTLDataTypeUInt", 33)
	DataTypeShort                         = constant("MTLDataTypeShort", 37)
	DataTypeUShort                        = constant("MTLDataTypeUShort", 41)
	DataTypeChar                          = constant("MTLDataTypeChar", 45)
	DataTypeUChar                         = constant("MTLDataTypeUChar", 49)
	DataTypeBool                          = constant("MTLDataTypeBool", 53)
	DataTypeLong                          = constant("MTLDataTypeLong", 81)
	DataTypeULong                         = constant("MTLDataTypeULong", 85)
	DataTypeBFloat                        = constant("MTLDataTypeBFloat", 121)
	PipelineOptionFailOnBinaryArchiveMiss = constant("MTLPipelineOptionFailOnBinaryArchiveMiss", 1<<2)

	IndirectCommandTypeConcurrentDispatch        = constant("MTLIndirectCommandTypeConcurrentDispatch", 1<<5)
	IndirectCommandTypeConcurrentDispatchThreads = constant("MTLIndirectCommandTypeConcurrentDispatchThreads", 1<<6)

	CounterSamplingPointAtStageBoundary    = constant("MTLCounterSamplingPointAtStageBoundary", 0)
	CounterSamplingPointAtDispatchBoundary = constant("MTLCounterSamplingPointAtDispatchBoundary", 2)
	CaptureDestinationGPUTraceDocument     = constant("MTLCaptureDestinationGPUTraceDocument", 2)
)
