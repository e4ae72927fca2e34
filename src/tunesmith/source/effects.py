"""What evaluating a part of a program does besides giving a value: one answer for all who ask.

`Effects` is a set of flags. What a function, a built-in variable, a special register or an instruction does
is in the tables of `effect_words`; inline assembly is read by `assembly`; expressions, statements and the
bodies of helpers are gone through here, from the leaves up. What no table knows may do anything.

    Effects.NONE                    it only computes a value from values
    effects.may_drop                leaving it out changes nothing
    effects.may_repeat              doing it again gives the same and changes nothing more
    effects.any_thread              whichever thread does it, at whatever time, the value is the same
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from functools import lru_cache, reduce

from tunesmith.source import tree as c
from tunesmith.source import walk

# -- The one table of what functions, built-in variables, special registers and instructions do.
#
# Words of CUDA, HIP and OpenCL stand side by side; the first line that fits a name says what it does. A name
# that fits none may do anything.


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
    (Effects.NONE, r"""
        labs llabs u?llm(?:in|ax) um(?:in|ax) div clz ctz ffs popcount mul24 mad24 mad mad_hi mad_sat
        mul_hi add_sat sub_sat hadd rhadd abs_diff bitselect clamp mix step smoothstep sign select
        shuffle2? cross dot distance length normalize fast_(?:distance|length|normalize) degrees radians
        rotate upsample maxmag minmag all any
        is(?:equal|notequal|greater|greaterequal|less|lessequal|lessgreater|ordered|unordered) vec_step
        bit_cast move forward numeric_limits<.*
        make_(?:u?(?:char|short|int|long|longlong)|float|double|half|bfloat16|cu\w*Complex)\d*\w*
        (?:convert|as)_(?:u?(?:char|short|int|long)|float|double|half|size_t|bool)\d*\w*
        (?:native|half)_(?:a?cosh?|a?sinh?|a?tanh?|divide|exp|exp2|exp10|log|log2|log10|powr|recip|rsqrt|sqrt)
        h2?(?:ceil|cos|exp|exp10|exp2|floor|log|log10|log2|rcp|rint|rsqrt|sin|sqrt|tanh|tanh_approx|trunc)
        __h(?!ip_)\w+
        __(?:half|halves|bfloat|bfloat16|low|lows|high|highs|float|floats|double|int|uint|ll|ull|short|ushort|char|uchar|half2|nv_bfloat16|hip_bfloat16)\d*_?(?:2|to)_?\w+
        __\w+_as_\w+ __hilo\w+ __(?:nv|hip)_cvt_\w+
        __(?:nv|hip)_(?:bfloat16|bfloat162|fp[468]\w*)(?:_raw)? __half2?(?:_raw)? __bfloat16\w*
        __halves2\w+ __lowhigh2highlow __lows?2\w+ __highs?2\w+
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
    """),
    # Nothing follows from them but hints: what is assumed or fetched ahead changes no value.
    (Effects.NONE, r"""
        __builtin_(?:assume|assume_aligned|prefetch|unreachable) __assume assume prefetch __prefetch_\w+
        __builtin_unpredictable likely unlikely
    """),
    # -- through their pointers ---------------------------------------------------------------------
    (Effects.ASSIGNS, "swap (?:sincos|sincospi|modf|frexp|remquo|fract|lgamma_r)f? __sincosf"),
    (Effects.READS, r"""
        __ld(?:g|cs|cg|ca|lu) __builtin_nontemporal_load v(?:load)a?_?(?:half)?\d* vload\w+
        tex(?:1D|2D|3D|Cubemap)\w* surf(?:1D|2D|3D)read read_image\w+ get_image_\w+ memcmp strlen
    """),
    (Effects.READS | Effects.VOLATILE, "__ldcv __builtin_amdgcn_(?:raw|struct)_buffer_load\\w*"),
    (Effects.WRITES, "__st(?:cs|cg|wb|wt) __builtin_nontemporal_store vstore\\w+ write_image\\w+ memset"),
    (_MEMORY, "memcpy memmove surf(?:1D|2D|3D)write\\w*"),
    (_MEMORY | Effects.ATOMIC, r"""
        atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)\w*
        atom(?:ic)?_(?!work_item|thread_fence|signal_fence)\w+
        safeAtomicAdd\w* unsafeAtomic\w+ __nv_atomic_\w+ __hip_atomic_\w+ __atomic_\w+ __sync_\w+
        __builtin_amdgcn_\w*atomic\w*
    """),
    # -- who asks, where, when ----------------------------------------------------------------------
    (Effects.THREAD, r"""
        get_(?:global|local|group)_id get_(?:global|local)_linear_id get_sub_group_(?:id|local_id)
        __lane_id __lane_id_x __laneid lane_id __builtin_amdgcn_(?:workitem|workgroup)_id_[xyz]
        __builtin_amdgcn_mbcnt_(?:lo|hi) __mbcnt_\w+ __nvvm_read_ptx_sreg_(?:laneid|tid|ctaid|cluster)\w*
        __ockl_(?:get_(?:local|global|group)_id|lane_u32)
        __cluster(?:Idx|RelativeBlockIdx|RelativeBlockRank) __cluster_(?:map|query)\w+
        __clusterMapSharedRank __clusterQuerySharedRank __isShared __isLocal
        __hip_get_(?:thread|block)_idx_[xyz]
    """),
    (Effects.SHAPE, r"""
        get_(?:global|local|enqueued_local)_size get_num_groups get_work_dim get_global_offset
        get_(?:max_)?sub_group_size get_(?:enqueued_)?num_sub_groups __clusterDim\w*
        __clusterGridDimInClusters __clusterSizeInBlocks
        __builtin_amdgcn_(?:workgroup_size|grid_size)_[xyz] __ockl_get_\w+_size
        __builtin_amdgcn_wavefrontsize __nvvm_read_ptx_sreg_n(?:tid|ctaid)\w*
        __hip_get_(?:block|grid)_dim_[xyz]
    """),
    (Effects.TIME, r"""
        clock(?:64)? __clock(?:64)? wall_clock64 __wall_clock64 (?:__)?globaltimer(?:_lo|_hi)? clock_hi
        clock_read_\w+ __builtin_readcyclecounter __builtin_readsteadycounter
        __builtin_amdgcn_s_mem(?:real)?time s_mem(?:real)?time
        __nvvm_read_ptx_sreg_(?:clock|globaltimer)\w* intel_get_cycle_counter
        get_sreg_(?:clock|globaltimer)\w* __nanosleep __builtin_amdgcn_s_sleep __ockl_steadyctr_u64
    """),
    (Effects.MACHINE, r"""
        (?:__)?n?smid __n?warpid get_sreg_\w+ __nvvm_read_ptx_sreg_(?:n?smid|n?warpid|gridid|envreg)\w*
        __smid __builtin_amdgcn_s_getreg\w* __builtin_amdgcn_(?:dispatch|queue|implicitarg|kernarg)\w*
        get_fence __isGlobal __isConstant __isGridConstant __cvta_\w+ to_(?:global|local|private)
    """),
    # -- with others --------------------------------------------------------------------------------
    (Effects.MASK, r"""
        __(?:shfl|ballot|any|all|match|activemask|reduce|uni)(?:_\w+)? __ballot64
        __builtin_amdgcn_(?:ballot|read(?:first)?lane|writelane|permlane|ds_bpermute|ds_permute|ds_swizzle|mov_dpp|update_dpp|mfma|wmma|wqm|icmp|fcmp|set_inactive|strict)\w*
        __builtin_amdgcn_read_exec\w* (?:sub|work)_group_(?!barrier|commit|reserve)\w+ intel_sub_group_\w+
        __(?:mma|wmma)_\w+ elect\w*
    """),
    (_GROUP, r"""
        __syncthreads(?:_or|_and|_count) __barrier_sync\w* __syncwarp sub_group_barrier this_\w+
        __(?:block|warp|tile)_total_(?:add|max|min)
        coalesced_threads tiled_partition __cluster_barrier_\w+ __builtin_amdgcn_wave_barrier
    """),
    (Effects.BARRIER, r"""
        __syncthreads barrier work_group_barrier __builtin_amdgcn_s_barrier __syncblocks
        cudaGridDependencySynchronize cudaTriggerProgrammaticLaunchCompletion __mbarrier_\w+
        wait_group_events __pipeline_wait\w* __builtin_amdgcn_s_waitcnt\w*
    """),
    (Effects.FENCE, r"""
        __threadfence(?:_block|_system)? (?:read_|write_)?mem_fence atomic_work_item_fence
        atomic_(?:thread|signal)_fence __builtin_amdgcn_fence __atomic_thread_fence __sync_synchronize
    """),
    (_MEMORY | _GROUP, r"""
        async_work_group_\w+ __pipeline_\w+ memcpy_async cp_async_\w+
        (?:work|sub)_group_(?:reserve|commit)\w+
    """),
    # -- the rest of the world ----------------------------------------------------------------------
    (Effects.OUTPUT, "v?printf puts putchar fprintf"),
    (Effects.STOPS, "assert __assert\\w* __trap __brkpt abort __builtin_trap"),
    (Effects.ALLOCATES, "malloc free alloca __nv_aligned_device_malloc calloc realloc enqueue_marker"),
    (Effects.LAUNCHES, "enqueue_kernel cudaLaunch\\w* hipLaunch\\w* cudaDeviceSynchronize"),
    (Effects.RANDOM | _MEMORY, "(?:cu|hip|roc)rand\\w* rand srand"),
)  # fmt: skip
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
    (Effects.THREAD, """
        laneid tid ctaid clusterid cluster_ctaid cluster_ctarank lanemask_eq lanemask_le lanemask_lt
        lanemask_ge lanemask_gt
    """),
    (Effects.SHAPE, "ntid nctaid nclusterid cluster_nctaid cluster_nctarank is_explicit_cluster"),
    (Effects.TIME, "clock clock_hi globaltimer globaltimer_lo globaltimer_hi"),
    (Effects.MACHINE, """
        smid nsmid warpid nwarpid gridid envreg pm reserved_smem_offset_begin reserved_smem_offset_end
        reserved_smem_offset_cap reserved_smem_offset total_smem_size dynamic_smem_size aggr_smem_size
        current_graph_exec
    """),
    # of AMD: who of the wave takes part, and its flags
    (Effects.MASK, "exec exec_lo exec_hi vcc vcc_lo vcc_hi m scc"),
)  # fmt: skip
_BY_REGISTER = {word: effects for effects, words in _REGISTERS for word in words.split()}


def register_effects(name: str) -> Effects:
    """Of a special register without its sign: "laneid", "clock64", "envreg12"; of any other: anything."""
    return _BY_REGISTER.get(re.sub(r"\d+(?:_64)?$", "", name), ANYTHING)


# -- instructions of PTX by the first part of their opcode, and of AMD by their name -----------------


_INSTRUCTIONS: tuple[tuple[Effects, str], ...] = (
    (Effects.NONE, r"""
        abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos createpolicy cvt cvta div dp2a
        dp4a ex2 fma fns isspacep lg2 lop3 mad mad24 madc max min mov mul mul24 neg not or popc prmt
        rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc szext tanh testp vabsdiff
        vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset
        vset2 vset4 vshl vshr vsub vsub2 vsub4 xor prefetch prefetchu applypriority nop pragma s_nop
    """),
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
    (Effects.MASK, r"""
        v_readlane_b32 v_readfirstlane_b32 v_writelane_b32 v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32
        ds_bpermute_b32 ds_permute_b32 ds_swizzle_b32 v_permlane16_b32 v_permlanex16_b32
    """),
)  # fmt: skip
_OF_AMD = """
    and_b32 or_b32 xor_b32 lshlrev_b32 lshrrev_b32 bfe_u32 bfi_b32 perm_b32 mov_b32 cvt_f32_f16 cvt_f16_f32
    med3_f32 add_u32
