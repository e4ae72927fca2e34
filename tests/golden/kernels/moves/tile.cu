// The move that stages what is loaded along one index and stored along another.
// read: moves

// case: sides, threads and padding are choices
// with: folder = "zoo/nchw_to_nhwc"
// with: moves = ["lanes tasks vector tile"]
// see there
// want: -- lanes tasks vector tile
// want: lanes: LANES = 256 of 64, 128, 256, 512, 1024; threads to a tile
// want: tasks: TASKS = 1 of 1; tasks to a block
// want: vector: VEC = 1 of 1, 2, 4, 8; elements in one load or store
// want: tile: TILE = 32 of 16, 32, 64; elements of a tile along the stores
// want: across: ACROSS = 32 of 16, 32, 64; elements of a tile along the loads
// want: pad: PAD = 1 of 0, 1, 2; elements by which a tile's rows are longer
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_vectors: channels % VEC == 0
// want: requires whole_tiles: TILE * ACROSS % (LANES * VEC) == 0 and TILE % VEC == 0 and ACROSS % VEC == 0
// want: requires whole_vectors_of_tiles: (channels * pixels) % VEC == 0 and channels % VEC == 0 and pixels % VEC == 0
// want: requires tile_fits: TILE * (ACROSS + PAD) * 2 <= 49152
// want: requires tiles_in_grid: ceildiv(pixels, ACROSS) <= 65535 and images <= 65535
// want: prefers tile_in_registers: TILE * ACROSS <= 32 * LANES
// want: prefers enough_threads: LANES * TASKS >= min(64, device.max_threads)
// want: prefers short_rows: TASKS == 1 or LANES * TASKS <= 512
// want: answers stage_in_shared: TILE > 0
// want: answers coalesce: TILE > 0
// want: answers pad_shared: PAD > 0
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256
// want: answers rows_per_block: TASKS > 1
// want: answers more_blocks: TASKS == 1
// want: answers wide_access: VEC * 2 >= 16

// case: few elements along the loads have narrow tiles
// with: base = "rows"
// with: moves = ["lanes tile"]
// with: launch = { grid = ["ceildiv(rows, 256)", "d"] }
// with: contract = { d = { max = 64 } }
// with: workloads = { many = { rows = 512, d = 6 } }
extern "C" __global__ void k(const float *x, float *out, int rows, int d) {
const int i = blockIdx.x * 256 + threadIdx.x, c = blockIdx.y;
if (i < rows && c < d) out[c * rows + i] = x[i * d + c];
}
// want: -- lanes tile
// want: lanes: LANES = 256 of 64, 128, 256, 512, 1024; threads to a tile
// want: tile: TILE = 32 of 16, 32, 64; elements of a tile along the stores
// want: across: ACROSS = 8 of 4, 8, 16, 32, 64; elements of a tile along the loads
// want: pad: PAD = 1 of 0, 1, 2; elements by which a tile's rows are longer
// want: requires block_fits: LANES <= device.max_threads
// want: requires whole_tiles: TILE * ACROSS % LANES == 0
// want: requires tile_fits: TILE * (ACROSS + PAD) * 4 <= 49152
// want: requires tiles_in_grid: ceildiv(d, ACROSS) <= 65535
// want: prefers tile_in_registers: TILE * ACROSS <= 32 * LANES
// want: answers stage_in_shared: TILE > 0
// want: answers coalesce: TILE > 0
// want: answers pad_shared: PAD > 0
// want: answers block_size: LANES != 256
// want: answers warp_per_row: LANES <= 32
// want: answers shuffle_reduction: LANES <= 256

// case: heat has its neighbours along the stores
// with: folder = "zoo/heat_tile"
// with: moves = ["lanes tile"]
// see there
// want: -- lanes tile
// want: tile is refused: no map loads along one axis and stores along another

// case: a bias is along the stores
// with: folder = "zoo/bias_relu_2d"
// with: moves = ["lanes tile"]
// see there
// want: -- lanes tile
// want: tile is refused: no map loads along one axis and stores along another

// case: a softmax is no map
// with: folder = "zoo/softmax"
// with: moves = ["lanes tile"]
// see there
// want: -- lanes tile
// want: tile is refused: no map loads along one axis and stores along another

// case: a CPU has caches
// with: folder = "zoo/transpose_tiled"
// with: device = "cpu"
// with: moves = ["lanes tile"]
// see there
// want: -- lanes tile
// want: tile is refused: a CPU's caches hold the lines that a tile would
