"""What a kernel computes, apart from how its threads share the work: from C to tasks and steps.

`lift` is the way in; what comes out is a `KernelModel`. On the way, in this order:

    fixed_arguments            branches that the problem's arguments decide
    single_turns               loops that turn once
    congruences                ways by alignment and remainders that the contract rules out, left out
    dependents                 waits for other launches, set aside
    sight, pointers            what is out of sight, or fixed to its thread, is refused
    tidy, normal, accesses     statements in one form: one name is one variable, an access is array and index
    chosen_pointers, scratch   pointers chosen by a branch, variables of a turn: each where it belongs
    totals, shifted_loops      loops in one form: totals in variables, the same turns counted by element
    translate, geometry        launches with numbers; what an index counts, and who shares a loop
    flat                       an element to a thread, or a loop over the whole grid: its body as it stands
    thread_rows, size_bounds   rows that one thread takes in turn, as tasks; that they lie apart at all sizes
    team_reader                a team to a task: all threads of a block are played through, statement by
                               statement (`team_statements`, `team_loops`), on the values that they hold
                               (`team_expressions`, `team_memory`); `team_record` keeps the steps, and
                               `element_loops` the bodies of loops over elements
    kept_rows, size_tests      where that fails, in another form: rows that threads keep in arrays of their
                               own, tests by thread and size
    boxes, tiles, block_sums   tiles in shared memory, as the values that they hold
    exchange                   whether steps may follow each other so, and which only store again

`kernel` has the types, `affine` the arithmetic of indices, `facts` what a reading rests on, and `words` says
it to people.
"""
