// SPDX-License-Identifier: GPL-2.0-only
// MPTCP over several paths.
#include "case.h"
#include "network.h"

#include "../module/install.h"
#include "../module/socket-factory.h"
#include "../module/socket.h"

#include "ns3/bulk-send-application.h"
#include "ns3/core-module.h"
#include "ns3/node.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

using namespace ns3;
using test::Network;

namespace {

// The statistics of the connection of the first application on host 0.
std::string Statistics(const Network& network)
{
    const auto source = DynamicCast<BulkSendApplication>(network.hosts.Get(0)->GetApplication(0));
    return DynamicCast<anabranch::Socket>(source->GetSocket())->GetStatistics();
}

double MbitPerS(const test::Stream& stream)
{
    return stream.sink->GetTotalRx() * 8e-6 / stream.lastAtS;
}

test::Stream& Run(Network& network, uint64_t bytes, double seconds)
{
    anabranch::Install(network.hosts);
    test::Stream& stream = test::Send(network, bytes, anabranch::SOCKETS, anabranch::SOCKETS);
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    return stream;
}

} // namespace

CASE(two_paths_carry_together)
{
    Network network{{"10Mbps", "10ms"}, {"5Mbps", "20ms"}};
    const test::Stream& stream = Run(network, 0, 10);
    EXPECT_OF(test::Count(Statistics(network), "\"established_at_ns\":"), >=, 2U);
    EXPECT_OF(MbitPerS(stream), >, 13.0);
    EXPECT_OF(MbitPerS(stream), <, 15.0);
}

CASE(one_path_carries_alone)
{
    Network network{{"10Mbps", "10ms"}};
    const test::Stream& stream = Run(network, 0, 10);
    EXPECT_OF(MbitPerS(stream), >, 9.0);
    EXPECT_OF(MbitPerS(stream), <, 10.0);
}

CASE(losses_are_repaired)
{
    Network network{{"10Mbps", "10ms", 0.01}, {"5Mbps", "20ms", 0.02}};
    EXPECT_OF(Run(network, 5'000'000, 120).sink->GetTotalRx(), ==, 5'000'000U);
}

CASE(a_path_that_goes_down_is_left)
{
    Network network{{"10Mbps", "10ms"}, {"10Mbps", "10ms"}};
    Simulator::Schedule(Seconds(1), [&network] { network.Cut(0); });
    const test::Stream& stream = Run(network, 5'000'000, 60);
    EXPECT_OF(stream.sink->GetTotalRx(), ==, 5'000'000U);
    EXPECT_OF(stream.lastAtS, <, 6.0);
}

