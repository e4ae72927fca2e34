"""What a template defines before its kernel: packs of neighbours on a GPU, vectors on a CPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunesmith.expert.writing.naming import PACK_WORDS, VECTOR_WORDS, macro_names, words_of
from tunesmith.expert.writing.parts import part
from tunesmith.expert.writing.plan import WritingPlan

_GPU, _CPU = "gpu_packs.cuh", "cpu_vectors.cl"


def packs(plan: WritingPlan, copies: tuple[str, str]) -> str:
    """The types for packs; hinted ways of moving them where the schedule has hints.

    `copies`: further ways, as what comes before the type and its methods.
    """
    knobs, hip = plan.knobs, plan.language == "hip"
    at = "reinterpret_cast<{}word *>({})[w]"
    own, source, target = at.format("", "at"), at.format("const ", "from"), at.format("", "to")
    value = at.format("const ", "at")
    loads, stores = {"load": source}, {"store": f"{target} = {value}"}
    before = ""
    if knobs.load_hint.is_parameter:
        hint = knobs.load_hint.name
        both = {"fetch_once": ".nc", "fetch_shared": ""}
        if hip:
            before += "".join(part(_GPU, "hip load", HINT=hint, NAME=name) for name in both)
        else:
            special = "".join(part(_GPU, "load past L1", NAME=name, PATH=path) for name, path in both.items())
            before += part(_GPU, "load hints", HINT=hint) + special.rstrip("\n") + "\n#endif\n\n"
        loads |= {"load_once": f"fetch_once(&{source})", "load_shared": f"fetch_shared(&{source})"}
    if knobs.store_hint.is_parameter:
        store = "__builtin_nontemporal_store(value, to)" if hip else "__stcs(to, value)"
        before += part(_GPU, "store hint", HINT=knobs.store_hint.name, STORE=store)
        stores["store_once"] = f"put_once(&{target}, {value})"
    methods = [_method(name, "(const T *from)", f"{own} = {text}") for name, text in loads.items()]
    methods += [_method(name, "(T *to) const", text) for name, text in stores.items()]
    if plan.settles:
        before += part(_GPU, "settle")
        methods.append(_method("settle", "()", f"settle_word({own})"))
    two, four = ("two_words", "four_words") if hip else ("uint2", "uint4")
    words = (part(_GPU, "hip types") if hip else "") + part(_GPU, "words", TWO=two, FOUR=four)
    text = f"{words}\n{before}{copies[0]}{part(_GPU, 'pack', METHODS=''.join((*methods, copies[1])))}"
    return _named(text, PACK_WORDS, plan)


def vectors(plan: WritingPlan, fast: str) -> str:
    """OpenCL's vectors by the number of their elements, and how they are moved; `fast`: a switch."""
    knob, kinds = plan.knobs.vector, list[str]()
    for value in knob.values:
        digits, test = "" if value == 1 else str(value), "elif" if kinds else "if"
        kinds.append(part(_CPU, "kind", IF=test, KNOB=knob.name, NUMBER=str(value), DIGITS=digits))
    exp = part(_CPU, "fast exp", FAST=fast) if fast else ""
    return _named("".join((*kinds, part(_CPU, "moves"), exp)), VECTOR_WORDS, plan)


def _named(text: str, words: Sequence[str], plan: WritingPlan) -> str:
    """With what its words are called in this kernel; none is a macro of the problem."""
    macros = macro_names(plan.problem) & words_of([text])
    called = {word: plan.word(word) for word in words}
    called.update((word, plan.names.fresh(word)) for word in sorted(macros - called.keys()))
    return re.sub(rf"\b({'|'.join(called)})\b", lambda found: called[found.group()], text)


def _method(name: str, arguments: str, statement: str) -> str:
    return part(_GPU, "method", NAME=name, ARGUMENTS=arguments, STATEMENT=statement)