"""
_OF_AMD_FLOATS = "add sub mul max min fma rcp rsq sqrt exp log floor fract"
_BY_OPCODE: Mapping[str, Effects] = {
    **{word: effects for effects, words in _INSTRUCTIONS for word in words.split()},
    **{f"v_{word}_{kind}": Effects.NONE for word in _OF_AMD_FLOATS.split() for kind in ("f32", "f16", "f64")},
    **{f"v_{word}": Effects.NONE for word in _OF_AMD.split()},
}


def instruction_effects(stem: str) -> Effects:
    """Of an instruction by the first part of its opcode; of any that is not known: anything."""
    return _BY_OPCODE.get(stem, ANYTHING)


# -- Inline assembly taken apart: `asm volatile("template" : outputs : inputs : clobbers)`.
#
# Only what is needed to say what it does: every instruction with its opcode, the special registers it reads,
# and operands that are neither registers of its own, nor operands of the statement, nor numbers.


_HEAD = re.compile(r"\s*(?:asm|__asm|__asm__)\s*((?:(?:volatile|__volatile__|__volatile|inline)\s*)*)\(")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PREDICATE = re.compile(r"@!?%?[\w$]+\s+")
_DECLARES = re.compile(r"\.reg\s*(?:\.\w+\s*)+([^;]*)$")
_ASM_WORD = re.compile(r"%%?[A-Za-z_$][\w$.]*|[A-Za-z_$][\w$]*|%\d+|%\[\w+\]|%\w\d+")
_NUMBER = re.compile(r"(?<![\w$%.])(?:0[fFdD][0-9a-fA-F]+|0[xX][0-9a-fA-F]+[uU]?|\d[\w.]*)")
_AXES = (".x", ".y", ".z", ".w")


class NotAssembly(Exception):
    """Why the text cannot be taken apart, in words."""


@dataclass(frozen=True)
class AsmInstruction:
    opcode: str  # with all its parts: cvt.rni.sat.s8.f32
    registers: tuple[str, ...] = ()  # special ones, without the sign: laneid, tid
    unknown_operand: str = ""
    needs_carry: bool = False  # it goes on from a carry that no earlier instruction here has set

    @property
    def stem(self) -> str:
        return self.opcode.partition(".")[0]


@dataclass(frozen=True)
class Assembly:
    instructions: tuple[AsmInstruction, ...]
    volatile: bool = False
    clobbers_memory: bool = False
    outputs: str = ""  # the text of what it sets, with constraints
    in_memory: bool = False  # operands that are places in memory

    @property
    def only_stores(self) -> bool:
        """One store to global memory, and what it depends on."""
        stores = [one for one in self.instructions if one.opcode.startswith("st.global")]
        others = {one.stem for one in self.instructions} - {"st"}
        return len(stores) == 1 and others <= {"setp"} and not self.in_memory


def is_assembly(text: str) -> bool:
    return _HEAD.match(text) is not None


def read_assembly(text: str) -> Assembly:
    """Raises NotAssembly."""
    head, sections = _HEAD.match(text), sections_of(text)
    template = sections[0]
    if _STRING.sub("", template).strip():
        raise NotAssembly("its template is no plain string")
    code = _unescape_asm("".join(_STRING.findall(template)))
    constraints = tuple(word for part in sections[1:3] for word in _STRING.findall(part))
    clobbers = tuple(word for part in sections[3:] for word in _STRING.findall(part))
    extended = len(sections) > 1
    in_memory = any(set("mo") & set(word) for word in constraints)
    memory = "memory" in clobbers or in_memory
    outputs = sections[1].strip() if extended else ""
    volatile = head is not None and "volatile" in head[1]
    return Assembly(_read_instructions(code, extended), volatile, memory, outputs, in_memory)


def sections_of(text: str) -> list[str]:
    """Its template, outputs, inputs and clobbers as they are written. Raises NotAssembly."""
    head = _HEAD.match(text)
    if head is None:
        raise NotAssembly("it has another form")
    return _split_asm_sections(text[head.end() :])


def instruction_lines(text: str) -> list[str]:
    """Its instructions as they are written. Raises NotAssembly.

    A store has to say that it writes memory, which is no more than a plain one does; of a load that says so,
    and of places in memory as operands, nothing is known."""
    read = read_assembly(text)
    if read.clobbers_memory and not read.only_stores:
        raise NotAssembly("it orders memory")
    code = _unescape_asm("".join(_STRING.findall(sections_of(text)[0])))
    return _split_asm_instructions(re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL))


def _split_asm_sections(text: str) -> list[str]:
    """What stands between the colons of the statement, outside strings and parentheses."""
    found, depth, start, at = list[str](), 0, 0, 0
    while at < len(text):
        string = _STRING.match(text, at)
        if string is not None:
            at = string.end()
            continue
        sign = text[at]
        if sign == ")" and depth == 0:
            found.append(text[start:at])
            return found
        if text.startswith("::", at) and depth == 0 and _is_name(text, at):
            at += 2  # std::max
            continue
        if sign == ":" and depth == 0:
            found.append(text[start:at])
            start = at + 1
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0)
        at += 1
    raise NotAssembly("it does not end")


def _is_name(text: str, at: int) -> bool:
    return at > 0 and text[at - 1].isalnum() and text[at + 2 : at + 3].isalpha()


def _unescape_asm(text: str) -> str:
    if re.search(r"\\[^nt\\\"']", text):
        raise NotAssembly("its template has an escape that is not followed")
    return text.replace("\\n", "\n").replace("\\t", " ").replace("\\\\", "\\").replace('\\"', '"')


def _read_instructions(code: str, extended: bool) -> tuple[AsmInstruction, ...]:
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL)
    registers_here: set[str] = set()
    carry = False
    found: list[AsmInstruction] = []
    for line in _split_asm_instructions(code):
        declared = _DECLARES.match(line)
        if declared is not None:
            for name in re.findall(r"%?%?([A-Za-z_$][\w$]*)(?:<\d+>)?", declared[1]):
                registers_here.add(name)
            continue
        line = _PREDICATE.sub("", line, count=1) if line.startswith("@") else line
        if re.match(r"[\w$]+\s*:", line):
            raise NotAssembly("it has labels")
        opcode, _, operands = line.partition(" ")
        if not re.fullmatch(r"[a-z][\w.:]*", opcode):
            raise NotAssembly(f"'{line[:40]}' is no instruction")
        stem = opcode.partition(".")[0]
        needs = stem in ("addc", "subc", "madc") and not carry
        carry = carry or ".cc" in opcode
        registers, odd = _scan_asm_operands(operands, registers_here, extended)
        found.append(AsmInstruction(opcode, registers, odd, needs))
    return tuple(found)


def _split_asm_instructions(code: str) -> list[str]:
    """Instructions one by one; braces around a block of them go, those of vectors stay."""
    parts = re.split(r"[;\n]", code)
    done: list[str] = []
    pending = ""
    for part in parts:
        part = " ".join(part.split())
        while part.startswith(("{", "}")):
            part = part[1:].lstrip()
        if part.endswith("}") and part.count("{") < part.count("}"):
            part = part[:-1].rstrip()
        if pending:
            part, pending = f"{pending} {part}", ""
        if part.endswith(","):
            pending = part  # it goes on in the next line
        elif part:
            done.append(part)
    return [*done, pending] if pending else done


def _scan_asm_operands(text: str, declared: set[str], extended: bool) -> tuple[tuple[str, ...], str]:
    """Special registers among the operands, and the first word that is not known for what it is."""
    registers: list[str] = []
    odd = ""
    for word in _ASM_WORD.findall(_NUMBER.sub(" ", text)):
        if re.fullmatch(r"%\d+|%\[\w+\]", word):
            if not extended:
                raise NotAssembly(f"'{word}' stands in a statement without operands")
            continue
        name = word.lstrip("%")
        for axis in _AXES:
            name = name.removesuffix(axis)
        if name in declared or name == "_":
            continue
        if word.startswith("%%") or (word.startswith("%") and not extended):
            registers.append(name)
        elif word.startswith("%") or not odd:
            odd = odd or word
    return tuple(registers), odd


__all__ = [
    "ANYTHING", "Cause", "Effects", "Program", "effects_of", "function_effects", "is_function", "is_pure",
    "join_effects", "of_assembly", "of_text",
]  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """One thing that has effects, and what it is in words: "calls __ballot_sync"."""

    effects: Effects
    what: str


def join_effects(causes: Iterable[Cause]) -> Effects:
    return reduce(lambda all_, cause: all_ | cause.effects, causes, Effects.NONE)


@dataclass(frozen=True)
class Program:
    """What is known of a program: its own functions, and the variables of which an access must stay."""

    functions: Mapping[str, tuple[c.Function, ...]]
    volatile: frozenset[str] = frozenset()

    @staticmethod
    def of(source: c.Source | None, *within: c.Function) -> Program:
        if source is None:
            return _NOTHING
        named: dict[str, tuple[c.Function, ...]] = {}
        for function in source.functions:
            named[function.name] = (*named.get(function.name, ()), function)
        return Program(named, _volatile_in(source.preamble).union(*map(_volatile_of, within)))

    def called(self, call: c.Call) -> tuple[c.Function, ...]:
        """The file's functions a call may mean, by name and number of arguments."""
        if call.of is not None:
            return ()
        found = self.functions.get(call.function, ())
        return tuple(f for f in found if len(f.parameters) == len(call.args) and not f.is_kernel)


