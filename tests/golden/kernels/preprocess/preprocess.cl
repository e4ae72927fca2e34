// Macros, conditions and headers, as the preprocessor leaves them.

// case: the compilers version is what every supported one says
#if __OPENCL_VERSION__ >= 120
new
#endif
// want: new
// want: decided: line 1: #if __OPENCL_VERSION__ >= 120 holds: __OPENCL_VERSION__ is 120
