"""The one table of what functions, built-in variables, special registers and instructions do.

Words of CUDA, HIP and OpenCL stand side by side; the first line that fits a name says what it does. A name
that fits none may do anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Flag, auto
from functools import lru_cache

from tunesmith.csource import nodes as c


class Effects(Flag):
    """What an evaluation rests on, and what it leaves behind. None of them: it only computes."""

    NONE = 0
    # what its value depends on, besides its operands
    THREAD = auto()  # which thread asks: lane, warp, threadIdx, blockIdx, cluster
    SHAPE = auto()  # how the launch is shaped: blockDim, gridDim
    MASK = auto()  # other threads, who must arrive as well: votes, shuffles, matches, matrix instructions
    TIME = auto()
    MACHINE = auto()  # where it runs: multiprocessor, warp slot, environment
    READS = auto()  # memory
    # what it changes
    WRITES = auto()  # memory
    ATOMIC = auto()
    ASSIGNS = auto()  # variables: =, ++, a reference, a pointer to a variable that is handed over
    VOLATILE = auto()  # each access must happen as written
    BARRIER = auto()  # it waits for other threads
    FENCE = auto()  # it orders what stands before and after it
    OUTPUT = auto()  # it prints
    STOPS = auto()  # it may end the kernel: assert, trap
    ALLOCATES = auto()
    LAUNCHES = auto()
    RANDOM = auto()  # it moves on the state of a generator
    UNKNOWN = auto()

    @property
    def may_drop(self) -> bool:
        """Leaving it out changes nothing. A kernel that keeps its contract never comes to stop itself."""
        return not self & ~(_VALUES | Effects.STOPS)

    @property
    def may_repeat(self) -> bool:
        """Done again at once it gives the same, and changes nothing more."""
        return self.may_drop and not self & Effects.TIME

    @property
    def any_thread(self) -> bool:
        """Whoever does it gets the same: it may go to another thread of another launch."""
        return self.may_repeat and not self & (
            Effects.THREAD | Effects.SHAPE | Effects.MACHINE | Effects.TIME
        )


_VALUES = Effects.THREAD | Effects.SHAPE | Effects.TIME | Effects.MACHINE | Effects.READS
ANYTHING = ~Effects.NONE
_MEMORY = Effects.READS | Effects.WRITES
_GROUP = Effects.MASK | Effects.BARRIER

_REAL = r"""
    acosh? acospi asinh? asinpi atan[2h]? atan2pi atanpi cbrt ceil copysign cosh? cospi erfc? exp exp10
    exp2 expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb ldexp lgamma log log10 log1p log2 logb nan
    nearbyint nextafter pow powi pown powr remainder rint rootn round rsqrt sinh? sinpi sqrt tanh? tanpi
    tgamma trunc isnan isinf isfinite isnormal signbit abs min max cyl_bessel_i[01] erfcinv erfcx erfinv
    fdivide divide j[01n] y[01n] normcdf normcdfinv rcbrt recip rhypot r?norm(?:3d|4d)? scalbl?n
    lr(?:int|ound) llr(?:int|ound)
