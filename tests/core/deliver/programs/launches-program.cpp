extern int device_here;
int main() {
    char* at = (char*)4096;
    float *a = (float*)at, *b = a + 4096;
    mine::run(a, b, 16, 256, 0);                     // tuned
    mine::run((__half*)a, (__half*)b, 16, 256, 0);   // other types
    mine::run(a, a, 16, 256, 0);                     // in place
    mine::run(a, b - 4, 16, 256, 0);                 // the last elements of one are the first of the other
    mine::run(a, b + 1, 16, 256, 0);                 // not aligned
    mine::run(a, b, 2, 6, 0);                        // no entry for this size
    mine::run(a, (float*)0x40000000, 5000, 8, 0);    // outside the contract
    mine::run(a, b, -1, 8, 0);                       // another instance of the kernel
    mine::scale<float, 3><<<1, 64>>>(a, b, 2.0f, 16, 512);
    launch(a, b, 15, 64, 16, 512, 2.0f);             // fewer blocks
    launch(a, b, 16, 32, 16, 512, 2.0f);             // fewer threads
    launch(a, b, 16, 64, 16, 511, 2.0f);             // a size that is no integer
    launch(a, b, 16, 64, 16, 512, 3.0f);             // a value that was not tuned with
    launch(a, b, 16, 64, 16, 512, 2.0f);             // tuned
    device_here = 1;
    mine::run(a, b, 16, 256, 0);                     // another device
    device_here = 0;
    taken = 0;
    once(a, b, 16, 256);                             // tuned: what it passes is counted
    once(a, a, 16, 256);                             // in place
    printf("taken %d\n", taken);
}
