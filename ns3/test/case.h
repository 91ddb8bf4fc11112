// SPDX-License-Identifier: GPL-2.0-only
// Test cases. Each runs in a process of its own, because ns-3 keeps its nodes and default values in globals.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace test {

struct Case {
    std::string name;
    void (*run)();
};

inline std::vector<Case>& Cases()
{
    static std::vector<Case> cases;
    return cases;
}

struct Registration {
    Registration(const char* name, void (*run)()) { Cases().push_back({name, run}); }
};

// Ends the case.
[[noreturn]] inline void Fail(const char* file, int line, const std::string& what)
{
    std::cerr << file << ':' << line << ": " << what << std::endl;
    std::exit(1);
}

} // namespace test

#define CASE(name)                                                                                                     \
    static void name();                                                                                                \
    static const test::Registration registered_##name(#name, name);                                                    \
    static void name()

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            test::Fail(__FILE__, __LINE__, #condition " does not hold");                                               \
    } while (0)

// Both values are printed.
#define EXPECT_OF(left, relation, right)                                                                               \
    do {                                                                                                               \
        const auto leftValue = (left);                                                                                 \
        const auto rightValue = (right);                                                                               \
        if (!(leftValue relation rightValue))                                                                          \
            test::Fail(__FILE__, __LINE__,                                                                             \
                       #left " " #relation " " #right " does not hold: " + std::to_string(leftValue) + " and " +       \
                           std::to_string(rightValue));                                                                \
    } while (0)