"""

# What it does -> patterns of whole names.
_FUNCTIONS: tuple[tuple[Effects, str], ...] = (
    # -- values of values ---------------------------------------------------------------------------
    (Effects.NONE, " ".join(f"(?:{name})(?:[fl]|ieee)?" for name in _REAL.split())),
    (
        Effects.NONE,
        r"""
        labs llabs u?llm(?:in|ax) um(?:in|ax) div clz ctz ffs popcount mul24 mad24 mad mad_hi mad_sat
        mul_hi add_sat sub_sat hadd rhadd abs_diff bitselect clamp mix step smoothstep sign select
        shuffle2? cross dot distance length normalize fast_(?:distance|length|normalize) degrees radians
        rotate upsample maxmag minmag all any
        is(?:equal|notequal|greater|greaterequal|less|lessequal|lessgreater|ordered|unordered) vec_step
        bit_cast move forward numeric_limits<.*
    """,
    ),
    (
        Effects.NONE,
        r"""
        make_(?:u?(?:char|short|int|long|longlong)|float|double|half|bfloat16|cu\w*Complex)\d*\w*
        (?:convert|as)_(?:u?(?:char|short|int|long)|float|double|half|size_t|bool)\d*\w*
        (?:native|half)_(?:a?cosh?|a?sinh?|a?tanh?|divide|exp|exp2|exp10|log|log2|log10|powr|recip|rsqrt|sqrt)
        h2?(?:ceil|cos|exp|exp10|exp2|floor|log|log10|log2|rcp|rint|rsqrt|sin|sqrt|tanh|tanh_approx|trunc)
    """,
    ),
    (
        Effects.NONE,
        r"""
        __h(?!ip_)\w+
        __(?:half|halves|bfloat|bfloat16|low|lows|high|highs|float|floats|double|int|uint|ll|ull|short|ushort|char|uchar|half2|nv_bfloat16|hip_bfloat16)\d*_?(?:2|to)_?\w+
        __\w+_as_\w+ __hilo\w+ __(?:nv|hip)_cvt_\w+
        __(?:nv|hip)_(?:bfloat16|bfloat162|fp[468]\w*)(?:_raw)? __half2?(?:_raw)? __bfloat16\w*
        __halves2\w+ __lowhigh2highlow __lows?2\w+ __highs?2\w+
    """,
    ),
    (
        Effects.NONE,
        r"""
        __u?mul(?:24|hi|64hi|hi64) __u?mul64hi __umulhi __mulhi __popc(?:ll)? __clz(?:ll)? __ffs(?:ll)?
        __brev(?:ll)? __byte_perm __funnelshift_[lr]c? __fns __u?(?:sad|hadd|rhadd) __dp[24]a(?:_lo|_hi)?
        __v(?:abs|add|avg|cmp|max|min|neg|sad|set|sub|iaddmax|iaddmin|imax|imin|ibmax|ibmin|hadd)\w*
        __[fd](?:add|sub|mul|div|ma|maf|sqrt|rcp|rsqrt)_r[nzudtep]e? __frsqrt_rn
        __fmaf?(?:_ieee)?_r[nzudtep]e?
        __(?:exp|exp10|log|log2|log10|pow|sin|cos|tan|saturate|fdivide|tanh|rcp|sqrt)f __fsqrt_rn
        __fdiv_rn __(?:is)?(?:nan|inf|finite|signbit)[fdl]? __isnan[fd]? __isinf[fd]? __mad24 __umad24
        __sad __usad __ockl_(?:clz|ctz|mul_hi|mad)\w*
        __ocml_(?!sincos|frexp|modf|remquo|fract|lgamma_r)\w+ __llvm_(?:fma|sqrt|fabs|exp2|log2)\w*
        __builtin_(?:clz|ctz|popcount|ffs|parity|bswap)\w*
        __builtin_(?:fabs|fma|sqrt|expect|inf|nan|huge_val|isnan|isinf|isfinite|signbit|copysign|floor|ceil|trunc|rint|round)\w*
        __builtin_(?:shufflevector|convertvector|bit_cast|elementwise_\w+|reduce_\w+|align_\w+)
        __builtin_amdgcn_(?:rcp|rsq|sqrt|exp2|log|sin|cos|ldexp|fract|fmed3|cvt|perm|ubfe|sbfe|sad|sudot|sdot|udot|fdot|div_f|frexp|trig|class|alignb|lerp|msad|qsad|mqsad|cube)\w*
    """,
    ),
    # Nothing follows from them but hints: what is assumed or fetched ahead changes no value.
    (
        Effects.NONE,
        r"""
        __builtin_(?:assume|assume_aligned|prefetch|unreachable) __assume assume prefetch __prefetch_\w+
        __builtin_unpredictable likely unlikely
    """,
    ),
    # -- through their pointers ---------------------------------------------------------------------
    (Effects.ASSIGNS, "swap (?:sincos|sincospi|modf|frexp|remquo|fract|lgamma_r)f? __sincosf"),
    (
        Effects.READS,
        r"""
        __ld(?:g|cs|cg|ca|lu) __builtin_nontemporal_load v(?:load)a?_?(?:half)?\d* vload\w+
    """,
    ),
    (
        Effects.READS,
        "tex(?:1D|2D|3D|Cubemap)\\w* surf(?:1D|2D|3D)read read_image\\w+ get_image_\\w+ memcmp strlen",
    ),
    (Effects.READS | Effects.VOLATILE, "__ldcv __builtin_amdgcn_(?:raw|struct)_buffer_load\\w*"),
    (Effects.WRITES, "__st(?:cs|cg|wb|wt) __builtin_nontemporal_store vstore\\w+ write_image\\w+ memset"),
    (_MEMORY, "memcpy memmove surf(?:1D|2D|3D)write\\w*"),
    (
        _MEMORY | Effects.ATOMIC,
        r"""
        atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)\w*
        atom(?:ic)?_(?!work_item|thread_fence|signal_fence)\w+
        safeAtomicAdd\w* unsafeAtomic\w+ __nv_atomic_\w+ __hip_atomic_\w+ __atomic_\w+ __sync_\w+
        __builtin_amdgcn_\w*atomic\w*
    """,
    ),
    # -- who asks, where, when ----------------------------------------------------------------------
    (
        Effects.THREAD,
        r"""
        get_(?:global|local|group)_id get_(?:global|local)_linear_id get_sub_group_(?:id|local_id)
        __lane_id __lane_id_x __laneid lane_id __builtin_amdgcn_(?:workitem|workgroup)_id_[xyz]
        __builtin_amdgcn_mbcnt_(?:lo|hi) __mbcnt_\w+ __nvvm_read_ptx_sreg_(?:laneid|tid|ctaid|cluster)\w*
        __ockl_(?:get_(?:local|global|group)_id|lane_u32)
        __cluster(?:Idx|RelativeBlockIdx|RelativeBlockRank) __cluster_(?:map|query)\w+
        __clusterMapSharedRank __clusterQuerySharedRank __isShared __isLocal
        __hip_get_(?:thread|block)_idx_[xyz]
    """,
    ),
    (
        Effects.SHAPE,
        r"""
        get_(?:global|local|enqueued_local)_size get_num_groups get_work_dim get_global_offset
        get_(?:max_)?sub_group_size get_(?:enqueued_)?num_sub_groups __clusterDim\w*
        __clusterGridDimInClusters __clusterSizeInBlocks
        __builtin_amdgcn_(?:workgroup_size|grid_size)_[xyz] __ockl_get_\w+_size
        __builtin_amdgcn_wavefrontsize __nvvm_read_ptx_sreg_n(?:tid|ctaid)\w*
        __hip_get_(?:block|grid)_dim_[xyz]
    """,
    ),
    (
        Effects.TIME,
        r"""
        clock(?:64)? __clock(?:64)? wall_clock64 __wall_clock64 (?:__)?globaltimer(?:_lo|_hi)? clock_hi
        clock_read_\w+ __builtin_readcyclecounter __builtin_readsteadycounter
        __builtin_amdgcn_s_mem(?:real)?time s_mem(?:real)?time
        __nvvm_read_ptx_sreg_(?:clock|globaltimer)\w* intel_get_cycle_counter
        get_sreg_(?:clock|globaltimer)\w* __nanosleep __builtin_amdgcn_s_sleep __ockl_steadyctr_u64
    """,
    ),
    (
        Effects.MACHINE,
        r"""
        (?:__)?n?smid __n?warpid get_sreg_\w+ __nvvm_read_ptx_sreg_(?:n?smid|n?warpid|gridid|envreg)\w*
        __smid __builtin_amdgcn_s_getreg\w* __builtin_amdgcn_(?:dispatch|queue|implicitarg|kernarg)\w*
        get_fence __isGlobal __isConstant __isGridConstant __cvta_\w+ to_(?:global|local|private)
    """,
    ),
    # -- with others --------------------------------------------------------------------------------
    (
        Effects.MASK,
        r"""
        __(?:shfl|ballot|any|all|match|activemask|reduce|uni)(?:_\w+)? __ballot64
        __builtin_amdgcn_(?:ballot|read(?:first)?lane|writelane|permlane|ds_bpermute|ds_permute|ds_swizzle|mov_dpp|update_dpp|mfma|wmma|wqm|icmp|fcmp|set_inactive|strict)\w*
        __builtin_amdgcn_read_exec\w* (?:sub|work)_group_(?!barrier|commit|reserve)\w+ intel_sub_group_\w+
        __(?:mma|wmma)_\w+ elect\w*
    """,
    ),
    (
        _GROUP,
        r"""
        __syncthreads(?:_or|_and|_count) __barrier_sync\w* __syncwarp sub_group_barrier this_\w+
        __(?:block|warp|tile)_total_(?:add|max|min)
        coalesced_threads tiled_partition __cluster_barrier_\w+ __builtin_amdgcn_wave_barrier
    """,
    ),
    (
        Effects.BARRIER,
        r"""
        __syncthreads barrier work_group_barrier __builtin_amdgcn_s_barrier __syncblocks
        cudaGridDependencySynchronize cudaTriggerProgrammaticLaunchCompletion __mbarrier_\w+
        wait_group_events __pipeline_wait\w* __builtin_amdgcn_s_waitcnt\w*
    """,
    ),
    (
        Effects.FENCE,
        r"""
        __threadfence(?:_block|_system)? (?:read_|write_)?mem_fence atomic_work_item_fence
        atomic_(?:thread|signal)_fence __builtin_amdgcn_fence __atomic_thread_fence __sync_synchronize
    """,
    ),
    (
        _MEMORY | _GROUP,
        r"""
        async_work_group_\w+ __pipeline_\w+ memcpy_async cp_async_\w+
        (?:work|sub)_group_(?:reserve|commit)\w+
    """,
    ),
    # -- the rest of the world ----------------------------------------------------------------------
    (Effects.OUTPUT, "v?printf puts putchar fprintf"),
    (Effects.STOPS, "assert __assert\\w* __trap __brkpt abort __builtin_trap"),
    (Effects.ALLOCATES, "malloc free alloca __nv_aligned_device_malloc calloc realloc enqueue_marker"),
    (Effects.LAUNCHES, "enqueue_kernel cudaLaunch\\w* hipLaunch\\w* cudaDeviceSynchronize"),
    (Effects.RANDOM | _MEMORY, "(?:cu|hip|roc)rand\\w* rand srand"),
)
_TABLE = tuple(
    (effects, re.compile("|".join(f"(?:{p})" for p in words.split()))) for effects, words in _FUNCTIONS
)


@lru_cache(maxsize=4096)
def _looked_up(name: str) -> Effects | None:
    name = re.sub(r"^(?:::)?(?:cuda::)?(?:std::)?", "", name)
    return next((effects for effects, pattern in _TABLE if pattern.fullmatch(name)), None)


def is_function(name: str) -> bool:
    """Whether the languages or their libraries have the function."""
    return _looked_up(name) is not None


def function_effects(name: str) -> Effects:
    """What a call of the languages' function of this name does; of any other: anything."""
    found = _looked_up(name)
    return ANYTHING if found is None else found


