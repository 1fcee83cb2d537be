// As much of Metal's interface as ggml's Metal backend is compiled against.
#pragma once
#include <Foundation/Foundation.h>

// An MTLSize has 24 bytes, which the ABI of arm64 passes as the address of a copy. The stand-in wants them so on
// other machines too, whose ABIs put them on the stack: there an MTLSize is such an address.
struct size3 { NSUInteger width, height, depth; };
#ifdef __aarch64__
typedef struct size3 MTLSize;
#define MTLSizeMake(x, y, z) ((struct size3){(NSUInteger)(x), (NSUInteger)(y), (NSUInteger)(z)})
#else
typedef struct size3 *MTLSize;
#define MTLSizeMake(x, y, z) (&(struct size3){(NSUInteger)(x), (NSUInteger)(y), (NSUInteger)(z)})
#endif

typedef NSUInteger MTLResourceOptions;
enum { MTLResourceStorageModeShared = 0 << 4, MTLResourceStorageModePrivate = 2 << 4 };
enum { MTLDataTypeInt = 29, MTLDataTypeShort = 37, MTLDataTypeBool = 53 };
typedef NSUInteger MTLDataType;
typedef NSInteger MTLGPUFamily;
enum { MTLGPUFamilyApple1 = 1001, MTLGPUFamilyApple6 = 1006, MTLGPUFamilyApple7 = 1007, MTLGPUFamilyCommon1 = 3001 };
typedef NSUInteger MTLLanguageVersion;
typedef NSUInteger MTLDispatchType;
enum { MTLDispatchTypeSerial, MTLDispatchTypeConcurrent };
typedef NSUInteger MTLBarrierScope;
enum { MTLBarrierScopeBuffers = 1 };
typedef NSUInteger MTLCommandBufferStatus;
enum { MTLCommandBufferStatusNotEnqueued, MTLCommandBufferStatusEnqueued, MTLCommandBufferStatusCommitted, MTLCommandBufferStatusScheduled, MTLCommandBufferStatusCompleted, MTLCommandBufferStatusError };
enum { MTLCaptureDestinationGPUTraceDocument = 2 };

@protocol MTLDevice, MTLCommandBuffer, MTLEvent;

@protocol MTLAllocation <NSObject>
@end
@protocol MTLBuffer <MTLAllocation>
@end
@protocol MTLFunction <NSObject>
@end
@protocol MTLEvent <NSObject>
@end
@protocol MTLSharedEvent <MTLEvent>
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds;
@end
@protocol MTLComputePipelineState <NSObject>
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup, threadExecutionWidth;
@end

@interface MTLFunctionConstantValues : NSObject
- (void)setConstantValue:(const void *)value type:(MTLDataType)type atIndex:(NSUInteger)i;
@end
@interface MTLCompileOptions : NSObject
@property(copy) NSDictionary *preprocessorMacros;
@property MTLLanguageVersion languageVersion;
@end
@protocol MTLLibrary <NSObject>
@property(readonly) NSArray<NSString *> *functionNames;
- (id<MTLFunction>)newFunctionWithName:(NSString *)name;
- (id<MTLFunction>)newFunctionWithName:(NSString *)name constantValues:(MTLFunctionConstantValues *)values error:(NSError **)error;
@end

@protocol MTLCommandEncoder <NSObject>
- (void)endEncoding;
- (void)pushDebugGroup:(NSString *)name;
- (void)popDebugGroup;
@end
@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)pipeline;
- (void)setBytes:(const void *)bytes length:(NSUInteger)n atIndex:(NSUInteger)i;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)i;
- (void)setThreadgroupMemoryLength:(NSUInteger)n atIndex:(NSUInteger)i;
- (void)dispatchThreadgroups:(MTLSize)grid threadsPerThreadgroup:(MTLSize)threads;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
@end
@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value;
- (void)copyFromBuffer:(id<MTLBuffer>)source sourceOffset:(NSUInteger)from toBuffer:(id<MTLBuffer>)destination destinationOffset:(NSUInteger)to size:(NSUInteger)n;
@end
typedef void (^MTLCommandBufferHandler)(id<MTLCommandBuffer>);
@protocol MTLCommandBuffer <NSObject>
@property(readonly) MTLCommandBufferStatus status;
@property(readonly) NSError *error;
- (id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (void)enqueue;
- (void)commit;
- (void)waitUntilCompleted;
- (void)addCompletedHandler:(MTLCommandBufferHandler)handler;
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value;
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value;
@end
@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBuffer;
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
@end

@interface MTLResidencySetDescriptor : NSObject
@property(copy) NSString *label;
@property NSUInteger initialCapacity;
@end
@protocol MTLResidencySet <NSObject>
- (void)addAllocation:(id<MTLAllocation>)allocation;
- (void)removeAllAllocations;
- (void)commit;
- (void)requestResidency;
- (void)endResidency;
@end

@protocol MTLDevice <NSObject>
@property(readonly) NSString *name;
@property(readonly) BOOL hasUnifiedMemory;
@property(readonly) NSUInteger maxBufferLength, maxThreadgroupMemoryLength, currentAllocatedSize;
@property(readonly) uint64_t recommendedMaxWorkingSetSize;
- (BOOL)supportsFamily:(MTLGPUFamily)family;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLSharedEvent>)newSharedEvent;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)n options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytes:(const void *)bytes length:(NSUInteger)n options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void *)bytes length:(NSUInteger)n options:(MTLResourceOptions)options deallocator:(void (^)(void *, NSUInteger))deallocator;
- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source options:(MTLCompileOptions *)options error:(NSError **)error;
- (id<MTLLibrary>)newLibraryWithURL:(NSURL *)url error:(NSError **)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError **)error;
- (id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)descriptor error:(NSError **)error;
@end
id<MTLDevice> MTLCreateSystemDefaultDevice(void);
NSArray *MTLCopyAllDevices(void);

@protocol MTLCaptureScope <NSObject>
- (void)beginScope;
- (void)endScope;
@end
@interface MTLCaptureDescriptor : NSObject
@property id captureObject;
@property NSInteger destination;
@property(copy) NSURL *outputURL;
@end
@interface MTLCaptureManager : NSObject
+ (MTLCaptureManager *)sharedCaptureManager;
- (id<MTLCaptureScope>)newCaptureScopeWithDevice:(id<MTLDevice>)device;
- (BOOL)startCaptureWithDescriptor:(MTLCaptureDescriptor *)descriptor error:(NSError **)error;
- (void)stopCapture;
@end
