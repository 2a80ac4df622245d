/*
 * Doubles from decimal text and to it, exactly.
 *
 * Both directions compare integers of as many bits as it takes (a few thousand), so there is nothing to prove about
 * rounding errors and nothing that a locale could change. Reading: the decimal is the fraction D / 10^k of two
 * integers; 64 bits of the quotient and whether anything is left are enough to round correctly. Printing: Steele and
 * White's generation of the fewest digits (1990), with the ends of the interval taken in when the significand is even,
 * as reading rounds ties to even. What is small goes past all that: a significand below 2^53 and a power of ten up to
 * 10^22 are exact doubles, so one division or product of them is rounded once (Clinger 1990).
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include "formats/json/json.h"
#include "formats/json/json_scan.h"

/* Digits beyond these can't change the rounding except by being there: the longest exact midpoint has 767 of them. */
#define DIGITS_MAX 768
/* 10^(768 + 343) takes 3691 bits, 2^1075 * 10^17 fewer; shifts add 64 at most, twice. */
#define LIMBS_MAX 128

struct big {
    size_t n; /* limbs in use; the highest is not 0 */
    uint32_t limb[LIMBS_MAX];
};

/* ---- integers of many limbs ---- */

static void
big_set(struct big *a, uint64_t value)
{
    a->n = 0;
    for (; value != 0; value >>= 32)
        a->limb[a->n++] = (uint32_t)value;
}

/* a = a * factor + add */
static void
big_mul_add(struct big *a, uint32_t factor, uint32_t add)
{
    uint64_t carry = add;
    for (size_t i = 0; i < a->n; i++) {
        carry += (uint64_t)a->limb[i] * factor;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0)
        a->limb[a->n++] = (uint32_t)carry;
}

static void
big_mul_pow10(struct big *a, unsigned exponent)
{
    for (; exponent >= 9; exponent -= 9)
        big_mul_add(a, 1000000000, 0);
    for (; exponent > 0; exponent--)
        big_mul_add(a, 10, 0);
}

static void
big_shift_left(struct big *a, unsigned bits)
{
    unsigned limbs = bits / 32;
    unsigned rest = bits % 32;
    if (a->n == 0)
        return;
    if (rest != 0)
        big_mul_add(a, (uint32_t)1 << rest, 0);
    if (limbs != 0) {
        memmove(a->limb + limbs, a->limb, a->n * sizeof a->limb[0]);
        memset(a->limb, 0, limbs * sizeof a->limb[0]);
        a->n += limbs;
    }
}

static unsigned
big_bits(const struct big *a)
{
    if (a->n == 0)
        return 0;
    unsigned bits = (unsigned)(a->n - 1) * 32;
    for (uint32_t top = a->limb[a->n - 1]; top != 0; top >>= 1)
        bits++;
    return bits;
}

static int
big_compare(const struct big *a, const struct big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (size_t i = a->n; i-- > 0;) {
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    }
    return 0;
}

static void
big_trim(struct big *a)
{
    while (a->n > 0 && a->limb[a->n - 1] == 0)
        a->n--;
}

/* a = a - b * factor, which must not be negative */
static void
big_sub_mul(struct big *a, const struct big *b, uint32_t factor)
{
    uint64_t borrow = 0;
    for (size_t i = 0; i < a->n; i++) {
        uint64_t take = borrow + (i < b->n ? (uint64_t)b->limb[i] * factor : 0);
        uint32_t low = (uint32_t)take;
        borrow = (take >> 32) + (a->limb[i] < low);
        a->limb[i] -= low;
    }
    big_trim(a);
}

