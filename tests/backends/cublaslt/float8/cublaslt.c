/* A stand-in for cuBLASLt that multiplies FP8 alone, on the host, by the rules that the real one has for it: the left
   matrix transposed and the right one not, an addend of another type than FP8, one matrix for addend and result only
   where their descriptors are one, and scales only where there is FP8. What breaks a rule is refused, never computed. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { R_32F = 0, R_16F = 2, R_16BF = 14, E4M3 = 28, E5M2 = 29 };
enum { OK = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { TRANSA = 3, TRANSB = 4, EPILOGUE = 7, BIAS = 8, A_SCALE = 17, B_SCALE = 18, D_SCALE = 20, BIAS_TYPE = 26 };
enum { TYPE = 0, ROWS = 2, COLS = 3, LD = 4 };

typedef struct { uint64_t value[64]; } Object;
typedef struct { uint32_t value[9], types[4]; uint32_t rest[3]; } Algo;
typedef struct { Algo algo; size_t workspace; int32_t state; float waves; int32_t reserved[4]; } Result;

static int is_narrow(uint64_t type) { return type == E4M3 || type == E5M2; }

static double narrow(int type, int code)
{
    const int mantissa = type == E4M3 ? 3 : 2, bias = type == E4M3 ? 7 : 15;
    const int exponent = (code & 0x7f) >> mantissa, fraction = code & ((1 << mantissa) - 1);
    if (type == E4M3 ? (code & 0x7f) == 0x7f : exponent == 31) return NAN;
    const double size = exponent ? ldexp(1.0 + ldexp(fraction, -mantissa), exponent - bias)
                                 : ldexp(fraction, 1 - bias - mantissa);
    return code & 0x80 ? -size : size;
}

static double load(int type, const void* matrix, int64_t at)
{
    if (is_narrow(type)) return narrow(type, ((const uint8_t*)matrix)[at]);
    if (type == R_16F) return ((const _Float16*)matrix)[at];
    if (type == R_32F) return ((const float*)matrix)[at];
    const uint32_t word = (uint32_t)((const uint16_t*)matrix)[at] << 16;
    float value;
    memcpy(&value, &word, 4);
    return value;
}

static void store(int type, void* matrix, int64_t at, double value)
{
    if (is_narrow(type)) {
        int best = 0;
        for (int code = 1; code < 256; code++)
            if (fabs(narrow(type, code) - value) < fabs(narrow(type, best) - value)) best = code;
        ((uint8_t*)matrix)[at] = best;
    } else if (type == R_16F) {
        ((_Float16*)matrix)[at] = value;
    } else if (type == R_32F) {
        ((float*)matrix)[at] = value;
    } else {
        const float single = value;
        uint32_t word;
        memcpy(&word, &single, 4);
        ((uint16_t*)matrix)[at] = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
    }
}

static double scale(const Object* operation, int attribute)
{
    const float* at = (const float*)operation->value[attribute];
    return at ? *at : 1.0;
}

/* Attributes are numbers of so many bytes; a get of none answers how many. */
static int operation_bytes(int which) { return which == 8 || (which >= 17 && which <= 20) ? 8 : which == 25 ? 1 : 4; }
static int layout_bytes(int which) { return which < 2 || which == 5 ? 4 : 8; }
static int preference_bytes(int which) { return which == 1 || which == 12 ? 8 : 4; }

static int set(Object* object, int which, const void* buffer, size_t size, int bytes)
{
    if (size != bytes) return INVALID_VALUE;
    object->value[which] = 0;
    memcpy(&object->value[which], buffer, size);
    return OK;
}

static int get(const Object* object, int which, void* buffer, size_t size, size_t* written, int bytes)
{
    *written = bytes;
    if (size == bytes) memcpy(buffer, &object->value[which], size);
    return size && size != bytes ? INVALID_VALUE : OK;
}

static int make(Object** object)
{
    *object = calloc(1, sizeof(Object));
    return OK;
}

#define ATTRIBUTES(name, bytes)                                                                                      \
    int cublasLt##name##SetAttribute(Object* o, int which, const void* buffer, size_t size)                          \
    {                                                                                                                \
        return set(o, which, buffer, size, bytes(which));                                                            \
    }                                                                                                                \
    int cublasLt##name##GetAttribute(const Object* o, int which, void* buffer, size_t size, size_t* written)         \
    {                                                                                                                \
        return get(o, which, buffer, size, written, bytes(which));                                                   \
    }                                                                                                                \
    int cublasLt##name##Destroy(Object* o)                                                                           \
    {                                                                                                                \
        free(o);                                                                                                     \
        return OK;                                                                                                   \
    }
ATTRIBUTES(MatmulDesc, operation_bytes)
ATTRIBUTES(MatrixLayout, layout_bytes)
ATTRIBUTES(MatmulPreference, preference_bytes)

size_t cublasLtGetVersion(void) { return 130100; }
const char* cublasLtGetStatusString(int status) { return status == INVALID_VALUE ? "against the rules" : "a status"; }
const char* cublasLtGetStatusName(int status) { return "STAND_IN_STATUS"; }
int cublasLtCreate(Object** handle) { return make(handle); }
int cublasLtDestroy(Object* handle) { free(handle); return OK; }
int cublasLtMatmulPreferenceCreate(Object** preference) { return make(preference); }

