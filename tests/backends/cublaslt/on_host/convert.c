/* Conversions that the kernels have as instructions; C, since g++ has no half type before its version 13. */
#include <math.h>
#include <string.h>

float half_to_float(unsigned short bits)
{
    _Float16 value;
    memcpy(&value, &bits, 2);
    return (float)value;
}

unsigned short float_to_half(float wide)
{
    const _Float16 value = (_Float16)wide;
    unsigned short bits;
    memcpy(&bits, &value, 2);
    return bits;
}

/* To the nearest, ties to even, and to the largest where it would be infinite. */
static unsigned char narrow(float value, int mantissa, int bias, int largest)
{
    const int sign = signbit(value) ? 0x80 : 0;
    const float size = fabsf(value);
    if (isnan(value)) return 0x7f;
    if (isinf(value)) return (unsigned char)(sign | largest);
    const int exponent = size == 0.0f || ilogbf(size) < 1 - bias ? 1 - bias : ilogbf(size);
    const int steps = (int)nearbyintf(ldexpf(size, mantissa - exponent));
    /* A number below the normal ones has no leading bit, and carries into the exponent like any other. */
    const int code = ((exponent + bias - 1) << mantissa) + steps;
    return (unsigned char)(sign | (code < largest ? code : largest));
}

unsigned short float_to_e4m3(float value) { return narrow(value, 3, 7, 0x7e); }
unsigned short float_to_e5m2(float value) { return narrow(value, 2, 15, 0x7b); }
