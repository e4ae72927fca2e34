// A launch that fills stays where its values may be seen.
// read: call
// with: folder = "zoo/residual_fill_then_add"
// with: moves = "lanes fills"
// with: looks_for = ["fill_with"]

// case: the next has if (a[i] > 0.0f) out[i] += a[i];
// with: edits = [["        out[i] += a[i] + weight * b[i];", "if (a[i] > 0.0f) out[i] += a[i];"]]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted does more with it than take up each element once
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: the next has if (a[i] > 0.0f) out[i] = a[i];
// with: edits = [["        out[i] += a[i] + weight * b[i];", "if (a[i] > 0.0f) out[i] = a[i];"]]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and it is not proved that add_weighted stores every element of it
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: the next has { out[i] += b[i]; out[i] += a[i]; }
// with: edits = [["        out[i] += a[i] + weight * b[i];", "{ out[i] += b[i]; out[i] += a[i]; }"]]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted takes up its elements more than once
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: the next has { const float was = out[i]; out[i] += was * a[i]; }
// with: edits = [["        out[i] += a[i] + weight * b[i];", "{ const float was = out[i]; out[i] += was * a[i]; }"]]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted takes up its elements more than once
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: the next has out[n - 1 - i] += a[i];
// with: edits = [["        out[i] += a[i] + weight * b[i];", "out[n - 1 - i] += a[i];"]]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted does more with it than take up each element once
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: the next has out[i] += out[0] * a[i];
// with: edits = [["        out[i] += a[i] + weight * b[i];", "out[i] += out[0] * a[i];"]]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted, which is given it next, is not read
// want: note: add_weighted is beyond the expert: threads depend on each other: 'out' is written at 'out[i]' and touched at 'out[0]' (line 13). It keeps its own text, with local moves only
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: 3 times: fill_with

// case: the next has atomicAdd(&out[i], a[i]);
// with: edits = [["        out[i] += a[i] + weight * b[i];", "atomicAdd(&out[i], a[i]);"]]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted adds to it in any order (atomics): it must find it filled
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: the next has if (i < n - 1) out[i] += a[i] + weight * b[i];
// with: edits = [['''
// with: if (i < n)
// with:         out[i] += a[i] + weight * b[i];''', '''
// with: if (i < n - 1)
// with:         out[i] += a[i] + weight * b[i];''']]
// see there
// want: moves: lanes
// want: fills is refused: fill_with fills an array, and add_weighted does more with it than take up each element once
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * (n - 1)
// want: 3 times: fill_with

// case: it has out[i] = value * i;
// with: edits = [["        out[i] = value;", "out[i] = value * i;"]]
// see there
// want: moves: lanes
// want: fills is refused: no launch only fills an array with one value
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: it has { out[i] = value; out[0] = 1.0f; }
// with: edits = [["        out[i] = value;", "{ out[i] = value; out[0] = 1.0f; }"]]
// see there
// want: moves: lanes
// want: fills is refused: no launch only fills an array with one value
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: it has out[i] += value;
// with: edits = [["        out[i] = value;", "out[i] += value;"]]
// see there
// want: moves: lanes
// want: fills is refused: no launch only fills an array with one value
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with

// case: it has out[n - 1 - i] = value;
// with: edits = [["        out[i] = value;", "out[n - 1 - i] = value;"]]
// see there
// want: moves: lanes
// want: fills is refused: no launch only fills an array with one value
// want: launch fill_with(out, bias, n)
// want: launch add_weighted(out, a, b, weight, n)
// want: parameters: LANES_1 LANES_2
// want: require block_fits_1: LANES_1 <= device.max_threads
// want: require block_fits_2: LANES_2 <= device.max_threads
// want: prefer no_idle_lanes_1: LANES_1 < 2 * n
// want: prefer no_idle_lanes_2: LANES_2 < 2 * n
// want: 3 times: fill_with
