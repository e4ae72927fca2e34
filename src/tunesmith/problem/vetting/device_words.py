"""What a stranger's kernel may use: what the languages bring (functions, attributes, pragmas, instructions),
what the user's own texts have; and the refusal of anything else.

Not listed, and so only where the original has it: clocks and numbers of multiprocessors (a kernel could tell
a timing from a check by them), `printf`, memory from the heap, launches from the device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

HandedArrays = frozenset[tuple[str, int, bool]]  # entry, position, and whether no launch may write it
Rule = Literal[
    "text", "directive", "include", "pragma", "attribute", "name", "call", "declaration", "assembler", "host",
    "state", "clock", "pointer", "wait", "address", "write", "unset",
]  # fmt: skip


# What may stay in a cache beyond a launch, in PTX and in C++.
_KEPT = re.compile(r"evict_|cache_hint|createpolicy|applypriority|access_property|persisting|L2::")


def keeps_in_cache(text: str) -> bool:
    """Whether a kernel may ask a cache to keep data for the launches after it."""
    return _KEPT.search(text) is not None


class Refusal(Exception):
    """Why a source must not be compiled: the rule, the line (0: none) and the words for its author."""

    def __init__(self, rule: Rule, line: int, words: str) -> None:
        super().__init__(words)
        self.rule, self.line, self.words = rule, line, words

    def __str__(self) -> str:
        return f"line {self.line}: {self.words}" if self.line else self.words


@dataclass(frozen=True)
class UserWords:
    """What the user's own texts have: the author of a template may keep it."""

    words: frozenset[str]
    macros: frozenset[str]
    includes: frozenset[str]
    pragmas: frozenset[str]
    text: str
    states: frozenset[str]  # what headers have that outlives a launch and can be written, and what uses it
    header_macros: frozenset[tuple[str, bool]] = frozenset()  # and whether each takes arguments
    defines: frozenset[tuple[str, str]] = frozenset()  # of the original, without those that take arguments


def split_word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _any_word_pattern(*texts: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{word})" for text in texts for word in text.split()))


_REAL = (
    "acosh? acospi asinh? asinpi atan[2h]? atan2pi atanpi cbrt ceil copysign cos cosh cospi erfc? exp exp10 "
    "exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma log log10 log1p log2 logb "
    "modf nan nextafter pow powr? remainder remquo rint round rsqrt sin sincos sinh sinpi sqrt tan tanh "
    "tanpi tgamma trunc isnan isinf isfinite isnormal signbit abs min max"
)
_OPENCL_TYPE = "(?:u?char|u?short|u?int|u?long|half|float|double|size_t|u?intptr_t|bool)(?:2|3|4|8|16)?"
_OPENCL = _any_word_pattern(
    _REAL,
    "fract lgamma_r mad maxmag minmag pown rootn exp10 "
    "(?:native|half)_(?:cos|divide|exp|exp2|exp10|log|log2|log10|powr|recip|rsqrt|sin|sqrt|tan) "
    "abs_diff add_sat bitselect clamp clz ctz cross degrees distance dot fast_distance fast_length "
    "fast_normalize hadd rhadd isequal isgreater isgreaterequal isless islessequal islessgreater isnotequal "
    "isordered isunordered any all length mad24 mad_hi mad_sat mix mul24 mul_hi normalize popcount radians "
    "rotate select shuffle2? sign smoothstep step sub_sat upsample vec_step "
    "v(?:load|store)(?:2|3|4|8|16) vloada?_half(?:2|3|4|8|16)? vstorea?_half(?:2|3|4|8|16)?(?:_rt[ezpn])?",
    rf"convert_{_OPENCL_TYPE}(?:_sat)?(?:_rt[ezpn])? as_{_OPENCL_TYPE}",
    "get_(?:global|local|group)_id get_(?:global|local|enqueued_local)_size get_num_groups get_work_dim "
    "get_global_offset get_(?:global|local)_linear_id get_(?:max_|enqueued_num_|num_)?sub_groups? "
    "get_(?:max_)?sub_group_(?:size|id|local_id) get_num_sub_groups get_fence "
    "barrier work_group_barrier sub_group_barrier (?:read_|write_)?mem_fence atomic_work_item_fence "
    "async_work_group_(?:strided_)?copy wait_group_events prefetch to_(?:global|local|private) "
    "atom(?:ic)?_(?:add|sub|xchg|inc|dec|cmpxchg|min|max|and|or|xor) atomic_init "
    "atomic_(?:load|store|exchange|compare_exchange_(?:strong|weak)|fetch_(?:add|sub|or|xor|and|min|max))"
    "(?:_explicit)? "
    "(?:work|sub)_group_(?:all|any|broadcast|reduce_(?:add|min|max)|scan_(?:ex|in)clusive_(?:add|min|max)) "
    "sub_group_(?:shuffle(?:_xor|_up|_down)?|elect|ballot|broadcast_first|rotate) "
    "(?:read|write)_image(?:f|i|ui|h) get_image_(?:width|height|depth|dim|array_size) "
    "__builtin_(?:prefetch|nontemporal_load|nontemporal_store|shufflevector|convertvector|expect|assume"
    "|assume_aligned|unreachable|popcountl?|c[lt]zl?|reduce_(?:add|min|max)|elementwise_\\w+) "
    "__has_(?:builtin|attribute|extension|feature|cpp_attribute)",
)
_OPENCL_CONSTANT = _any_word_pattern(
    "M_(?:E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)(?:_F|_H)? "
    "(?:FLT|DBL|HALF)_(?:DIG|MANT_DIG|MAX|MIN|EPSILON|RADIX|(?:MAX|MIN)(?:_10)?_EXP) "
    "(?:U?(?:CHAR|SHRT|INT|LONG)|SCHAR)_(?:MAX|MIN|BIT) CHAR_BIT MAXFLOAT "
    "HUGE_VALF? INFINITY NAN NULL CLK_\\w+ memory_(?:scope|order)_\\w+ (?:cl|CL|__opencl_c)_\\w+ "
    "FP_(?:ILOGB|FAST_)\\w+ __OPENCL_(?:C_)?VERSION__ __ENDIAN_LITTLE__ __IMAGE_SUPPORT__ "
    "__FAST_RELAXED_MATH__ __func__"
)
_OPENCL_RESERVED = _any_word_pattern(
    "__(?:global|local|constant|private|generic|kernel|read_only|write_only|read_write|inline|inline__"
    "|restrict|restrict__|const|volatile|signed|alignof|attribute|attribute__) _Bool _Alignas _Alignof "
    "_Static_assert true false"
)

