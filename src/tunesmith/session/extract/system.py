"""Which headers of CUDA and of the C++ library a text needs, by the words in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from tunesmith.session.extract.items import FileItem
from tunesmith.session.extract.reading import Included

# A header, and the words for which it is needed.
_BY_WORD: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (header, re.compile(words))
    for header, words in (
        ("cstdint", r"u?int(?:_fast|_least)?(?:8|16|32|64)_t|u?intptr_t|UINT\d+_MAX|INT\d+_MAX"),
        ("cstddef", r"size_t|ptrdiff_t"),
        ("cfloat", r"FLT_\w+|DBL_\w+"),
        ("climits", r"(?:U?INT|U?CHAR|U?SHRT|U?LONG|U?LLONG)_M(?:AX|IN)"),
        ("cmath", r"INFINITY|NAN|M_(?:PI|SQRT\w*|2_SQRTPI|LOG\w*|E)|HUGE_VALF?|isnan|isinf|isfinite|signbit"),
        ("cassert", r"assert"),
        ("cuda_fp16.h", r"__half2?|half2?|__\w+2half\w*|__half\w+"
         r"|__h(?:add|sub|mul|fma|max|min|lt|gt|eq|neg)\w*"
         r"|h2?(?:exp2?|rsqrt|sqrt|rcp|tanh)|make_half2"),
        ("cuda_bf16.h", r"(?:__)?nv_bfloat162?|__\w*bfloat16\w*|make_bfloat162"),
        ("cuda_fp8.h", r"__nv_fp8\w*|__nv_cvt_\w*fp8\w*"),
        ("cuda_fp4.h", r"__nv_fp4\w*|__nv_cvt_\w*fp4\w*"),
        ("cooperative_groups.h", r"cooperative_groups|cg"),
        ("curand_kernel.h", r"curand\w+"),
        ("mma.h", r"nvcuda|wmma"),
        ("cuda_pipeline.h", r"__pipeline_\w+"),
        ("type_traits", r"is_[a-z_]+|enable_if(?:_t)?|conditional(?:_t)?|(?:true|false)_type|remove_\w+"
         r"|integral_constant|decay(?:_t)?|common_type(?:_t)?|bool_constant|void_t"),
        ("limits", r"numeric_limits"),
        ("utility", r"declval|forward|move|swap|index_sequence|make_index_sequence|pair"),
        ("algorithm", r"clamp|min|max"),
        ("initializer_list", r"initializer_list"),
        ("tuple", r"tuple|tie"),
        ("array", r"array"),
        ("cmath", r"abs|exp2?|expm1|log(?:2|10|1p)?|pow|sqrt|tanh?|sin|cos|erf|floor|ceil|round|fma|fmod"
         r"|isnan|isinf|fabs|fmax|fmin"),
    )
)  # fmt: skip
_MATHS = _BY_WORD[-1][1]  # functions that CUDA has without std:: as well
# Of these a file has chosen the parts itself: its own #include is taken.
_FAMILIES = frozenset({"thrust", "cuda", "cooperative_groups"})
# NVRTC refuses the whole of CUB: its parts have headers of their own.
_CUB_PARTS = {
    **{name: f"block/{header}" for name, header in (
        ("BlockReduce", "block_reduce"), ("BlockScan", "block_scan"), ("BlockLoad", "block_load"),
        ("BlockStore", "block_store"), ("BlockExchange", "block_exchange"),
        ("BlockRadixSort", "block_radix_sort"), ("BlockHistogram", "block_histogram"),
        ("BlockMergeSort", "block_merge_sort"), ("BlockShuffle", "block_shuffle"),
        ("BlockDiscontinuity", "block_discontinuity"),
        ("BLOCK_REDUCE_WARP_REDUCTIONS", "block_reduce"), ("BLOCK_LOAD_WARP_TRANSPOSE", "block_load"),
        ("BLOCK_STORE_WARP_TRANSPOSE", "block_store"), ("BLOCK_SCAN_WARP_SCANS", "block_scan"),
        ("BLOCK_LOAD_DIRECT", "block_load"), ("BLOCK_STORE_DIRECT", "block_store"),
        ("BLOCK_LOAD_VECTORIZE", "block_load"), ("BLOCK_STORE_VECTORIZE", "block_store"),
        ("RadixSortTwiddle", "radix_rank_sort_operations"), ("Traits", "block_radix_sort"),
    )},
    "WarpReduce": "warp/warp_reduce", "WarpScan": "warp/warp_scan", "WarpMergeSort": "warp/warp_merge_sort",
}  # fmt: skip
_CUB_OPERATORS = frozenset({
    "Sum", "Max", "Min", "KeyValuePair", "ArgMax", "ArgMin", "Inequality", "Equality", "CTA_SYNC", "Log2",
})  # fmt: skip
_BEHIND_STD = frozenset(
    {"type_traits", "limits", "utility", "algorithm", "tuple", "array", "initializer_list"}
)


def is_system(name: str) -> bool:
    """Whether a header is one of CUDA's or of the C++ library's that is known here."""
    return any(name == header for header, _ in _BY_WORD) or name.startswith(("cuda", "cub/", "thrust/"))


def headers_for(
    items: Iterable[FileItem], outside: Sequence[Included], more: Iterable[str] = ()
) -> tuple[str, ...]:
    """`more`: further words, those of template arguments."""
    listed = tuple(items)
    own = {name for item in listed for name in item.names}  # what a text defines itself it needs of nobody
    words = (_all_words(listed) | frozenset(more)) - own
    found = dict.fromkeys(_needed(words, _behind(listed, {"std"})))
    for included in outside:
        family = included.name.split("/")[0]
        if family == "cub" or "/" not in included.name:
            continue
        if family in _FAMILIES and (family in words or _alias_used(family, words)):
            found[f"<{included.name}>"] = None
    found.update(dict.fromkeys(_cub(_behind(listed, _spellings(listed, "cub")), outside)))
    if "thrust" in words and not any(name.startswith("<thrust/") for name in found):
        found["<thrust/tuple.h>"] = None
    return tuple(found)


def _spellings(items: Iterable[FileItem], space: str) -> frozenset[str]:
    """A namespace and its other names: `namespace other = cub;`."""
    others = (item.name for item in items if [token.text for token in item.tokens[2:4]] == ["=", space])
    return frozenset((space, *others))


def _cub(used: frozenset[str], outside: Sequence[Included]) -> Iterator[str]:
    if not used:
        return
    if used <= _CUB_PARTS.keys() | _CUB_OPERATORS:
        yield from sorted({f"<cub/{_CUB_PARTS[name]}.cuh>" for name in used if name in _CUB_PARTS})
        return
    own = sorted({f"<{one.name}>" for one in outside if one.name.startswith("cub/")})
    yield from own or ("<cub/cub.cuh>",)


def _alias_used(family: str, words: frozenset[str]) -> bool:
    return family == "cooperative_groups" and "cg" in words


def _needed(words: frozenset[str], scoped: frozenset[str]) -> Iterator[str]:
    for header, pattern in _BY_WORD:
        asked = scoped if header in _BEHIND_STD or pattern is _MATHS else words
        if any(pattern.fullmatch(word) for word in asked):
            yield f"<{header}>"


def _all_words(items: Iterable[FileItem]) -> frozenset[str]:
    return frozenset(token.text for item in items for token in item.tokens if token.kind == "word")


def _behind(items: Iterable[FileItem], spaces: Collection[str]) -> frozenset[str]:
    """Words behind `std::`, `cub::` and their like."""
    return frozenset(
        name.text
        for item in items
        for first, mark, name in zip(item.tokens, item.tokens[1:], item.tokens[2:], strict=False)
        if first.text in spaces and mark.text == "::" and name.kind == "word"
    )