CASE(a_backup_carries_nothing_while_the_other_path_works)
{
    Network network{{"10Mbps", "10ms"}, {"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    anabranch::HostOf(network.hosts.Get(0))->SetBackup(network.Address(0, 1));
    test::Stream& stream = test::Send(network, 0, anabranch::SOCKETS, anabranch::SOCKETS);
    Simulator::Stop(Seconds(5));
    Simulator::Run();
    // Towards both addresses of the peer.
    EXPECT_OF(test::Count(Statistics(network), "\"backup\":true"), ==, 2U);
    EXPECT_OF(test::Count(Statistics(network), "\"sent_bytes\":0"), ==, 2U);
    EXPECT_OF(MbitPerS(stream), >, 8.0);
    EXPECT_OF(MbitPerS(stream), <, 10.0);
}

CASE(a_log_has_the_windows_of_all_subflows)
{
    const std::string prefix = "/tmp/anabranch-ns3-test-" + std::to_string(getpid());
    Config::SetDefault("anabranch::Host::Log", StringValue(prefix));
    Network network{{"10Mbps", "10ms"}, {"5Mbps", "20ms"}};
    Run(network, 1'000'000, 10);
    Simulator::Destroy();
    const std::string name = prefix + "-0.sqlog";
    std::ifstream file(name);
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    std::remove(name.c_str());
    std::remove((prefix + "-1.sqlog").c_str());
    EXPECT_OF(test::Count(log, "\"mptcp:subflow_established\""), ==, 4U);
    EXPECT_OF(test::Count(log, "\"congestion_window\""), >, 10U);
}

namespace {

// The last window of each subflow, and how often it changed.
struct Windows {
    std::map<uint16_t, uint64_t> last, changes;
};

void NoteWindow(Windows* windows, uint16_t subflow, uint64_t before, uint64_t after)
{
    EXPECT_OF(before, ==, windows->last[subflow]);
    EXPECT_OF(before, !=, after);
    windows->last[subflow] = after;
    windows->changes[subflow]++;
}

} // namespace

CASE(congestion_windows_are_traced)
{
    Network network{{"10Mbps", "10ms", 0.01}, {"5Mbps", "20ms"}};
    anabranch::Install(network.hosts);
    test::Send(network, 0, anabranch::SOCKETS, anabranch::SOCKETS);
    Windows windows;
    Simulator::Schedule(Seconds(0.1), [&] {
        const auto source = DynamicCast<BulkSendApplication>(network.hosts.Get(0)->GetApplication(0));
        const Ptr<ns3::Socket> socket = source->GetSocket();
        EXPECT(socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&NoteWindow, &windows)));
    });
    Simulator::Stop(Seconds(10));
    Simulator::Run();
    const std::string statistics = Statistics(network);
    EXPECT_OF(windows.last.size(), ==, 4U);
    for (const auto& [subflow, bytes] : windows.last) {
        EXPECT_OF(windows.changes[subflow], >, 10U);
        EXPECT_OF(test::Count(statistics, "\"cwnd_bytes\":" + std::to_string(bytes)), >=, 1U);
    }
}

CASE(settings_choose_the_controller_and_turn_mptcp_off)
{
    Config::SetDefault("anabranch::Socket::Settings", StringValue(R"({"congestion": "cubic", "mptcp": false})"));
    Network network{{"10Mbps", "10ms"}, {"10Mbps", "10ms"}};
    const test::Stream& stream = Run(network, 0, 5);
    EXPECT_OF(MbitPerS(stream), <, 10.0);
    EXPECT_OF(MbitPerS(stream), >, 8.0);
}

namespace {

std::string Outcome(uint64_t run)
{
    RngSeedManager::SetRun(run);
    Network network{{"10Mbps", "10ms", 0.01}, {"5Mbps", "20ms", 0.01}};
    anabranch::Install(network.hosts);
    test::Send(network, 1'000'000, anabranch::SOCKETS, anabranch::SOCKETS);
    Simulator::Stop(Seconds(30));
    Simulator::Run();
    return Statistics(network);
}

// Runs it in a process of its own: streams are numbered on within one.
std::string OutcomeAlone(uint64_t run)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    if (fork() == 0) {
        const std::string outcome = Outcome(run);
        const ssize_t written = write(ends[1], outcome.data(), outcome.size());
        std::_Exit(written != static_cast<ssize_t>(outcome.size()));
    }
    close(ends[1]);
    std::string outcome;
    char piece[4096];
    for (ssize_t length = 0; (length = read(ends[0], piece, sizeof piece)) > 0;)
        outcome.append(piece, static_cast<size_t>(length));
    close(ends[0]);
    int status = 1;
    EXPECT(wait(&status) > 0 && status == 0);
    return outcome;
}

} // namespace

CASE(a_run_is_a_function_of_its_number)
{
    const std::string one = OutcomeAlone(1);
    EXPECT(test::Number(one, "acked_bytes") > 0);
    EXPECT(OutcomeAlone(1) == one);
    EXPECT(OutcomeAlone(2) != one);
}

CASE(a_node_may_have_settings_of_its_own)
{
    Network network{{"10Mbps", "10ms"}, {"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    network.hosts.Get(0)->GetObject<anabranch::SocketFactory>()->SetAttribute("Settings",
                                                                              StringValue(R"({"mptcp": false})"));
    test::Send(network, 1'000'000, anabranch::SOCKETS, anabranch::SOCKETS);
    Simulator::Stop(Seconds(10));
    Simulator::Run();
    EXPECT_OF(test::Count(Statistics(network), "\"mptcp\":false"), ==, 1U);
}
