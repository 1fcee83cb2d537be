#pragma once
typedef double CFTimeInterval;
typedef const void* CFTypeRef;
typedef struct __IOSurface* IOSurfaceRef;
