/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of 128 bits, which BPF does not have: products of two words, and their quotients by Knuth's algorithm D (The
 * Art of Computer Programming, volume 2, section 4.3.1) with digits of 32 bits. There are no loops, because a verifier
 * follows each of them to its end.
 */
#pragma once

#include "types.h"

struct cc_wide {
	u64 high;
	u64 low;
};

#define CC_HALF 0xffffffffULL

CC_INLINE struct cc_wide cc_wide_product(u64 a, u64 b)
{
	u64 low_low = (a & CC_HALF) * (b & CC_HALF);
	u64 low_high = (a & CC_HALF) * (b >> 32);
	u64 high_low = (a >> 32) * (b & CC_HALF);
	u64 middle = (low_low >> 32) + (low_high & CC_HALF) + (high_low & CC_HALF);
	struct cc_wide product;
	product.low = a * b;
	product.high = (a >> 32) * (b >> 32) + (low_high >> 32) + (high_low >> 32) + (middle >> 32);
	return product;
}

/* `a * b`, which must fit. */
CC_INLINE struct cc_wide cc_wide_scaled(struct cc_wide a, u64 b)
{
	struct cc_wide product = cc_wide_product(a.low, b);
	product.high += a.high * b;
	return product;
}

CC_INLINE struct cc_wide cc_wide_plus(struct cc_wide a, u64 b)
{
	struct cc_wide sum = { a.high + (a.low + b < a.low), a.low + b };
	return sum;
}

CC_INLINE struct cc_wide cc_wide_minus(struct cc_wide a, struct cc_wide b)
{
	struct cc_wide difference = { a.high - b.high - (a.low < b.low), a.low - b.low };
	return difference;
}

CC_INLINE struct cc_wide cc_wide_shifted_right_16(struct cc_wide a)
{
	struct cc_wide shifted = { a.high >> 16, a.high << 48 | a.low >> 16 };
	return shifted;
}

CC_INLINE int cc_wide_exceeds(struct cc_wide a, struct cc_wide b)
{
	return a.high > b.high || (a.high == b.high && a.low > b.low);
}

/* Whether `a * b` exceeds `c * d`. */
CC_RULE u64 cc_product_exceeds(u64 a, u64 b, u64 c, u64 d)
{
	return cc_wide_exceeds(cc_wide_product(a, b), cc_wide_product(c, d));
}

/* Number of zero bits above the highest one; 63 for zero. */
CC_INLINE u64 cc_leading_zeros(u64 a)
{
	u64 zeros = 0;
	if (!(a >> 32)) { zeros += 32; a <<= 32; }
	if (!(a >> 48)) { zeros += 16; a <<= 16; }
	if (!(a >> 56)) { zeros += 8; a <<= 8; }
	if (!(a >> 60)) { zeros += 4; a <<= 4; }
	if (!(a >> 62)) { zeros += 2; a <<= 2; }
	return a >> 63 ? zeros : zeros + 1;
}

/* The next quotient digit of 32 bits, for `rest * 2^32 + next` by a normalised divisor; `rest` is below it. */
CC_INLINE u64 cc_quotient_digit(u64 rest, u64 next, u64 divisor)
{
	u64 high = divisor >> 32, low = divisor & CC_HALF;
	u64 digit = rest / high, left = rest % high;
	if (digit > CC_HALF || digit * low > (left << 32 | next)) {
		digit -= 1;
		left += high;
		if (left <= CC_HALF && (digit > CC_HALF || digit * low > (left << 32 | next)))
			digit -= 1;
	}
	return digit;
}

/* `(high * 2^64 + low) / divisor`, rounded down; `high` must be below the divisor. */
CC_RULE u64 cc_wide_quotient(u64 high, u64 low, u64 divisor)
{
	u64 shift = cc_leading_zeros(divisor);
	u64 rest = high << shift | (low >> 1) >> (63 - shift);
	u64 first, second;
	divisor <<= shift;
	low <<= shift;
	first = cc_quotient_digit(rest, low >> 32, divisor);
	rest = (rest << 32 | low >> 32) - first * divisor;
	second = cc_quotient_digit(rest, low & CC_HALF, divisor);
	return (first << 32) + second;
}

/*
 * `a / b / 2^shift`, rounded down and at most the largest word; a divisor of zero counts as one. `shift` is below 64.
 */
CC_RULE u64 cc_wide_ratio(u64 a_high, u64 a_low, u64 b_high, u64 b_low, u64 shift)
{
	struct cc_wide a = { a_high, a_low }, b = { b_high, b_low };
	u64 high, low, zeros;
	if (!b_high) {
		b_low = b_low ? b_low : 1;
		high = a_high / b_low;
		low = cc_wide_quotient(a_high % b_low, a_low, b_low);
		if (high >> shift)
			return ~0ULL;
		return (high << 1) << (63 - shift) | low >> shift;
	}
	/* The quotient has one word. An estimate from the divisor's upper 64 bits is at most one too large. */
	zeros = cc_leading_zeros(b_high);
	low = cc_wide_quotient(a_high >> 1, a_high << 63 | a_low >> 1, b_high << zeros | (b_low >> 1) >> (63 - zeros));
	low >>= 63 - zeros;
	low -= low > 0;
	if (!cc_wide_exceeds(b, cc_wide_minus(a, cc_wide_scaled(b, low))))
		low += 1;
	return low >> shift;
}