_SYNC = "__(?:shfl(?:_xor|_up|_down)?|ballot|any|all)(?:_sync)? __match_(?:any|all)_sync __activemask"
_HALF = (
    "h2?(?:ceil|cos|exp|exp10|exp2|floor|log|log10|log2|rcp|rint|rsqrt|sin|sqrt|tanh|tanh_approx|trunc) "
    "__h\\w+ __(?:half|halves|bfloat|bfloat16|low|lows|high|highs|float|floats|double|int|uint|ll|ull|short"
    "|ushort|char|uchar|half2|nv_bfloat16|hip_bfloat16)\\d*_?(?:2|to)_?\\w+ __\\w+_as_\\w+ __hilo\\w+ "
    "__nv_cvt_\\w+ __bfloat16\\w* __lowhigh2highlow __low2\\w+ __high2\\w+ __hip_cvt_\\w+"
)
_CUDA = _any_word_pattern(
    " ".join(f"(?:{name})[fl]?" for name in _REAL.split()),
    "(?:cyl_bessel_i[01]|erfcinv|erfcx|erfinv|fdivide|j[01n]|y[01n]|normcdf|normcdfinv|rcbrt|rhypot"
    "|r?norm(?:3d|4d)?|scalbl?n|sincospi|lr(?:int|ound)|llr(?:int|ound))f?",
    "labs llabs u?llm(?:in|ax) um(?:in|ax) div(?:ide)? swap assert make_\\w+ dim3 bit_cast "
    "atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_block|_system)? "
    "cudaGridDependencySynchronize cudaTriggerProgrammaticLaunchCompletion",
    _SYNC,
    _HALF,
    "__reduce_(?:add|min|max|and|or|xor)_sync __syncthreads(?:_or|_and|_count)? __syncwarp "
    "__barrier_sync\\w* __threadfence(?:_block|_system)? __ld(?:g|cs|cg|ca|lu|cv) __st(?:cs|cg|wb|wt) "
    "__u?mul(?:24|hi|64hi) __u?mul64hi __u?mulhi __popc(?:ll)? __clz(?:ll)? __ffs(?:ll)? __brev(?:ll)? "
    "__byte_perm __funnelshift_[lr]c? __fns __u?(?:sad|hadd|rhadd) __dp[24]a(?:_lo|_hi)? __v\\w+ "
    "__[fd](?:add|sub|mul|div|ma|maf|sqrt|rcp)_r[nzud] __frsqrt_rn __fmaf?_(?:ieee_)?r[nzud] "
    "__(?:exp|exp10|log|log2|log10|pow|sin|cos|tan|sincos|saturate|fdivide|tanh)f "
    "__builtin_(?:assume|assume_aligned|expect|unreachable|nontemporal_load|nontemporal_store|clzl?l?"
    "|popcountl?l?|ctzl?l?|align) __assume "
    "__cvta_\\w+ __is(?:Shared|Global|Local|Constant|GridConstant) __pipeline_\\w+ __mbarrier_\\w+ "
    "__nanosleep __trap __cluster\\w+ __isnanf? __isinff? __finitef? __signbitf? __mma_\\w+ __wmma_\\w+",
)
_CUDA_RESERVED = _any_word_pattern(
    "__(?:global|device|host|shared|constant|managed|forceinline|noinline|inline|restrict|launch_bounds"
    "|maxnreg|cluster_dims|block_size|grid_constant|align|volatile|signed|inline_hint|nv_pure|attribute)__ "
    "__(?:restrict|inline|volatile|forceinline|attribute|extension__|signed|alignof__?|typeof__?) "
    "__nv_(?:bfloat16\\w*|fp[468]\\w*|saturation_t|atomic_\\w+) __hip_\\w+ __half\\w* __NV_\\w+ __CUDA_\\w+ "
    "__HIP\\w* __func__ __(?:u?int\\d+)(?:_t)? _Bool __warpSize __fp16 __assertfail"
)
_CLOCKS = _any_word_pattern(
    "clock(?:64)? globaltimer(?:_lo|_hi)? clock_hi n?smid n?warpid gridid envreg\\d+ pm\\d+(?:_64)? "
    "wall_clock64 get_sreg_(?:n?smid|n?warpid|gridid|clock\\w*|globaltimer\\w*) chrono read_cycle_counter "
    "__\\w*(?:clock|timer|smid|s_memtime|s_memrealtime|readcyclecounter|get_timestamp)\\w* "
    "intel_get_cycle_counter clock_read_\\w+"
)

