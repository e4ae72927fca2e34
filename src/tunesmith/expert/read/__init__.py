"""What a kernel computes, apart from how its threads share the work: from C to tasks and steps.

`lift` is the way in; what comes out is a `KernelModel` of `model`. On the way, in this order:

    contract            branches that arguments, alignments and remainders of the contract decide
    checks              what is out of sight, or fixed to its thread, is refused
    rules/              statements, pointers, totals and loops in one form each
    normal, accesses    one name is one variable, an access is array and index
    integers, geometry  launches with numbers; what an index counts, and who shares a loop
    styles/elements     an element to a thread, or a loop over the whole grid: its body as it stands
    styles/thread_rows  rows that one thread takes in turn, as tasks; rows it keeps in an array of its own
    styles/team*        a team to a task: all threads of a block are played through, statement by statement
    styles/tiles        tiles and rows in shared memory, as the values that they hold
    checks              whether steps may follow each other so, and which only store again
"""
