// Runs skinny kernels on the host: a fiber for each thread of a cluster, so warps and clusters can be waited for.
// Reads commands: `buffer NUMBER SHIFT FILE MARKS`, `launch KERNEL BLOCKS SPLIT THREADS SHARED ARGUMENTS`,
// `store NUMBER FILE`, `clear`. Each access to memory is checked: marks say of each byte whether it may be read (1) and
// written (2), and what is written once may not be written again.
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(x, y, z)

struct Three { unsigned x, y, z; };
static Three blockIdx, threadIdx;

static void fail(const char* reason, const void* address)
{
    fprintf(stderr, "%s at %p by thread %u of block %u\n", reason, address, threadIdx.x, blockIdx.x);
    exit(1);
}

struct Buffer { char* start; std::string marks; };
static std::map<unsigned long long, Buffer> buffers;

static void checked(const void* address, int bytes, char mark)
{
    if ((unsigned long long)address % bytes) fail("misaligned", address);
    for (auto& [number, buffer] : buffers) {
        const long long at = (const char*)address - buffer.start;
        if (at < 0 || at + bytes > (long long)buffer.marks.size()) continue;
        for (int i = 0; i < bytes; ++i) {
            if (!(buffer.marks[at + i] & mark)) fail(mark == 1 ? "forbidden read" : "forbidden write", address);
            if (mark == 2) buffer.marks[at + i] &= ~2;
        }
        return;
    }
    fail("outside of all buffers", address);
}

// Fibers.
struct Fiber { ucontext_t context; std::vector<char> stack; bool is_done; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static size_t running;
static unsigned block_threads, cluster_blocks, first_block;
static void (*body)();

struct Barrier { unsigned arrived, turn; };
static std::vector<Barrier> of_warps, of_blocks;
static Barrier of_cluster;

static void wait_at(Barrier& barrier, unsigned size)
{
    const unsigned turn = barrier.turn;
    if (++barrier.arrived == size) {
        barrier.arrived = 0;
        ++barrier.turn;
        return;
    }
    while (barrier.turn == turn) swapcontext(&fibers[running].context, &scheduler);
}

static void become(size_t fiber)
{
    running = fiber;
    threadIdx.x = fiber % block_threads;
    blockIdx.x = first_block + fiber / block_threads;
}

static void start()
{
    body();
    fibers[running].is_done = true;
}

struct Copy { char* to; char bytes[16]; };
static std::map<size_t, std::vector<std::vector<Copy>>> groups;

static void run_cluster()
{
    const size_t count = (size_t)block_threads * cluster_blocks;
    if (fibers.size() < count) fibers.resize(count);
    of_warps.assign(count / 32, {0, 0});
    of_blocks.assign(cluster_blocks, {0, 0});
    of_cluster = {0, 0};
    for (size_t i = 0; i < count; ++i) {
        Fiber& fiber = fibers[i];
        fiber.stack.resize(256 << 10);
        fiber.is_done = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, start, 0);
    }
    groups.clear();
    for (size_t left = count; left;) {
        left = 0;
        for (size_t i = 0; i < count; ++i) {
            if (fibers[i].is_done) continue;
            become(i);
            swapcontext(&scheduler, &fibers[i].context);
            left += !fibers[i].is_done;
        }
    }
}

// What stands for the instructions.
static std::vector<std::vector<float>> shared;
static const unsigned beyond = 4096;
static float* shared_floats() { return shared[running / block_threads].data(); }
static void __syncthreads() { wait_at(of_blocks[running / block_threads], block_threads); }
static void cluster_barrier() { wait_at(of_cluster, block_threads * cluster_blocks); }
static float load_remote(const float* place, int rank)
{
    return shared[rank][place - shared_floats()];
}

template <int BYTES> void load_kept(unsigned* words, const char* from, bool is_there)
{
    memset(words, 0, BYTES < 4 ? 4 : BYTES);
    if (!is_there) return;
    checked(from, BYTES, 1);
    memcpy(words, from, BYTES);
}
template <int BYTES> void load_streamed(unsigned* words, const char* from) { load_kept<BYTES>(words, from, true); }
template <typename T> void pin(T&) {}
static void wait_for_kernel_ahead() {}
template <typename T> T load_plain(const T* from)
{
    checked(from, sizeof(T), 1);
    return *from;
}
template <typename T> void store_plain(T* to, T value)
{
    checked(to, sizeof(T), 2);
    *to = value;
}