# -- variables that are built in ---------------------------------------------------------------------

_VARIABLES: Mapping[str, Effects] = {
    **dict.fromkeys(("threadIdx", "blockIdx", "clusterIdx", "cooperative_groups"), Effects.THREAD),
    **dict.fromkeys(("blockDim", "gridDim", "clusterDim"), Effects.SHAPE),
    **{f"hip{word}Idx_{axis}": Effects.THREAD for word in ("Thread", "Block") for axis in "xyz"},
    **{f"hip{word}Dim_{axis}": Effects.SHAPE for word in ("Block", "Grid") for axis in "xyz"},
}


def variable_effects(name: str) -> Effects:
    """Of a built-in variable, `threadIdx` or `threadIdx.x`; none for any other."""
    return _VARIABLES.get(name.partition(".")[0], Effects.NONE)


assert set(c.INDICES) <= set(_VARIABLES)

# -- special registers of PTX, without the sign and the number at their end --------------------------

_REGISTERS: tuple[tuple[Effects, str], ...] = (
    (
        Effects.THREAD,
        """
        laneid tid ctaid clusterid cluster_ctaid cluster_ctarank lanemask_eq lanemask_le lanemask_lt
        lanemask_ge lanemask_gt
    """,
    ),
    (Effects.SHAPE, "ntid nctaid nclusterid cluster_nctaid cluster_nctarank is_explicit_cluster"),
    (Effects.TIME, "clock clock_hi globaltimer globaltimer_lo globaltimer_hi"),
    (
        Effects.MACHINE,
        """
        smid nsmid warpid nwarpid gridid envreg pm reserved_smem_offset_begin reserved_smem_offset_end
        reserved_smem_offset_cap reserved_smem_offset total_smem_size dynamic_smem_size aggr_smem_size
        current_graph_exec
    """,
    ),
    # of AMD: who of the wave takes part, and its flags
    (Effects.MASK, "exec exec_lo exec_hi vcc vcc_lo vcc_hi m scc"),
)
_BY_REGISTER = {word: effects for effects, words in _REGISTERS for word in words.split()}