static void
big_add(struct big *a, const struct big *b)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < b->n || carry != 0; i++) {
        if (i == a->n)
            a->limb[a->n++] = 0;
        carry += (uint64_t)a->limb[i] + (i < b->n ? b->limb[i] : 0);
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/*
 * a = a mod b; returns the quotient, which must be below 2^32. The top limb of b has its top bit set: then the estimate
 * from the two highest limbs of a, less than what b's lower limbs can take from it, is at most 2 too small.
 */
static uint32_t
big_div_digit(struct big *a, const struct big *b)
{
    if (a->n < b->n)
        return 0;
    uint64_t high = a->limb[b->n - 1] | (a->n > b->n ? (uint64_t)a->limb[b->n] << 32 : 0);
    uint64_t estimate = high / ((uint64_t)b->limb[b->n - 1] + 1);
    big_sub_mul(a, b, (uint32_t)estimate);
    while (big_compare(a, b) >= 0) {
        big_sub_mul(a, b, 1);
        estimate++;
    }
    return (uint32_t)estimate;
}

/* ---- reading ---- */

struct decimal {
    bool is_negative;
    bool is_sticky;   /* digits that are not 0 behind those kept */
    int64_t exponent; /* of the last kept digit */
    size_t n;         /* kept digits, the first not 0; 0: the value is 0 */
    uint64_t small;   /* their value when n <= 19 */
    unsigned char digit[DIGITS_MAX];
};

static void
decimal_add_digit(struct decimal *d, unsigned digit, bool is_fraction)
{
    if (d->n == 0 && digit == 0) {
        d->exponent -= is_fraction;
    } else if (d->n < DIGITS_MAX) {
        if (d->n < 19)
            d->small = d->small * 10 + digit;
        d->digit[d->n++] = (unsigned char)digit;
        d->exponent -= is_fraction;
    } else {
        d->is_sticky |= digit != 0;
        d->exponent += !is_fraction;
    }
}

/* A number of JSON's grammar, already checked. */
static void
decimal_read(struct decimal *d, struct pawl_str text)
{
    /* the exponent of a text is bounded, so that sums can't wrap; beyond it every value is 0 or out of range anyway */
    const int64_t exponent_max = INT64_C(1) << 50;
    const char *at = text.data;
    const char *end = text.data + text.len;

    d->is_negative = d->is_sticky = false;
    d->exponent = 0;
    d->n = 0;
    d->small = 0;
    if (at != end && *at == '-') {
        d->is_negative = true;
        at++;
    }
    for (; at != end && pawl_json_is_digit((unsigned char)*at); at++)
        decimal_add_digit(d, (unsigned)(*at - '0'), false);
    if (at != end && *at == '.') {
        for (at++; at != end && pawl_json_is_digit((unsigned char)*at); at++)
            decimal_add_digit(d, (unsigned)(*at - '0'), true);
    }
    if (at != end && (*at == 'e' || *at == 'E')) {
        at++;
        bool is_minus = at != end && *at == '-';
        if (at != end && (*at == '-' || *at == '+'))
            at++;
        int64_t exponent = 0;
        for (; at != end && pawl_json_is_digit((unsigned char)*at); at++) {
            if (exponent < exponent_max)
                exponent = exponent * 10 + (*at - '0');
        }
        d->exponent += is_minus ? -exponent : exponent;
    }
}

/* The significand times 2^exponent, `bits` 64 bits with the top or the next one set, rounded to nearest, ties to even. */
static double
round_bits(uint64_t bits, int exponent, bool is_sticky)
{
    if ((bits >> 63) == 0) {
        bits <<= 1;
        exponent--;
    }
    /* now 2^63 <= bits: value in [2^(exponent+63), 2^(exponent+64)); below 2^-1022 fewer bits than 53 are left */
    int drop = 11;
    if (exponent + drop < -1074)
        drop = -1074 - exponent;
    if (drop > 64)
        return 0.0;
    uint64_t kept = drop == 64 ? 0 : bits >> drop;
    uint64_t half = UINT64_C(1) << (drop - 1);
    uint64_t rest = drop == 64 ? bits : bits & ((half << 1) - 1);
    if (rest > half || (rest == half && (is_sticky || (kept & 1) != 0)))
        kept++;
    return ldexp((double)kept, exponent + drop); /* exact, or infinity */
}

static double
decimal_to_double_exact(const struct decimal *d)
{
    struct big num;
    struct big den;

    big_set(&num, 0);
    for (size_t i = 0; i < d->n; i++)
        big_mul_add(&num, 10, d->digit[i]);
    big_set(&den, 1);
    if (d->exponent >= 0)
        big_mul_pow10(&num, (unsigned)d->exponent);
    else
        big_mul_pow10(&den, (unsigned)-d->exponent);

    /* den to a whole number of limbs, and num to one bit less: 1/4 < num / den < 1 */
    unsigned den_bits = big_bits(&den);
    unsigned den_shift = (32 - den_bits % 32) % 32;
    big_shift_left(&den, den_shift);
    den_bits += den_shift;
    int scale = -(int)den_shift;
    unsigned num_bits = big_bits(&num);
    if (num_bits < den_bits) {
        big_shift_left(&num, den_bits - 1 - num_bits);
        scale += (int)(den_bits - 1 - num_bits);
    } else {
        unsigned more = (num_bits + 1 - den_bits + 31) / 32 * 32; /* whole limbs: den stays normalised */
        big_shift_left(&den, more);
        big_shift_left(&num, den_bits + more - 1 - num_bits);
        scale += (int)(den_bits - 1) - (int)num_bits;
    }
    big_shift_left(&num, 32);
    uint64_t bits = (uint64_t)big_div_digit(&num, &den) << 32;
    big_shift_left(&num, 32);
    bits |= big_div_digit(&num, &den);
    return round_bits(bits, -64 - scale, num.n != 0 || d->is_sticky);
}

#if FLT_EVAL_METHOD == 0
static const double POW10[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
#endif

static double
decimal_to_double(const struct decimal *d)
{
    if (d->n == 0)
        return 0.0;
    int64_t lead = d->exponent + (int64_t)d->n; /* the value is below 10^lead, and not below 10^(lead-1) */
    if (lead > 310)
        return (double)INFINITY;
    if (lead < -323)
        return 0.0; /* below 10^-324, which is less than half of the smallest double */
#if FLT_EVAL_METHOD == 0
    if (d->n <= 19 && d->small <= UINT64_C(1) << 53 && d->exponent >= -22 && d->exponent <= 22) {
        double value = (double)d->small;
        return d->exponent < 0 ? value / POW10[-d->exponent] : value * POW10[d->exponent];
    }
#endif
    return decimal_to_double_exact(d);
}

double
pawl_json_f64(struct pawl_str number)
{
    struct decimal d;
    if (pawl_str_equal(number, PAWL_STR("NaN")))
        return (double)NAN;
    if (pawl_str_equal(number, PAWL_STR("Infinity")))
        return (double)INFINITY;
    if (pawl_str_equal(number, PAWL_STR("-Infinity")))
        return -(double)INFINITY;
    decimal_read(&d, number);
    double value = decimal_to_double(&d);
    return d.is_negative ? -value : value;
}

bool
pawl_json_is_in_range(struct pawl_str number)
{
    struct decimal d;
    decimal_read(&d, number);
    int64_t lead = d.exponent + (int64_t)d.n;
    if (d.n == 0 || lead <= 308)
        return true;
    return lead <= 309 && !isinf(decimal_to_double(&d));
}

/* ---- printing ---- */

/* value = significand * 2^exponent; value is finite and above 0 */
static void
split(double value, uint64_t *ret_significand, int *ret_exponent)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int biased = (int)(bits >> 52 & 0x7ff);
    *ret_significand = biased == 0 ? fraction : fraction | UINT64_C(1) << 52;
    *ret_exponent = biased == 0 ? -1074 : biased - 1075;
}

/*
 * The fewest digits that read back to the value, and of those the nearest: value is about 0.d1d2d3... * 10^point.
 * num / den is what is left of the value, scaled so that it is below 1; low / den and high / den are half the
 * distance to the neighbours below and above. One digit after the other, until what is left is within them.
 */
static size_t
shortest_digits(double value, char digits[20], int *ret_point)
{
    struct big num, den, low, high, sum;
    uint64_t significand;
    int exponent;

    split(value, &significand, &exponent);
    bool is_even = (significand & 1) == 0;
    /* at a power of two the neighbour below is half as far, but for the smallest, which has no closer one */
    bool is_lopsided = significand == UINT64_C(1) << 52 && exponent > -1074;

    big_set(&num, significand);
    big_set(&den, 1);
    big_set(&low, 1);
    unsigned one = is_lopsided ? 2 : 1; /* everything in units of half (a quarter of) the last bit */
    big_shift_left(&num, one + (exponent > 0 ? (unsigned)exponent : 0));
    big_shift_left(&den, one + (exponent < 0 ? (unsigned)-exponent : 0));
    big_shift_left(&low, exponent > 0 ? (unsigned)exponent : 0);
    high = low;
    if (is_lopsided)
        big_shift_left(&high, 1);

    /* log10(value), at most one too small: 0.30103 is a little more than log10(2), hence the 1e-9 and the check below */
    int bits = 0;
    for (uint64_t rest = significand; rest > 1; rest >>= 1)
        bits++;
    int point = (int)ceil((double)(bits + exponent) * 0.30102999566398119521 - 1e-9);
    if (point > 0) {
        big_mul_pow10(&den, (unsigned)point);
    } else {
        big_mul_pow10(&num, (unsigned)-point);
        big_mul_pow10(&low, (unsigned)-point);
        big_mul_pow10(&high, (unsigned)-point);
    }
    /* the value's upper end must be below 10^point, else the first digit would be 10 */
    sum = num;
    big_add(&sum, &high);
    int order = big_compare(&sum, &den);
    if (order > 0 || (order == 0 && is_even)) {
        point++;
        big_mul_add(&den, 10, 0);
    }
    unsigned shift = (32 - big_bits(&den) % 32) % 32;
    big_shift_left(&den, shift);
    big_shift_left(&num, shift);
    big_shift_left(&low, shift);
    big_shift_left(&high, shift);

    size_t n = 0;
    for (;;) {
        big_mul_add(&num, 10, 0);
        big_mul_add(&low, 10, 0);
        big_mul_add(&high, 10, 0);
        uint32_t digit = big_div_digit(&num, &den);
        order = big_compare(&num, &low);
        bool is_low = order < 0 || (order == 0 && is_even);
        sum = num;
        big_add(&sum, &high);
        order = big_compare(&sum, &den);
        bool is_high = order > 0 || (order == 0 && is_even);
        if (!is_low && !is_high) {
            digits[n++] = (char)('0' + digit);
            continue;
        }
        if (is_low && is_high) { /* both would do: the nearer, an exact half to even */
            sum = num;
            big_shift_left(&sum, 1);
            order = big_compare(&sum, &den);
            is_high = order > 0 || (order == 0 && (digit & 1) != 0);
        }
        digits[n++] = (char)('0' + digit + is_high);
        *ret_point = point;
        return n;
    }
}

/* A whole number below 2^53 has at most 16 digits, and they are the shortest: it needs no large integers. */
static size_t
print_small_integer(double value, char digits[20], int *ret_point)
{
    int n = snprintf(digits, 20, "%lld", (long long)value);
    *ret_point = n;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return (size_t)n;
}

size_t
pawl_json_print_f64(double value, char text[32])
{
    char digits[20] = "0";
    int point = 1;
    size_t n = 1;
    char *at = text;

    if (isnan(value))
        return (size_t)snprintf(text, 32, "NaN");
    if (signbit(value) != 0)
        *at++ = '-';
    value = fabs(value);
    if (isinf(value))
        return (size_t)(at - text) + (size_t)snprintf(at, 10, "Infinity");
    if (value >= 1 && value < 9007199254740992.0 && value == floor(value))
        n = print_small_integer(value, digits, &point);
    else if (value != 0)
        n = shortest_digits(value, digits, &point);

    if (point > 16 || point < -3) {
        *at++ = digits[0];
        if (n > 1) {
            *at++ = '.';
            memcpy(at, digits + 1, n - 1);
            at += n - 1;
        }
        int exponent = point - 1;
        return (size_t)(at - text) +
               (size_t)snprintf(at, 6, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
    }
    if (point <= 0) {
        memcpy(at, "0.000", 5);
        at += 2 - point;
        memcpy(at, digits, n);
        at += n;
    } else {
        size_t whole = (size_t)point;
        for (size_t i = 0; i < whole; i++)
            *at++ = i < n ? digits[i] : '0';
        *at++ = '.';
        if (n > whole) {
            memcpy(at, digits + whole, n - whole);
            at += n - whole;
        } else {
            *at++ = '0';
        }
    }
    *at = '\0';
    return (size_t)(at - text);
}
