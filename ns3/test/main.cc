// SPDX-License-Identifier: GPL-2.0-only
// Runs the cases. usage: tests [TEXT]: only those with this text in their name.
#include "case.h"

#include <chrono>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>

namespace {

bool Succeeds(const test::Case& one)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        one.run();
        std::exit(0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

int main(int argc, char** argv)
{
    const std::string wanted = argc > 1 ? argv[1] : "";
    int passed = 0, failed = 0;
    for (const test::Case& one : test::Cases()) {
        if (one.name.find(wanted) == std::string::npos)
            continue;
        const auto begun = std::chrono::steady_clock::now();
        const bool isGood = Succeeds(one);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
        std::printf("test %s ... %s (%.1f s)\n", one.name.c_str(), isGood ? "ok" : "FAILED", took.count());
        (isGood ? passed : failed)++;
    }
    // The form of cargo's, which scripts/test.sh sums up.
    std::printf("test result: %s. %d passed; %d failed; 0 ignored\n", failed ? "FAILED" : "ok", passed, failed);
    return failed != 0 || passed == 0;
}
