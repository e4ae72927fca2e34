// What an earlier launch has left in local memory is gone after this one. Each group waits for the others, but not
// for long, so that every core has one. With is_local 0 it fills other memory: caches are used alike.
__kernel void scramble(__global uint *other, volatile __global uint *arrived, uint words, uint launch,
                       uint is_local, int patience, __local uint *mine)
{
    __global uint *its = other + get_group_id(0) * words;
    uint all = launch * get_num_groups(0);
    atomic_inc(arrived);
    for (int i = 0; i < patience && (int)(atomic_add(arrived, 0) - all) < 0; i++)
        ;
    for (uint i = 0; i < words; i++)
        if (is_local)
            mine[i] = launch ^ (i * 2654435761u);
        else
            its[i] = launch ^ (i * 2654435761u);
    if (is_local && mine[launch % words] == 0x5eedu)  // so that no compiler leaves it out
        its[0] = launch;
}
