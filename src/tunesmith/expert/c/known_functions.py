"""Functions of CUDA, HIP and OpenCL known by their name: what they give, and that nothing is hidden there."""

from __future__ import annotations

import re

RESULTS: dict[str, str] = {
    "__half2float": "float", "__bfloat162float": "float", "__low2float": "float", "__high2float": "float",
    "__float2half": "__half", "__float2half_rn": "__half", "__float2half_rz": "__half",
    "__float2bfloat16": "__nv_bfloat16", "__float2bfloat16_rn": "__nv_bfloat16",
    "__half22float2": "float2", "__bfloat1622float2": "float2", "__float22half2_rn": "__half2",
    "__float22bfloat162_rn": "__nv_bfloat162", "__floats2half2_rn": "__half2",
    "__floats2bfloat162_rn": "__nv_bfloat162", "__halves2half2": "__half2", "__float2half2_rn": "__half2",
    "__half2half2": "__half2", "__low2half": "__half", "__high2half": "__half",
    "__float_as_uint": "unsigned int", "__float_as_int": "int", "__uint_as_float": "float",
    "__int_as_float": "float", "__float2int_rn": "int", "__float2int_rz": "int", "__float2int_rd": "int",
    "__float2int_ru": "int", "__int2float_rn": "float", "__uint2float_rn": "float",
    "__float2uint_rn": "unsigned int", "__fdividef": "float", "__expf": "float", "__logf": "float",
    "__powf": "float", "__sinf": "float", "__cosf": "float", "__tanf": "float", "__frcp_rn": "float",
    "__fsqrt_rn": "float", "__frsqrt_rn": "float", "__fdiv_rn": "float", "__fmul_rn": "float",
    "__fadd_rn": "float", "__fsub_rn": "float", "__fmaf_rn": "float", "__saturatef": "float",
    "__popc": "int", "__clz": "int", "__ffs": "int", "__ballot_sync": "unsigned int",
    "__activemask": "unsigned int", "__any_sync": "int", "__all_sync": "int",
    "__half_as_ushort": "unsigned short", "__half_as_short": "short", "__ushort_as_half": "__half",
    "__bfloat16_as_ushort": "unsigned short", "__ushort_as_bfloat16": "__nv_bfloat16",
    "__syncthreads_or": "int", "__syncthreads_and": "int", "__syncthreads_count": "int",
    "__nv_cvt_float_to_fp8": "__nv_fp8_storage_t", "get_global_id": "size_t", "get_local_id": "size_t",
}  # fmt: skip
FLOAT_MATH = frozenset({
    "expf", "exp2f", "exp10f", "expm1f", "logf", "log2f", "log10f", "log1pf",
    "sqrtf", "rsqrtf", "cbrtf", "powf",
    "sinf", "cosf", "tanf", "tanhf", "sinhf", "coshf", "asinf", "acosf", "atanf", "atan2f", "erff", "erfcf",
    "fabsf", "fmaxf", "fminf", "fmodf", "floorf", "ceilf", "roundf", "rintf", "truncf", "nearbyintf", "fmaf",
    "copysignf", "fdividef", "normcdff", "ldexpf", "hypotf",
})  # fmt: skip
# The result has the type of one of the arguments.
SAME_AS: dict[str, int] = {
    "__ldg": 0, "__ldcs": 0, "__ldcg": 0, "__ldca": 0, "__shfl_sync": 1, "__shfl_xor_sync": 1,
    "__shfl_down_sync": 1, "__shfl_up_sync": 1,
    "__shfl": 0, "__shfl_xor": 0, "__shfl_down": 0, "__shfl_up": 0,
    "__hmul": 0, "__hadd": 0, "__hsub": 0, "__hdiv": 0, "__hneg": 0, "__habs": 0, "__hfma": 0, "__hmax": 0,
    "__hmin": 0, "__hmul2": 0, "__hadd2": 0, "__hfma2": 0, "__hmax2": 0, "__hmin2": 0, "hexp": 0, "hrsqrt": 0,
    "hsqrt": 0, "h2exp": 0, "fma": 0, "exp": 0, "log": 0, "sqrt": 0, "rsqrt": 0, "tanh": 0, "fabs": 0,
    "floor": 0, "ceil": 0, "round": 0, "pow": 0, "native_exp": 0, "native_rsqrt": 0, "clamp": 0, "mad": 0,
    "abs": 0, "fmax": 0, "fmin": 0, "erf": 0, "exp2": 0, "sin": 0, "cos": 0, "rint": 0, "trunc": 0,
}  # fmt: skip
# C's mathematics, in the spellings of all floating-point types, and what OpenCL adds to it.
_MATH = frozenset({
    "abs", "acos", "acosh", "acospi", "add_sat", "all", "any", "asin", "asinh", "asinpi", "atan", "atan2",
    "atan2pi", "atanh", "atanpi", "bitselect", "cbrt", "ceil", "clamp", "clz", "copysign", "cos", "cosh",
    "cospi", "cross", "ctz", "cyl_bessel_i0", "cyl_bessel_i1", "degrees", "distance", "divide", "dot",
    "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp", "exp10", "exp2", "expm1", "fabs", "fast_distance",
    "fast_length", "fast_normalize", "fdim", "fdivide", "ffs", "floor", "fma", "fmax", "fmin", "fmod",
    "fract", "frexp", "hadd", "hypot", "ilogb", "isequal", "isfinite", "isgreater", "isgreaterequal",
    "isinf", "isless", "islessequal", "isnan", "isnormal", "isnotequal", "j0", "j1", "labs", "ldexp",
    "length", "lgamma", "llabs", "llmax", "llmin", "llrint", "llround", "log", "log10", "log1p", "log2",
    "logb", "lrint", "lround", "mad", "mad24", "mad_hi", "mad_sat", "max", "maxmag", "min", "minmag", "mix",
    "modf", "mul24", "mul_hi", "nan", "nearbyint", "nextafter", "norm", "norm3d", "norm4d", "normalize",
    "normcdf", "normcdfinv", "popcount", "pow", "powi", "pown", "powr", "radians", "rcbrt", "recip",
    "remainder", "remquo", "rhadd", "rhypot", "rint", "rnorm", "rnorm3d", "rnorm4d", "rootn", "rotate",
    "round", "rsqrt", "scalbln", "scalbn", "select", "shuffle", "shuffle2", "sign", "signbit", "sin",
    "sincos", "sincospi", "sinh", "sinpi", "smoothstep", "sqrt", "step", "sub_sat", "swap", "tan", "tanh",
    "tanpi", "tgamma", "trunc", "ullmax", "ullmin", "umax", "umin", "upsample", "y0", "y1",
})  # fmt: skip
_HALF = frozenset({
    "ceil", "cos", "exp", "exp10", "exp2", "floor", "log", "log10", "log2", "rcp", "rint", "rsqrt", "sin",
    "sqrt", "tanh", "trunc",
})  # fmt: skip
_PREFIXES = (
    "make_", "convert_", "as_", "native_", "half_", "vload", "vstore", "atomic", "atom_", "get_", "barrier",
    "mem_fence", "read_mem_fence", "write_mem_fence", "work_group_", "sub_group_", "prefetch", "assert",
    "printf",
)  # fmt: skip


def is_known(name: str) -> bool:
    """Whether the languages or their libraries have the function: nothing is hidden in a call of it.

    Names with two underscores in front are the compiler's own.
    """
    name = re.sub(r"^(::)?(cuda::)?(std::)?", "", name)
    if name.startswith(("__", "numeric_limits<", *_PREFIXES)):
        return True
    plain = name.removesuffix("f").removesuffix("l")
    return name in _MATH or plain in _MATH or name.removeprefix("h2").removeprefix("h") in _HALF
