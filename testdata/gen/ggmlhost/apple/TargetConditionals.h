// The program is compiled as one for macOS on Apple silicon, though it runs elsewhere.
#pragma once
#define TARGET_OS_MAC 1
#define TARGET_OS_OSX 1
#define TARGET_OS_IOS 0
#define TARGET_OS_TV 0
#define TARGET_OS_VISION 0
#define TARGET_CPU_X86_64 0
#define TARGET_CPU_ARM64 1
#define __MAC_OS_X_VERSION_MAX_ALLOWED 150000
