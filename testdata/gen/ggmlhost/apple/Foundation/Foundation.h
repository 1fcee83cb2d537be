// As much of Foundation's interface as ggml's Metal backend is compiled against. What it calls is in the stand-in for
// Metal; the rest, for libraries that are loaded from files, is only declared.
#pragma once
#include <TargetConditionals.h>
#include <assert.h>
#include <dispatch/dispatch.h>
#include <inttypes.h>
#include <limits.h>
#include <mach/mach.h>
#include <objc/objc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef long NSInteger;
typedef unsigned long NSUInteger;
typedef struct { NSUInteger location, length; } NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) { return (NSRange){location, length}; }
typedef NSUInteger NSStringEncoding;
enum { NSUTF8StringEncoding = 4 };

void *_Block_copy(const void *block);
void _Block_release(const void *block);
#define Block_copy(block) ((__typeof__(block))_Block_copy((const void *)(block)))
#define Block_release(block) _Block_release((const void *)(block))

@class NSString, NSArray, NSDictionary, NSError, NSNumber;

@protocol NSObject
- (instancetype)retain;
- (void)release;
- (BOOL)respondsToSelector:(SEL)selector;
@end

__attribute__((objc_root_class))
@interface NSObject <NSObject>
+ (instancetype)alloc;
+ (instancetype)new;
+ (Class)class;
- (instancetype)init;
- (NSString *)description;
@end

typedef struct { unsigned long state; id *itemsPtr; unsigned long *mutationsPtr; unsigned long extra[5]; } NSFastEnumerationState;
@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state objects:(id *)buffer count:(NSUInteger)n;
@end

@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char *)text;
+ (instancetype)stringWithCString:(const char *)text encoding:(NSStringEncoding)encoding;
+ (instancetype)stringWithFormat:(NSString *)format, ...;
+ (instancetype)stringWithContentsOfFile:(NSString *)path encoding:(NSStringEncoding)encoding error:(NSError **)error;
+ (NSString *)pathWithComponents:(NSArray *)parts;
- (instancetype)initWithBytes:(const void *)bytes length:(NSUInteger)n encoding:(NSStringEncoding)encoding;
- (const char *)UTF8String;
- (NSUInteger)length;
- (BOOL)containsString:(NSString *)part;
- (BOOL)isEqualToString:(NSString *)other;
- (NSString *)substringToIndex:(NSUInteger)n;
- (NSArray *)componentsSeparatedByString:(NSString *)separator;
- (NSString *)stringByTrimmingCharactersInSet:(id)set;
- (NSString *)stringByStandardizingPath;
- (NSString *)stringByDeletingLastPathComponent;
- (NSString *)stringByAppendingPathComponent:(NSString *)part;
- (NSString *)stringByAppendingPathExtension:(NSString *)extension;
@end
@interface NSMutableString : NSString
- (void)appendString:(NSString *)text;
@end

@interface NSNumber : NSObject
+ (NSNumber *)numberWithInt:(int)value;
- (int)intValue;
@end

@interface NSArray<T> : NSObject <NSFastEnumeration>
+ (instancetype)arrayWithObjects:(const id *)objects count:(NSUInteger)n;
- (NSUInteger)count;
- (id)objectAtIndexedSubscript:(NSUInteger)i;
@property(readonly) NSUInteger count;
@end
@interface NSMutableArray<T> : NSArray<T>
- (void)addObject:(id)object;
- (void)removeObject:(id)object;
- (void)removeAllObjects;
@end

@interface NSDictionary<K, T> : NSObject
+ (instancetype)dictionary;
+ (instancetype)dictionaryWithObjects:(const id *)objects forKeys:(const id *)keys count:(NSUInteger)n;
- (id)objectForKey:(id)key;
- (id)objectForKeyedSubscript:(id)key;
@end
@interface NSMutableDictionary<K, T> : NSDictionary<K, T>
- (void)setObject:(id)object forKey:(id)key;
- (void)setObject:(id)object forKeyedSubscript:(id)key;
@end

@interface NSSet<T> : NSObject
+ (instancetype)set;
+ (instancetype)setWithArray:(NSArray *)elements;
- (BOOL)containsObject:(id)object;
@end
@interface NSMutableSet<T> : NSSet<T>
- (void)addObject:(id)object;
@end

@interface NSLock : NSObject
- (void)lock;
- (void)unlock;
@end

@interface NSError : NSObject
+ (instancetype)errorWithDomain:(NSString *)domain code:(NSInteger)code userInfo:(NSDictionary *)info;
@property(readonly) NSString *localizedDescription;
@end
extern NSString *const NSLocalizedDescriptionKey;

@interface NSURL : NSObject
+ (NSURL *)fileURLWithPath:(NSString *)path;
@end

@interface NSBundle : NSObject
+ (NSBundle *)bundleForClass:(Class)class;
- (NSString *)pathForResource:(NSString *)name ofType:(NSString *)extension;
@end

@interface NSProcessInfo : NSObject
+ (NSProcessInfo *)processInfo;
@property(readonly) NSArray *arguments;
@property(readonly) NSDictionary *environment;
@end

@interface NSFileManager : NSObject
+ (NSFileManager *)defaultManager;
- (BOOL)isReadableFileAtPath:(NSString *)path;
- (NSDictionary *)attributesOfItemAtPath:(NSString *)path error:(NSError **)error;
- (NSString *)destinationOfSymbolicLinkAtPath:(NSString *)path error:(NSError **)error;
@end
extern NSString *const NSFileType, *const NSFileTypeSymbolicLink;

@interface NSCharacterSet : NSObject
+ (NSCharacterSet *)whitespaceCharacterSet;
@end
@interface NSScanner : NSObject
+ (instancetype)scannerWithString:(NSString *)text;
@property NSCharacterSet *charactersToBeSkipped;
- (BOOL)scanString:(NSString *)text intoString:(NSString **)found;
- (BOOL)scanUpToString:(NSString *)text intoString:(NSString **)found;
@end