_NOTHING = Program({})


def effects_of(part: walk.Part, known: Program = _NOTHING) -> Effects:
    return join_effects(find_effect_causes(part, known))


def is_pure(part: walk.Part, known: Program = _NOTHING) -> bool:
    """Whether evaluating it changes nothing, reads no memory, and may be left out or done again."""
    effects = effects_of(part, known)
    return effects.may_drop and effects.may_repeat and not effects & Effects.READS


def find_effect_causes(part: walk.Part, known: Program = _NOTHING) -> Iterator[Cause]:
    """Everything in a part that has effects, in the order of the text; of the file's own functions too."""
    for node in walk.nodes_in(part):
        yield from _find_node_effects(node, known)
        if isinstance(node, c.Call) and node.of is None:
            yield from _of_call(node, known)


def function_causes(function: c.Function, known: Program) -> Iterator[Cause]:
    """What a function does beyond computing a value from values, with all that it calls in turn.

    What it does to its own variables is nobody else's. Functions that call each other are each looked at
    once: the union over all that can be reached is the least answer that holds for all of them.
    """
    pending, seen = [function], {function.name}
    while pending:
        current = pending.pop()
        yield from _of_function(current, known)
        for call in walk.calls_in(current.body):
            for called in known.called(call):
                if called.name not in seen:
                    seen.add(called.name)
                    pending.append(called)


