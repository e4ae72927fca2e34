// What special registers tell; those of a line tell the same.
// read: effects of registers

// case: registers
// each line
laneid tid.x ctaid.y clusterid.x cluster_ctaid.x cluster_ctarank  // want: THREAD
lanemask_lt lanemask_eq lanemask_ge  // want: THREAD
ntid.x nctaid.z nclusterid.x cluster_nctaid.x cluster_nctarank  // want: SHAPE
clock clock64 clock_hi globaltimer globaltimer_lo globaltimer_hi  // want: TIME
smid nsmid warpid nwarpid gridid envreg3 pm0 pm7_64 dynamic_smem_size  // want: MACHINE
total_smem_size  // want: MACHINE
no_such_register  // want: THREAD SHAPE MASK TIME MACHINE READS WRITES ATOMIC ASSIGNS VOLATILE BARRIER FENCE OUTPUT STOPS ALLOCATES LAUNCHES RANDOM UNKNOWN