extern "C" float half_to_float(unsigned short);
extern "C" unsigned short float_to_half(float);
static float __uint_as_float(unsigned word) { float value; memcpy(&value, &word, 4); return value; }
static unsigned __float_as_uint(float value) { unsigned word; memcpy(&word, &value, 4); return word; }
static float bfloat_to_float(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
static unsigned selected_bytes(unsigned low, unsigned high, unsigned selection)
{
    const unsigned long long both = (unsigned long long)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) result |= (unsigned)(both >> 8 * (selection >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}

static float given[1 << 16];
static unsigned operands[1 << 16][6];
static void wait_for_warp() { wait_at(of_warps[running / 32], 32); }

// Copies are made as late as may be, when they are waited for, so that one that is not waited for is seen: until then
// what is there is not a number.
static void checked_shared(const char* place)
{
    const std::vector<float>& floats = shared[running / block_threads];
    if ((unsigned long long)place % 16) fail("misaligned", place);
    if (place < (char*)floats.data() || place + 16 > (char*)(floats.data() + floats.size() - beyond))
        fail("outside of shared memory", place);
}
static void copy_kept(char* to, const char* from, bool is_there)
{
    checked_shared(to);
    if (is_there) checked(from, 16, 1);
    Copy copy{to, {}};
    if (is_there) memcpy(copy.bytes, from, 16);
    memset(to, 0xff, 16);
    auto& open = groups[running];
    if (open.empty()) open.emplace_back();
    open.back().push_back(copy);
}
static void copy_streamed(char* to, const char* from) { copy_kept(to, from, true); }
static void close_copies()
{
    auto& open = groups[running];
    if (open.empty()) open.emplace_back();
    open.emplace_back();
}
template <int COUNT> void wait_for_copies()
{
    auto& open = groups[running];
    while (open.size() > COUNT + 1u) {
        for (const Copy& copy : open.front()) memcpy(copy.to, copy.bytes, 16);
        open.erase(open.begin());
    }
}
static void load_shared(unsigned* words, const char* from)
{
    checked_shared(from);
    memcpy(words, from, 16);
}
static void store_shared(char* to, const unsigned* words)
{
    checked_shared(to);
    memcpy(to, words, 16);
}
static void touch(const char* address)
{
    for (auto& [number, buffer] : buffers) {
        const long long at = address - buffer.start;
        if (at >= 0 && at < (long long)buffer.marks.size()) return;
    }
    fail("outside of all buffers", address);
}
static void let_next_kernel_begin() {}
static float exchanged(float value, int distance)
{
    given[running] = value;
    wait_for_warp();
    const float other = given[running ^ distance];
    wait_for_warp();
    return other;
}
// As the instruction set describes where m16n8k16 has its elements.
static void multiplied(float* sums, const unsigned* a, const unsigned* b, float (*read)(unsigned short))
{
    memcpy(operands[running], a, 16);
    memcpy(operands[running] + 4, b, 8);
    wait_for_warp();
    const unsigned warp = running / 32 * 32, group = running % 32 / 4, pair = running % 4;
    for (int q = 0; q < 4; ++q) {
        const unsigned row = group + q / 2 * 8, column = pair * 2 + q % 2;
        for (unsigned k = 0; k < 16; ++k) {
            const unsigned owner = k % 8 / 2, half = k % 2 * 16, later = k / 8;
            const unsigned of_a = operands[warp + row % 8 * 4 + owner][row / 8 + 2 * later];
            const unsigned of_b = operands[warp + column * 4 + owner][4 + later];
            sums[q] += read((unsigned short)(of_a >> half)) * read((unsigned short)(of_b >> half));
        }
    }
    wait_for_warp();
}
static void multiply_halves(float* sums, const unsigned* a, const unsigned* b)
{
    multiplied(sums, a, b, half_to_float);
}
static void multiply_bfloats(float* sums, const unsigned* a, const unsigned* b)
{
    multiplied(sums, a, b, bfloat_to_float);
}

static std::vector<unsigned char> arguments;

// The arguments, their five addresses translated from buffer number and shift.
template <typename A> A parsed()
{
    A made;
    if (sizeof made != arguments.size()) {
        fprintf(stderr, "arguments have %zu bytes, the kernel takes %zu\n", arguments.size(), sizeof made);
        exit(1);
    }
    memcpy(&made, arguments.data(), sizeof made);
    unsigned long long addresses[5];
    memcpy(addresses, &made, sizeof addresses);
    for (auto& address : addresses)
        if (address) address = (unsigned long long)buffers.at(address >> 32).start;
    memcpy(&made, addresses, sizeof addresses);
    return made;
}

#include "kernels.inc"

static unsigned char from_hex(const std::string& text, size_t at)
{
    return (unsigned char)std::stoi(text.substr(2 * at, 2), nullptr, 16);
}

static std::string contents(const std::string& name)
{
    std::ifstream file(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

int main(int, char** names)
{
    const std::map<std::string, void (*)()> kernels{KERNELS};
    std::ifstream commands(names[1]);
    for (std::string line; std::getline(commands, line);) {
        std::istringstream words(line);
        std::string verb, name, marks;
        words >> verb;
        if (verb == "buffer") {
            unsigned long long number, shift;
            words >> number >> shift >> name >> marks;
            const std::string bytes = contents(name);
            char* memory = (char*)aligned_alloc(256, (shift + bytes.size()) / 256 * 256 + 256);
            memcpy(memory + shift, bytes.data(), bytes.size());
            buffers[number] = {memory + shift, contents(marks)};
        } else if (verb == "store") {
            unsigned long long number;
            words >> number >> name;
            const Buffer& buffer = buffers.at(number);
            std::ofstream(name, std::ios::binary).write(buffer.start, buffer.marks.size());
        } else if (verb == "launch") {
            std::string text;
            unsigned blocks, bytes;
            words >> name >> blocks >> cluster_blocks >> block_threads >> bytes >> text;
            fprintf(stderr, "%s\n", line.c_str());
            arguments.resize(text.size() / 2);
            for (size_t i = 0; i < arguments.size(); ++i) arguments[i] = from_hex(text, i);
            body = kernels.at(name);
            if (blocks % cluster_blocks) fail("no whole clusters", nullptr);
            for (first_block = 0; first_block < blocks; first_block += cluster_blocks) {
                // Not a number, so that a sum that nobody left is seen.
                shared.assign(cluster_blocks, std::vector<float>(bytes / 4 + beyond, NAN));
                run_cluster();
                for (auto& floats : shared)
                    for (unsigned i = 0; i < beyond; ++i)
                        if (!std::isnan(floats[bytes / 4 + i])) fail("shared memory overrun", nullptr);
            }
        } else {
            buffers.clear();
        }
    }
    return 0;
}