def _of_function(function: c.Function, known: Program) -> Iterator[Cause]:
    for parameter in function.parameters:
        if parameter.type.is_pointer:
            yield Cause(Effects.READS | Effects.WRITES, f"takes the pointer {parameter.name}")
        elif parameter.type.reference and not parameter.type.const:
            yield Cause(Effects.ASSIGNS, f"writes to its argument {parameter.name}")
    declared = set(walk.declared_in(function.body))
    variables = declared | {parameter.name for parameter in function.parameters}
    if any(name not in declared for name in walk.stored_in(function.body)):
        yield Cause(Effects.WRITES, "writes to memory")
    for name in sorted(_find_assigned_variables(function.body) - variables):
        yield Cause(Effects.WRITES, f"writes to {name}, a variable of the file")
    within = Program(known.functions, known.volatile | _volatile_of(function))
    for node in walk.nodes_in(function.body):
        if isinstance(node, c.Call) and node.of is None:
            # What no table knows is asked about by whoever calls it: its text may stand elsewhere.
            found = () if known.called(node) else tuple(_of_library(node))
            yield from (cause for cause in found if cause.effects not in (ANYTHING, Effects.ASSIGNS))
        else:
            inside = (Effects.ASSIGNS, Effects.READS, Effects.UNKNOWN)
            yield from (cause for cause in _find_node_effects(node, within) if cause.effects not in inside)


