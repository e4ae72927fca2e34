// Long lines of C as several.

// case: a short line stays one
// with: width = 115
// each line
send(ring + (threadIdx.y * STAGES + stage) * (CHUNK * 2), &table[id * dim + here], count * 2, &arrived[stage]);  // want: send(ring + (threadIdx.y * STAGES + stage) * (CHUNK * 2), &table[id * dim + here], count * 2, &arrived[stage]);

// case: what follows stands below what the bracket holds
// with: width = 80
// each line
send(ring + (threadIdx.y * STAGES + stage) * (CHUNK * 2), &table[id * dim + here], count * 2, &arrived[stage]);  // want: send(ring + (threadIdx.y * STAGES + stage) * (CHUNK * 2), |      &table[id * dim + here], count * 2, &arrived[stage]);

// case: the weakest operator is broken first
// each line
const int x = first * second + third * fourth - fifth * sixth * seventh * eighth;  // want: const int x = first * second + third * fourth |     - fifth * sixth * seventh * eighth;

// case: arguments of a template stay together
// each line
Pack<__half, VEC, 16>::copy(ring, stage * ITEMS + k, &weight[here], true);  // want: Pack<__half, VEC, 16>::copy(ring, stage * ITEMS + k, |                             &weight[here], true);

// case: a comparison is no bracket
// each line
if (first < second && third > fourth && fifth < sixth && seventh > eighth) {  // want: if (first < second && third > fourth && fifth < sixth |     && seventh > eighth) {

// case: behind an assignment where nothing else is left
// each line
values[first_index_of_all][second] = value_of_a_long_name(argument);  // want: values[first_index_of_all][second] = |     value_of_a_long_name(argument);

// case: a comment behind goes ahead
// each line
x = a + b;  // which is the sum of the one and the other number  // want: // which is the sum of the one and the other number | x = a + b;

// case: some lines stay as they are
// each line
#define LONG (aaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbb + cccccccccccccccccc)  // want: #define LONG (aaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbb + cccccccccccccccccc)
// a comment that is longer than it should be, as comments of the source may be
asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from));  // want: asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from));
a_name_without_any_place_to_break_it_at_however_long_it_is_written();  // want: a_name_without_any_place_to_break_it_at_however_long_it_is_written();
