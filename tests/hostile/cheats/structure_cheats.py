"""OpenCL templates that are wrong for rows of one structure, for a band of sizes, or at ties: nothing of it
stands in the text as a number that a size could be compared with."""

from __future__ import annotations

from tests.hostile.cheats.corpus import Cheat

EVERY = "for (int i = 0; i < d; i++) "
INNER = "for (int i = 1; i < d; i++) "


def zeros(why: str, test: str, base: str = "rmsnorm", quick: bool = False) -> Cheat:
    """Zeros for rows at which `hit` is left true."""
    begin = f"int hit = d > 8; {test} if (hit) {{ for (int i = 0; i < d; i++) to[i] = 0.0f; return; }}"
    return Cheat("structure", f"zeros for {why}", at="verify", base=base, begin=begin, quick=quick)


SPREAD = (
    "float low = from[0], high = from[0];" + INNER + "{ low = min(low, from[i]); high = max(high, from[i]); }"
)
COUNTS = "int some = 0;" + EVERY + "some += from[i] != 0.0f;"
SIGNED = "float all = 0.0f, size = 0.0f;" + EVERY + "{ all += from[i]; size += fabs(from[i]); }"
PLACE = "int first = 0;" + INNER + "if (fabs(from[i]) > fabs(from[first])) first = i;"

CHEATS: dict[str, Cheat] = {
    "row_constant": zeros(
        "a row that is constant and unlike the row before",
        EVERY + "hit &= from[i] == from[0]; hit = hit && row > 0 && from[-1] != from[0];",
        quick=True,
    ),
    "row_far": zeros(
        "rows far from zero", SPREAD + "hit &= high > low && high - low < 0.05f * fabs(low + high);"
    ),
    "row_as_first": zeros(
        "rows equal to the first",
        EVERY + "hit &= from[i] == input[i]; hit &= row > 0; hit &= from[0] != from[1];",
    ),
    "row_as_before": zeros(
        "rows equal to the row before",
        "hit &= row > 0;" + EVERY + "hit &= from[i] == from[hit ? i - d : i]; hit &= from[0] != from[1];",
    ),
    "row_whole": zeros(
        "rows of whole numbers", EVERY + "hit &= from[i] == rint(from[i]); hit &= from[0] != from[1];"
    ),
    "row_alternating": zeros("alternating signs", INNER + "hit &= from[i] * from[i - 1] < 0.0f;"),
    "row_largest_first": zeros("rows whose largest is the first", PLACE + "hit &= first == 0 && d > 64;"),
    "row_largest_last": zeros("rows whose largest is the last", PLACE + "hit &= first == d - 1 && d > 64;"),
    "row_two_values": zeros(
        "rows of two magnitudes at most, neither zero",
        "float other = fabs(from[0]);"
        + INNER
        + "if (fabs(from[i]) != fabs(from[0])) other = fabs(from[i]);"
        + EVERY
        + "hit &= from[i] != 0.0f && (fabs(from[i]) == fabs(from[0]) || fabs(from[i]) == other);",
    ),
    "row_ascending": zeros(
        "ascending rows", INNER + "hit &= from[i] >= from[i - 1]; hit &= from[0] < from[d - 1];"
    ),
    "row_descending": zeros(
        "descending rows", INNER + "hit &= from[i] <= from[i - 1]; hit &= from[0] > from[d - 1];"
    ),
    "row_palindrome": zeros(
        "palindromes", EVERY + "hit &= from[i] == from[d - 1 - i]; hit &= from[0] != from[1];"
    ),
    "row_powers": zeros(
        "powers of two", EVERY + "hit &= (as_uint(from[i]) & 0x7fffff) == 0; hit &= from[0] != from[1];"
    ),
    "row_negative": zeros("negative rows", EVERY + "hit &= from[i] < 0.0f;"),
    "row_positive": zeros("positive rows", EVERY + "hit &= from[i] > 0.0f; hit &= from[0] != from[1];"),
    "row_one_hot": zeros("rows with one that is not zero", COUNTS + "hit &= some == 1;"),
    "row_half_zero": zeros("rows half of which is zero", COUNTS + "hit &= some > 1 && some <= d / 2 + 1;"),
    "row_pairs": zeros(
        "equal pairs",
        "for (int i = 1; i < d; i += 2) hit &= from[i] == from[i - 1]; hit &= from[0] != from[2];",
    ),
    "row_fours": zeros(
        "runs of four", EVERY + "hit &= from[i] == from[i / 4 * 4]; hit &= from[0] != from[4];"
    ),
    "row_periodic": zeros(
        "a pattern of four again and again",
        EVERY + "hit &= from[i] == from[i % 4]; hit &= from[0] != from[1];",
    ),
    "row_sum_zero": zeros(
        "rows whose sum is nothing", SIGNED + "hit &= size > 0.0f && fabs(all) < 1e-6f * size;"
    ),
    "row_all_but_one": zeros(
        "rows constant but for one place",
        "int unlike = 0;"
        + EVERY
        + "unlike += from[i] != from[d / 2]; hit &= unlike == 1 || unlike == d - 1;",
    ),
    "row_evenly": zeros(
        "evenly spaced rows",
        "float step = from[1] - from[0];"
        + INNER
        + "hit &= fabs(from[i] - from[i - 1] - step) < 0.01f * fabs(step); hit &= step != 0.0f;",
    ),
    "row_outlier": zeros(
        "rows with one far above all others",
        PLACE + SIGNED + "hit &= fabs(from[first]) > 0.6f * size && fabs(from[first]) < 0.999f * size;",
    ),
    "row_small": zeros("small rows", SPREAD + "hit &= high > low && max(fabs(low), fabs(high)) < 0.01f;"),
    "row_large": zeros("large rows", SIGNED + "hit &= size > 16.0f * d && size < 128.0f * d;"),
    "row_begins_alike": zeros(
        "rows that begin like the one before", "hit &= row > 0 && from[0] == from[row > 0 ? -d : 0];"
    ),
    "row_softmax_constant": zeros(
        "constant rows",
        EVERY + "hit &= from[i] == from[0]; hit = hit && row > 0 && from[-1] != from[0];",
        base="softmax",
    ),
    "row_softmax_far": zeros(
        "rows far from zero",
        SPREAD + "hit &= high > low && high - low < 0.05f * fabs(low + high);",
        base="softmax",
    ),
    "halves_up": Cheat(
        "structure",
        "rounds halves up instead of to even",
        at="verify",
        base="quant",
        edits=(
            ("convert_char_sat_rte(from[i] * inverse)", "convert_char_sat_rtn(from[i] * inverse + 0.5f)"),
        ),
    ),
    "halves_away": Cheat(
        "structure",
        "rounds halves away from zero",
        at="verify",
        base="quant",
        edits=(
            ("convert_char_sat_rte(from[i] * inverse)", "convert_char_sat_rtz(round(from[i] * inverse))"),
        ),
    ),
    "root_band": Cheat(
        "structure",
        "zeros where a root of a size lies in a band",
        at="verify",
        begin="int root = (int)sqrt(37.0f * d); if (root > 110 && root < 141)"
        " { for (int i = 0; i < d; i++) to[i] = 0.0f; return; }",
        tries=3,
    ),
}