def _find_assigned_variables(body: Iterable[c.Stmt]) -> frozenset[str]:
    """Variables that are set as a whole or in part, or whose address is taken."""
    found: set[str] = set()
    for node in walk.nodes_in(body):
        if isinstance(node, c.Verbatim) and is_assembly(node.text):
            found |= set(_set_by(node.text))
            continue
        target: c.Expr | None = None
        if isinstance(node, c.Assign):
            target = node.target
        elif isinstance(node, c.Unary) and node.op in ("++", "--", "&"):
            target = node.operand
        name, through = walk.root_variable(target) if target is not None else (None, True)
        if name is not None and not through:
            found.add(name)
    return frozenset(found)


def _set_by(assembly: str) -> Iterator[str]:
    """Names in what an `asm` statement sets."""
    try:
        outputs = read_assembly(assembly).outputs
    except NotAssembly:
        return
    yield from _WORD.findall(re.sub(r'"[^"]*"|\[\w+\]', " ", outputs))


def _find_node_effects(node: c.Expr | c.Stmt, known: Program) -> Iterator[Cause]:
    """The effects of one node by itself, without calls and without what is below it."""
    match node:
        case c.Name(name=name):
            effects = variable_effects(name)
            if name in known.volatile:
                effects |= Effects.VOLATILE
            if effects:
                is_volatile = name in known.volatile
                yield Cause(effects, f"uses {name}, which is volatile" if is_volatile else f"asks for {name}")
        case c.Assign():
            yield Cause(Effects.ASSIGNS, "assigns")
        case c.Unary(op="++" | "--" as op):
            yield Cause(Effects.ASSIGNS, f"counts by {op}")
        case c.Unary(op="*") | c.Index() | c.Member(arrow=True):
            yield Cause(Effects.READS, "reads memory")
        case c.Cast(type=type_) | c.Declare(type=type_) if type_.volatile:
            yield Cause(Effects.VOLATILE, f"uses memory as volatile {type_.base}")
        case c.Verbatim(text=text) if is_assembly(text):
            yield from of_assembly(text)
        case c.Call(of=of) if of is not None:
            yield Cause(Effects.UNKNOWN, "is not understood")
            yield from of_text(node.function, known)
        case c.Verbatim(text=text) | c.Opaque(text=text):
            yield Cause(Effects.UNKNOWN, "is not understood")
            yield from of_text(text, known)
        case c.Declare(storage="static", name=name, type=type_) if not type_.const:
            yield Cause(Effects.READS | Effects.WRITES, f"keeps {name} from call to call")
        case c.Declare(storage="shared" | "dynamic shared", name=name):
            yield Cause(Effects.READS | Effects.WRITES, f"uses the shared memory {name}")