_ATTRIBUTES = split_word_set(
    "aligned packed always_inline noinline unused const pure vec_type_hint work_group_size_hint "
    "reqd_work_group_size opencl_unroll_hint overloadable intel_reqd_sub_group_size ext_vector_type "
    "may_alias flatten hot cold"
)
_BRACKETED = split_word_set("likely unlikely maybe_unused fallthrough nodiscard")
_EXTENSIONS = (
    "cl_khr_(?:fp16|fp64|byte_addressable_store|(?:local|global)_int32_(?:base|extended)_atomics"
    "|int64_(?:base|extended)_atomics|subgroups|subgroup_\\w+|3d_image_writes|integer_dot_product"
    "|extended_bit_ops|expect_assume)|cl_intel_(?:required_)?subgroups\\w*|cl_amd_media_ops2?|cl_nv_pragma_unroll"
)
_PRAGMA = re.compile(
    r"unroll(?:\s*\(?[\w\s+*/-]+\)?)?|nounroll|once"
    rf"|OPENCL\s+EXTENSION\s+(?:{_EXTENSIONS})\s*:\s*(?:enable|disable)"
    r"|(?:OPENCL|STDC)\s+FP_CONTRACT\s+(?:ON|OFF|DEFAULT)"
)
_HEADERS = split_word_set(
    "<cuda_fp16.h> <cuda_bf16.h> <cuda_fp8.h> <mma.h> <cuda_pipeline.h> <cuda_pipeline_primitives.h> "
    "<cooperative_groups.h> <cooperative_groups/reduce.h> <cooperative_groups/memcpy_async.h> "
    "<cooperative_groups/scan.h> <cuda/atomic> <cuda/barrier> <cuda/pipeline> <cuda/ptx>"
)
NAMESPACES = split_word_set("cooperative_groups nvcuda wmma cuda std cg")

INSTRUCTIONS = split_word_set(
    "abs activemask add addc and applypriority atom bar barrier bfe bfi bfind bmsk bra brev "
    "clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect "
    "ex2 exit fence fma fns getctarank griddepcontrol isspacep ld ldmatrix ldu lg2 lop3 mad mad24 "
    "madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg not "
    "or popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf "
    "shfl shl shr sin slct sqrt st stmatrix sub subc szext tanh tcgen05 tensormap testp trap vabsdiff "
    "vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote "
    "vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma wmma xor"
)
PTX_TYPES = split_word_set(
    "reg pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64 v2 v4 v8"
)


@dataclass(frozen=True)
class DeviceWords:
    """Of one language."""

    functions: re.Pattern[str]
    constants: re.Pattern[str]
    reserved: re.Pattern[str]  # names that begin with two underscores, or one and a capital
    headers: frozenset[str] = frozenset()
    attributes: frozenset[str] = _ATTRIBUTES
    bracketed: frozenset[str] = frozenset()  # [[attributes]]
    pragmas: re.Pattern[str] = _PRAGMA
    clocks: re.Pattern[str] = _CLOCKS

    def calls(self, name: str) -> bool:
        return self.functions.fullmatch(name) is not None

    def has_reserved(self, name: str) -> bool:
        return any(p.fullmatch(name) for p in (self.reserved, self.functions, self.constants))

    def is_foreign(self, name: str) -> bool:
        """Whether a compiler may define it as a macro before it reads a text."""
        return name.startswith("_") or self.constants.fullmatch(name) is not None


OPENCL = DeviceWords(_OPENCL, _OPENCL_CONSTANT, _OPENCL_RESERVED)
CUDA = DeviceWords(
    _CUDA,
    _any_word_pattern("CUDART_\\w+ CUDA_VERSION NULL INFINITY NAN USE_ROCM WITH_\\w+ HIP_VERSION"),
    _CUDA_RESERVED,
    _HEADERS,
    bracketed=_BRACKETED,
)
_HIP_HEADERS = frozenset(f"<hip/hip_{name}.h>" for name in ("runtime", "fp16", "bf16"))
HIP = replace(CUDA, headers=_HIP_HEADERS, attributes=_ATTRIBUTES | split_word_set("amdgpu_waves_per_eu"))
