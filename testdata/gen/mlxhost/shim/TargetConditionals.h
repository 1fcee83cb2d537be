#pragma once
#define TARGET_OS_IPHONE 0
#define TARGET_OS_OSX 1