def _of_call(call: c.Call, known: Program) -> Iterator[Cause]:
    functions = known.called(call)
    for function in functions:
        yield from function_causes(function, known)
    if not functions:
        yield from _of_library(call)


def _of_library(call: c.Call) -> Iterator[Cause]:
    effects = Effects.NONE if _is_type(call.function) else function_effects(call.function)
    if effects:
        yield Cause(effects, f"calls {call.function}")


def _is_type(name: str) -> bool:
    return _TYPE.fullmatch(name) is not None


_TYPE = re.compile(r"(?:u?(?:int|char|short|long|longlong)|float|double|half|bool|dim)\d*(?:_t)?|size_t")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"(?<![\w.>])([A-Za-z_][\w:]*)\s*(?:<[\w\s,:*]*>)?\s*\(")


def of_text(text: str, known: Program = _NOTHING) -> Iterator[Cause]:
    """What text that was not understood does, as far as its words tell; nothing may rest on its silence."""
    if re.search(r"\bvolatile\b", text):
        yield Cause(Effects.VOLATILE, "uses volatile")
    for word in dict.fromkeys(_WORD.findall(text)):
        effects = variable_effects(word)
        if is_function(word) and word not in known.functions:
            effects |= function_effects(word)
        if word in known.volatile:
            effects |= Effects.VOLATILE
        if effects:
            yield Cause(effects, f"uses {word}")
    if is_assembly(text):
        yield from of_assembly(text)


