/* Checks for test programs in C. */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "anabranch.h"

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__, #condition,               \
                    anabranch_last_error());                                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK(call) REQUIRE((call) == ANABRANCH_STATUS_OK)

static AnabranchAddress address(const char *text) {
    AnabranchAddress parsed;
    CHECK(anabranch_address_parse(text, &parsed));
    return parsed;
}

#endif