def register_effects(name: str) -> Effects:
    """Of a special register without its sign: "laneid", "clock64", "envreg12"; of any other: anything."""
    return _BY_REGISTER.get(re.sub(r"\d+(?:_64)?$", "", name), ANYTHING)


# -- instructions of PTX by the first part of their opcode, and of AMD by their name -----------------


def _instructions() -> Iterator[tuple[str, Effects]]:
    lists: tuple[tuple[Effects, str], ...] = (
        (
            Effects.NONE,
            r"""
            abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos createpolicy cvt cvta div dp2a
            dp4a ex2 fma fns isspacep lg2 lop3 mad mad24 madc max min mov mul mul24 neg not or popc prmt
            rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc szext tanh testp vabsdiff
            vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset
            vset2 vset4 vshl vshr vsub vsub2 vsub4 xor prefetch prefetchu applypriority nop pragma s_nop
        """,
        ),
        (Effects.READS, "ld ldu tex tld4 txq suq tensormap"),
        (Effects.READS | Effects.MASK, "ldmatrix"),
        (Effects.WRITES, "st sust discard"),
        (Effects.WRITES | Effects.MASK, "stmatrix"),
        (_MEMORY, "suld"),
        (_MEMORY | Effects.ATOMIC, "atom red sured multimem"),
        (_MEMORY | Effects.FENCE, "cp clusterlaunchcontrol"),
        (Effects.MASK, "shfl vote match activemask redux elect mma wmma wgmma tcgen05 movmatrix"),
        (Effects.BARRIER, "bar barrier mbarrier griddepcontrol setmaxnreg s_barrier s_waitcnt"),
        (Effects.FENCE, "membar fence"),
        (Effects.TIME, "nanosleep s_memtime s_memrealtime s_sleep"),
        (Effects.MACHINE, "getctarank mapa s_getreg_b32 pmevent stacksave stackrestore"),
        (Effects.ALLOCATES, "alloca"),
        (Effects.STOPS, "trap brkpt"),
        (
            Effects.MASK,
            r"""
            v_readlane_b32 v_readfirstlane_b32 v_writelane_b32 v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32
            ds_bpermute_b32 ds_permute_b32 ds_swizzle_b32 v_permlane16_b32 v_permlanex16_b32
        """,
        ),
    )
    for effects, words in lists:
        yield from ((word, effects) for word in words.split())
    for word in (
        "add",
        "sub",
        "mul",
        "max",
        "min",
        "fma",
        "rcp",
        "rsq",
        "sqrt",
        "exp",
        "log",
        "floor",
        "fract",
    ):
        yield from ((f"v_{word}_{kind}", Effects.NONE) for kind in ("f32", "f16", "f64"))
    more = "and_b32 or_b32 xor_b32 lshlrev_b32 lshrrev_b32 bfe_u32 bfi_b32 perm_b32 mov_b32 cvt_f32_f16"
    yield from ((f"v_{word}", Effects.NONE) for word in f"{more} cvt_f16_f32 med3_f32 add_u32".split())


_BY_OPCODE: Mapping[str, Effects] = dict(_instructions())


def instruction_effects(stem: str) -> Effects:
    """Of an instruction by the first part of its opcode; of any that is not known: anything."""
    return _BY_OPCODE.get(stem, ANYTHING)
