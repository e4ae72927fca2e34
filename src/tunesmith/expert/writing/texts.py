"""C that a template starts with as text: parts of the files beside this one, with words in their places."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from tunesmith.expert.writing.naming import PACK_WORDS
from tunesmith.expert.writing.plan import WritingPlan


def packs(plan: WritingPlan, copies: tuple[str, str]) -> str:
    """The types for packs; hinted ways of moving them where the schedule has hints.

    `copies`: further ways, as what comes before the type and its methods.
    """
    schedule, hip = plan.draft.schedule, plan.language == "hip"
    at = "reinterpret_cast<{}word *>({})[w]"
    own, source, target = at.format("", "at"), at.format("const ", "from"), at.format("", "to")
    value = at.format("const ", "at")
    loads, stores = {"load": source}, {"store": f"{target} = {value}"}
    before = ""
    if "load_hint" in schedule:
        hint = schedule["load_hint"].name
        both = {"fetch_once": ".nc", "fetch_shared": ""}
        if hip:
            before += "".join(part("hip load", HINT=hint, NAME=name) for name in both)
        else:
            special = "".join(part("load past L1", NAME=name, PATH=path) for name, path in both.items())
            before += part("load hints", HINT=hint) + special.rstrip("\n") + "\n#endif\n\n"
        loads |= {"load_once": f"fetch_once(&{source})", "load_shared": f"fetch_shared(&{source})"}
    if "store_hint" in schedule:
        store = "__builtin_nontemporal_store(value, to)" if hip else "__stcs(to, value)"
        before += part("store hint", HINT=schedule["store_hint"].name, STORE=store)
        stores["store_once"] = f"put_once(&{target}, {value})"
    methods = [_method(name, "(const T *from)", f"{own} = {text}") for name, text in loads.items()]
    methods += [_method(name, "(T *to) const", text) for name, text in stores.items()]
    if plan.settles:
        before += part("settle")
        methods.append(_method("settle", "()", f"settle_word({own})"))
    two, four = ("two_words", "four_words") if hip else ("uint2", "uint4")
    words = (part("hip types") if hip else "") + part("words", TWO=two, FOUR=four)
    text = f"{words}\n{before}{copies[0]}{part('pack', METHODS=''.join((*methods, copies[1])))}"
    return re.sub(r"\b(" + "|".join(PACK_WORDS) + r")\b", lambda found: plan.word(found.group()), text)


def _method(name: str, arguments: str, statement: str) -> str:
    return part("method", NAME=name, ARGUMENTS=arguments, STATEMENT=statement)


@cache
def resource(name: str) -> str:
    return resources.files("tunesmith.expert.writing").joinpath(name).read_text(encoding="utf-8")


def filled(text: str, words: Mapping[str, str]) -> str:
    """With words in the places of @WORD@."""
    return re.sub(r"@([A-Z]+)@", lambda found: words[found.group(1)], text)


def part(name: str, **words: str) -> str:
    """A part of `gpu_packs.cuh`, with words in their places."""
    parts = dict(one.split("\n", 1) for one in resource("gpu_packs.cuh").split("//= ")[1:])
    return filled(parts[name], words)
