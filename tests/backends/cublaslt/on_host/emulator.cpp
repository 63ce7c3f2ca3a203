// Runs kernels of our own on the host, a thread of the host for each of a block where they wait for one another.
// Reads commands: `buffer NUMBER SHIFT FILE`, `launch KERNEL grid block ARGUMENTS`, `store NUMBER FILE`, `clear`,
// `sizes KERNEL`. Memory is as long as what is in it, so the address sanitizer sees every step beyond.
#include <pthread.h>

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
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

struct Three { unsigned x, y, z; };
static Three gridDim, blockDim;
static thread_local Three blockIdx, threadIdx;
static thread_local unsigned place_in_block;
static pthread_barrier_t of_block, of_warp[32];
static float exchanged[1024];

#define __device__
#define __global__
#define __shared__ static
#define __CUDA_ARCH__ 900

extern "C" float half_to_float(unsigned short);
extern "C" unsigned short float_to_half(float), float_to_e4m3(float), float_to_e5m2(float);

static float __uint_as_float(unsigned int word) { float value; memcpy(&value, &word, 4); return value; }
static unsigned int __float_as_uint(float value) { unsigned int word; memcpy(&word, &value, 4); return word; }
static void __syncthreads() { pthread_barrier_wait(&of_block); }
static float __shfl_down_sync(unsigned int, float value, int down)
{
    const unsigned here = place_in_block, lane = here % 32;
    exchanged[here] = value;
    pthread_barrier_wait(&of_warp[here / 32]);
    const float other = lane + down < 32 ? exchanged[here + down] : value;
    pthread_barrier_wait(&of_warp[here / 32]);
    return other;
}

#include "kernels.inc"

static std::map<int, std::pair<std::vector<char*>, size_t>> buffers;

template <typename T> T parsed(const std::string& word)
{
    if constexpr (std::is_pointer_v<T>) {
        return word == "0" ? nullptr : (T)buffers.at(std::stoi(word)).first[1];
    } else if constexpr (std::is_floating_point_v<T>) {
        return (T)strtod(word.c_str(), nullptr);
    } else if constexpr (std::is_signed_v<T>) {
        return (T)std::stoll(word);
    } else {
        return (T)std::stoull(word);
    }
}

static void over_blocks(const std::function<void()>& body)
{
    for (blockIdx = {0, 0, 0}; blockIdx.x < gridDim.x; ++blockIdx.x) body();
}

// The largest block of ours; its threads are kept from launch to launch, since starting them takes longest.
static const unsigned crowd = 512;
static pthread_barrier_t at_start, at_end;
static std::vector<std::thread> threads;
static std::function<void()> work;

static void become(unsigned place)
{
    place_in_block = place;
    threadIdx = {place % blockDim.x, place / blockDim.x, 0};
}

static void serve(unsigned place)
{
    for (;;) {
        pthread_barrier_wait(&at_start);
        if (!work) return;
        if (place < blockDim.x * blockDim.y) {
            become(place);
            over_blocks([] { work(); __syncthreads(); });
        }
        pthread_barrier_wait(&at_end);
    }
}

static void all_together(std::function<void()> body)
{
    if (threads.empty()) {
        for (auto* barrier : {&at_start, &at_end}) pthread_barrier_init(barrier, nullptr, crowd + 1);
        for (auto& warp : of_warp) pthread_barrier_init(&warp, nullptr, 32);
        for (unsigned place = 0; place < crowd; ++place) threads.emplace_back(serve, place);
    }
    pthread_barrier_init(&of_block, nullptr, blockDim.x * blockDim.y);
    work = body;
    pthread_barrier_wait(&at_start);
    pthread_barrier_wait(&at_end);
}

static void dismiss()
{
    if (threads.empty()) return;
    work = nullptr;
    pthread_barrier_wait(&at_start);
    for (auto& thread : threads) thread.join();
}

static void launched(const std::function<void()>& body, bool together)
{
    if (together) return all_together(body);
    over_blocks([&] {
        for (unsigned place = 0; place < blockDim.x * blockDim.y; ++place) {
            become(place);
            body();
        }
    });
}

struct Kernel {
    std::function<void(const std::vector<std::string>&)> run;
    std::vector<size_t> sizes;
};

template <typename... A, size_t... I>
Kernel made(void (*function)(A...), bool together, std::index_sequence<I...>)
{
    const auto run = [=](const std::vector<std::string>& words) {
        const std::tuple<A...> arguments{parsed<A>(words.at(I))...};
        launched([&] { std::apply(function, arguments); }, together);
    };
    return {run, {sizeof(A)...}};
}

template <typename... A> Kernel kernel(void (*function)(A...), bool together)
{
    return made(function, together, std::index_sequence_for<A...>{});
}

static void forget()
{
    for (auto& [number, buffer] : buffers) free(buffer.first[0]);
    buffers.clear();
}

int main(int, char** arguments)
{
    const std::map<std::string, Kernel> kernels{KERNELS};
    std::ifstream commands(arguments[1]);
    for (std::string line; std::getline(commands, line);) {
        std::istringstream words(line);
        std::string verb, name;
        words >> verb;
        if (verb == "buffer") {
            size_t number, shift;
            words >> number >> shift >> name;
            std::ifstream file(name, std::ios::binary);
            const std::string bytes{std::istreambuf_iterator<char>(file), {}};
            char* memory = (char*)malloc(shift + bytes.size());
            memcpy(memory + shift, bytes.data(), bytes.size());
            buffers[number] = {{memory, memory + shift}, bytes.size()};
        } else if (verb == "store") {
            int number;
            words >> number >> name;
            const auto& [memory, size] = buffers.at(number);
            std::ofstream(name, std::ios::binary).write(memory[1], size);
        } else if (verb == "launch") {
            fprintf(stderr, "%s\n", line.c_str());
            words >> name >> gridDim.x >> gridDim.y >> gridDim.z >> blockDim.x >> blockDim.y >> blockDim.z;
            kernels.at(name).run({std::istream_iterator<std::string>(words), {}});
        } else if (verb == "sizes") {
            words >> name;
            for (size_t size : kernels.at(name).sizes) printf("%zu ", size);
            printf("\n");
        } else {
            forget();
        }
    }
    forget();
    dismiss();
    return 0;
}
