"""What well-known functions do with the pointers and values they are given."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """What is done through a pointer. `hidden`: it also goes somewhere that could not be followed."""

    read: bool = False
    write: bool = False
    hidden: bool = False

    def __or__(self, other: Access) -> Access:
        return Access(self.read or other.read, self.write or other.write, self.hidden or other.hidden)


NONE = Access()
READ = Access(read=True)
WRITE = Access(write=True)
BOTH = Access(read=True, write=True)
HIDDEN = Access(hidden=True)

# Function name, then the effect on each argument that is a pointer; other positions are not known.
_RULES: tuple[tuple[re.Pattern[str], dict[int, Access]], ...] = tuple(
    (re.compile(pattern), effects)
    for pattern, effects in (
        (r"vload\w*", {1: READ}),
        (r"vstore\w*", {2: WRITE}),
        (r"(?:__hip_|__)?atom(?:ic)?_(?:\w+_)?load\w*", {0: READ}),
        (r"(?:__hip_|__)?atom(?:ic)?_(?:\w+_)?(?:store|init)\w*", {0: WRITE}),
        (r"(?:unsafe|__hip_|__)?[aA]tom(?:ic)?[A-Z_]\w*", {0: BOTH}),
        (r"__ld(?:g|c[agsv]|lu)", {0: READ}),
        (r"__st(?:c[gs]|w[bt])", {0: WRITE}),
        (r"memcpy|memmove|__pipeline_memcpy_async|async_work_group_\w*copy", {0: WRITE, 1: READ}),
        (r"memset", {0: WRITE}),
        (r"__builtin_nontemporal_load", {0: READ}),
        (r"__builtin_nontemporal_store", {1: WRITE}),
        (r"load_matrix_sync", {1: READ}),
        (r"store_matrix_sync", {0: WRITE}),
        (r"prefetch|__builtin_prefetch|assert|printf|__builtin_assume", dict.fromkeys(range(8), NONE)),
        (r"swap", {0: BOTH, 1: BOTH}),
    )
)
# The value of these calls is the pointer they were given.
POINTER_CASTS = frozenset({
    "reinterpret_cast", "static_cast", "const_cast", "__builtin_assume_aligned",
})  # fmt: skip
# In C++ an unknown function may take a reference; these are known to take values.
_BY_VALUE = re.compile(
    r"""__\w+ | \w+_cast | printf | assert | make_\w+ | h[a-z]+2? | is(?:nan|inf|finite) | sizeof
    | f?(?:abs|min|max|mod|ma|dim)f? | r?sqrtf? | r?cbrtf? | pow[if]?f? | copysignf? | hypotf? | sincospif?
    | (?:exp|exp2|exp10|expm1|log|log2|log10|log1p|erf|erfc|erfinv|tgamma|lgamma)f?
    | a?(?:sin|cos|tan)h?f? | atan2f? | (?:l?l?r(?:ound|int)|ceil|floor|trunc|round|nearbyint|saturate)f?
    | float | double | half | int | unsigned | u?int\d*_t | u?char | u?short | u?long | bool | size_t""",
    re.VERBOSE,
)


def pointer_effect(function: str, position: int) -> Access | None:
    """The effect of passing a pointer as this argument, or None where the function is not known."""
    for pattern, effects in _RULES:
        if pattern.fullmatch(function):
            return effects.get(position, HIDDEN)
    return None


def takes_values(function: str) -> bool:
    return _BY_VALUE.fullmatch(function) is not None
