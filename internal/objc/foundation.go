package objc

// Foundation: objects, strings, arrays, errors, files.
var (
	Alloc             = static("NSObject", "alloc", "@")
	Init              = method("NSObject", "init", "@")
	RetainObject      = method("NSObject", "retain", "@")
	RespondsTo        = method("NSObject", "respondsToSelector:", "B:")
	StringWithCString = static("NSString", "stringWithCString:encoding:", "@*Q")
	UTF8String        = method("NSString", "UTF8String", "*")
	ArrayWithObjects  = static("NSArray", "arrayWithObjects:count:", "@^Q")
	Count             = method("NSArray", "count", "Q")
	ObjectAtIndex     = method("NSArray", "objectAtIndex:", "@Q")
	FileURLWithPath   = static("NSURL", "fileURLWithPath:", "@@")
	ErrorDomain       = method("NSError", "domain", "@")
	ErrorCode         = method("NSError", "code", "Q")
	ErrorDescription  = method("NSError", "localizedDescription", "@")
	DataBytes         = method("NSData", "bytes", "^")
	DataLength        = method("NSData", "length", "Q")
	ProcessInfo       = static("NSProcessInfo", "processInfo", "@")
	SystemVersion     = method("NSProcessInfo", "operatingSystemVersionString", "@")
)