int cublasLtMatmulDescCreate(Object** operation, int compute, int scale_type)
{
    make(operation);
    (*operation)->value[0] = compute, (*operation)->value[1] = scale_type;
    (*operation)->value[EPILOGUE] = 1, (*operation)->value[BIAS_TYPE] = (uint32_t)-1;
    return OK;
}

int cublasLtMatrixLayoutCreate(Object** layout, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    make(layout);
    **layout = (Object){{type, 0, rows, cols, ld, 1}};
    return OK;
}

int cublasLtMatmulAlgoInit(void* h, int compute, int scale_type, int a, int b, int c, int d, int id, Algo* algo)
{
    if (id != 1) return NOT_SUPPORTED;
    *algo = (Algo){{id}, {a, b, c, d}};
    return OK;
}

int cublasLtMatmulAlgoConfigSetAttribute(Algo* algo, int which, const void* buffer, size_t size)
{
    if (which == 0 || size != (which > 6 ? 2 : 4)) return INVALID_VALUE;
    memcpy(&algo->value[which], buffer, size);
    return OK;
}

int cublasLtMatmulAlgoConfigGetAttribute(const Algo* algo, int which, void* buffer, size_t size, size_t* written)
{
    *written = which > 6 ? 2 : 4;
    if (size) memcpy(buffer, &algo->value[which], size);
    return OK;
}

int cublasLtMatmulAlgoCapGetAttribute(const Algo* algo, int which, void* buffer, size_t size, size_t* written)
{
    return INVALID_VALUE;
}

static int are_types_legal(const Object* o, const Object* a, const Object* b, const Object* c, const Object* d)
{
    const uint64_t left = a->value[TYPE], right = b->value[TYPE], out = d->value[TYPE];
    if (!is_narrow(left) || !is_narrow(right) || (left == E5M2 && right == E5M2)) return 0;
    if (out == E5M2 && left == E4M3 && right == E4M3) return 0;
    return c->value[TYPE] == (is_narrow(out) ? R_16BF : out) && o->value[TRANSA] == 1 && o->value[TRANSB] == 0;
}

int cublasLtMatmulAlgoCheck(void* h, Object* o, Object* a, Object* b, Object* c, Object* d, Algo* algo, Result* result)
{
    const uint32_t types[] = {a->value[TYPE], b->value[TYPE], c->value[TYPE], d->value[TYPE]};
    if (!are_types_legal(o, a, b, c, d)) return NOT_SUPPORTED;
    if (memcmp(types, algo->types, sizeof types)) return INVALID_VALUE;
    *result = (Result){*algo, 0, OK, 1.0f};
    return OK;
}

int cublasLtMatmulAlgoGetHeuristic(void* h, Object* o, Object* a, Object* b, Object* c, Object* d, Object* preference,
                                   int count, Result* results, int* found)
{
    *found = are_types_legal(o, a, b, c, d);
    /* The real one looks for kernels that take scales only where there are some. */
    if (!o->value[A_SCALE] || !o->value[B_SCALE] || !o->value[D_SCALE] != !is_narrow(d->value[TYPE])) return NOT_SUPPORTED;
    if (*found) results[0] = (Result){{{1}}, 0, OK, 1.0f};
    return *found ? OK : NOT_SUPPORTED;
}

int cublasLtMatmul(void* h, const Object* o, const float* alpha, const void* A, const Object* a, const void* B,
                   const Object* b, const float* beta, const void* C, const Object* c, void* D, const Object* d,
                   const Algo* algo, void* workspace, size_t size, void* stream)
{
    const uint64_t out = d->value[TYPE], epilogue = o->value[EPILOGUE];
    const uint32_t given = o->value[BIAS_TYPE], wanted = is_narrow(out) || out == R_32F ? R_16BF : out;
    const uint32_t bias_type = given == (uint32_t)-1 ? out : given;
    if (!are_types_legal(o, a, b, c, d)) return NOT_SUPPORTED;
    if (o->value[D_SCALE] && !is_narrow(out)) return INVALID_VALUE;
    if (*beta != 0 && !C) return INVALID_VALUE;
    if (C == D && memcmp(c, d, sizeof *c)) return INVALID_VALUE;
    if (epilogue & 4 && (!o->value[BIAS] || bias_type != wanted)) return INVALID_VALUE;
    const double factor = *alpha * scale(o, A_SCALE) * scale(o, B_SCALE);
    for (int64_t column = 0; column < d->value[COLS]; column++)
        for (int64_t row = 0; row < d->value[ROWS]; row++) {
            const int64_t from_a = row * a->value[LD], from_b = column * b->value[LD];
            double sum = 0;
            for (int64_t k = 0; k < a->value[ROWS]; k++)
                sum += load(a->value[TYPE], A, from_a + k) * load(b->value[TYPE], B, from_b + k);
            sum *= factor;
            if (*beta != 0) sum += *beta * load(c->value[TYPE], C, row + column * c->value[LD]);
            if (epilogue & 4) sum += load(bias_type, (const void*)o->value[BIAS], row);
            if (epilogue & 2) sum = sum > 0 ? sum : 0;
            store(out, D, row + column * d->value[LD], sum * scale(o, D_SCALE));
        }
    return OK;
}
