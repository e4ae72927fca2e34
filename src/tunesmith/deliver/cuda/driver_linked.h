// The driver's functions, from the library that the program is linked with.
namespace driver {
using ::cuCtxGetDevice;
using ::cuDeviceGetAttribute;
using ::cuInit;
using ::cuKernelSetAttribute;
using ::cuLaunchKernelEx;
using ::cuLibraryGetKernel;
using ::cuLibraryLoadData;
using ::cuLibraryUnload;
using ::cuThreadExchangeStreamCaptureMode;
}  // namespace driver
