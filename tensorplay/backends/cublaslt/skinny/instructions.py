"""The instructions that the skinny kernels use and C++ has no words for; the host's tests put others in their place."""

__all__ = ["INSTRUCTIONS"]

# Loads are volatile so that they stay in the order in which they are written: that order is the prefetch.
INSTRUCTIONS = r"""
extern __shared__ float shared_memory[];
__device__ __forceinline__ float* shared_floats() { return shared_memory; }

// Reads BYTES into words: from the weight, which is read once, so nothing is kept near.
template <int BYTES> __device__ void load_streamed(unsigned int* words, const char* from);
template <> __device__ __forceinline__ void load_streamed<16>(unsigned int* words, const char* from)
{
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(from));
}
template <> __device__ __forceinline__ void load_streamed<8>(unsigned int* words, const char* from)
{
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "l"(from));
}
template <> __device__ __forceinline__ void load_streamed<4>(unsigned int* words, const char* from)
{
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(words[0]) : "l"(from));
}

// Reads BYTES into words, or zeros where `is_there` is false.
template <int BYTES> __device__ void load_kept(unsigned int* words, const char* from, bool is_there);
template <> __device__ __forceinline__ void load_kept<16>(unsigned int* words, const char* from, bool is_there)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0; "
                 "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
                 : "l"(from), "r"((unsigned int)is_there));
}
template <> __device__ __forceinline__ void load_kept<8>(unsigned int* words, const char* from, bool is_there)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; mov.u32 %0, 0; mov.u32 %1, 0; "
                 "@p ld.global.v2.u32 {%0, %1}, [%2]; }"
                 : "=&r"(words[0]), "=&r"(words[1])
                 : "l"(from), "r"((unsigned int)is_there));
}
template <> __device__ __forceinline__ void load_kept<4>(unsigned int* words, const char* from, bool is_there)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u32 %0, 0; @p ld.global.u32 %0, [%1]; }"
                 : "=&r"(words[0])
                 : "l"(from), "r"((unsigned int)is_there));
}
template <> __device__ __forceinline__ void load_kept<2>(unsigned int* words, const char* from, bool is_there)
{
    unsigned short bits;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u16 %0, 0; @p ld.global.u16 %0, [%1]; }"
                 : "=&h"(bits)
                 : "l"(from), "r"((unsigned int)is_there));
    words[0] = bits;
}

// Keeps a value in a register: else the compiler computes it anew before each load.
__device__ __forceinline__ void pin(unsigned int& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void pin(const char*& value) { asm volatile("" : "+l"(value)); }

// Read and write an element of the result, or of the addend that lies as it does and may be it.
__device__ __forceinline__ unsigned short load_plain(const unsigned short* from) { return *from; }
__device__ __forceinline__ float load_plain(const float* from) { return *from; }
__device__ __forceinline__ void store_plain(unsigned short* to, unsigned short value) { *to = value; }
__device__ __forceinline__ void store_plain(float* to, float value) { *to = value; }

__device__ __forceinline__ float half_to_float(unsigned short bits)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}
__device__ __forceinline__ unsigned short float_to_half(float wide)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(wide));
    return bits;
}

__device__ __forceinline__ unsigned int selected_bytes(unsigned int low, unsigned int high, unsigned int selection)
{
    return __byte_perm(low, high, selection);
}
__device__ __forceinline__ float exchanged(float value, int distance)
{
    return __shfl_xor_sync(0xffffffffu, value, distance);
}

// sums (16 x 8) += a (16 x 16) * b (16 x 8), all spread over a warp.
#define MULTIPLIES(name, type)                                                                                       \
    __device__ __forceinline__ void name(float* sums, const unsigned int* a, const unsigned int* b)                  \
    {                                                                                                                \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, "                \
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                                 \
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                            \
    }
#if __CUDA_ARCH__ >= 800
MULTIPLIES(multiply_halves, "f16")
MULTIPLIES(multiply_bfloats, "bf16")
#else
__device__ void multiply_halves(float*, const unsigned int*, const unsigned int*);
__device__ void multiply_bfloats(float*, const unsigned int*, const unsigned int*);
#endif
#undef MULTIPLIES

// Copies 16 bytes to shared memory, in the group of copies that is open: from the weight, whose lines are taken by
// neighbouring warps, and from x, or zeros where `is_there` is false.
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void copy_streamed(char* to, const char* from)
{
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;"
                 :
                 : "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
__device__ __forceinline__ void copy_kept(char* to, const char* from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from), "r"(is_there ? 16 : 0)
                 : "memory");
}
__device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until no more than COUNT of the thread's groups are under way.
template <int COUNT> __device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(COUNT) : "memory");
}
#else
__device__ void copy_streamed(char* to, const char* from);
__device__ void copy_kept(char* to, const char* from, bool is_there);
__device__ void close_copies();
template <int COUNT> __device__ void wait_for_copies();
#endif
__device__ __forceinline__ void wait_for_warp() { __syncwarp(); }

// Four words of shared memory.
__device__ __forceinline__ void load_shared(unsigned int* words, const char* from)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"((unsigned int)__cvta_generic_to_shared(from)));
}
__device__ __forceinline__ void store_shared(char* to, const unsigned int* words)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"((unsigned int)__cvta_generic_to_shared(to)), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                   "r"(words[3])
                 : "memory");
}

// Asks for the line of an address, but not for what is in it.
__device__ __forceinline__ void touch(const char* address)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(address));
}

// Lets the blocks of the next kernel on the stream take what room there is, once all of this one's have come here.
__device__ __forceinline__ void let_next_kernel_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Nothing that the kernel ahead on the stream writes may be touched before.
__device__ __forceinline__ void wait_for_kernel_ahead()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#if __CUDA_ARCH__ >= 900
// All threads of the cluster wait for one another; what they wrote to shared memory before is seen by all.
__device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Reads what stands at the same place in the shared memory of another block of the cluster.
__device__ __forceinline__ float load_remote(const float* place, int rank)
{
    float value;
    unsigned int address = (unsigned int)__cvta_generic_to_shared(place);
    asm volatile("{ .reg .u32 remote; mapa.shared::cluster.u32 remote, %1, %2; "
                 "ld.shared::cluster.f32 %0, [remote]; }"
                 : "=f"(value)
                 : "r"(address), "r"(rank)
                 : "memory");
    return value;
}
#else
__device__ void cluster_barrier();
__device__ float load_remote(const float* place, int rank);
#endif
"""