@lru_cache(maxsize=512)
def of_assembly(text: str) -> tuple[Cause, ...]:
    """What the instructions of an `asm` statement do, one cause for each that does more than compute."""
    try:
        read = read_assembly(text)
    except NotAssembly as stop:
        return (Cause(ANYTHING, f"contains assembly that is not understood: {stop}"),)
    found: list[Cause] = []
    if read.clobbers_memory:
        found.append(Cause(Effects.FENCE, "contains assembly that orders memory"))
    for instruction in read.instructions:
        effects = instruction_effects(instruction.stem)
        if ".volatile" in instruction.opcode or ".mmio" in instruction.opcode:
            effects |= Effects.VOLATILE
        if instruction.needs_carry:
            effects = ANYTHING  # of an addition that stands elsewhere
        if effects == ANYTHING or instruction.unknown_operand:
            odd = instruction.unknown_operand or instruction.opcode
            found.append(Cause(ANYTHING, f"contains assembly whose '{odd}' is not known"))
        elif effects:
            found.append(Cause(effects, f"contains assembly: {instruction.opcode}"))
        for register in instruction.registers:
            effects = register_effects(register)
            if effects:
                found.append(Cause(effects, f"contains assembly that reads %{register}"))
    return tuple(found)


def _volatile_in(preamble: Iterable[str]) -> frozenset[str]:
    """Variables of the file that are declared volatile, by name."""
    found: set[str] = set()
    for text in preamble:
        for declared in re.split(r"[;{}]", text):
            if re.search(r"\bvolatile\b", declared):
                found |= set(_WORD.findall(declared.partition("=")[0])[-1:])
    return frozenset(found)


def _volatile_of(function: c.Function) -> frozenset[str]:
    found = {p.name for p in function.parameters if p.type.volatile}
    found |= {n.name for n in walk.nodes_in(function.body) if isinstance(n, c.Declare) and n.type.volatile}
    return frozenset(found)
