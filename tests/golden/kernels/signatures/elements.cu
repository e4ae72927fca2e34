// Elements of types, and how many there are in one.
// read: elements

// case: types
// each line
half  // want: float16 × 1
__half  // want: float16 × 1
__nv_bfloat16  // want: bfloat16 × 1
hip_bfloat16  // want: bfloat16 × 1
float  // want: float32 × 1
double  // want: float64 × 1
char  // want: int8 × 1
signed char  // want: int8 × 1
unsigned char  // want: uint8 × 1
short  // want: int16 × 1
unsigned short int  // want: uint16 × 1
unsigned  // want: uint32 × 1
long  // want: int64 × 1
unsigned long long  // want: uint64 × 1
size_t  // want: uint64 × 1
bool  // want: uint8 × 1
__nv_fp8_e4m3  // want: float8_e4m3 × 1
__nv_fp8_e5m2  // want: float8_e5m2 × 1
float4  // want: float32 × 4
__half2  // want: float16 × 2
nv_bfloat162  // want: bfloat16 × 2
uchar3  // want: uint8 × 3
longlong2  // want: int64 × 2
MyStruct  // want: not known × 1
void  // want: not known × 1
