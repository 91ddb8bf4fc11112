// SPDX-License-Identifier: GPL-2.0-only
// The engine and ns-3's own TCP, which knows nothing of MPTCP: connections fall back to plain TCP.
#include "case.h"
#include "network.h"

#include "../module/install.h"

#include "ns3/core-module.h"
#include "ns3/node.h"

using namespace ns3;
using test::Network;

namespace {

constexpr uint64_t BYTES = 3'000'000;
constexpr const char* NS3 = "ns3::TcpSocketFactory";

test::Stream& Run(Network& network, const char* from, const char* to)
{
    test::Stream& stream = test::Send(network, BYTES, from, to);
    Simulator::Stop(Seconds(60));
    Simulator::Run();
    return stream;
}

} // namespace

CASE(ns3_tcp_sends_to_the_engine)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts.Get(1));
    EXPECT_OF(Run(network, NS3, anabranch::SOCKETS).sink->GetTotalRx(), ==, BYTES);
}

CASE(the_engine_sends_to_ns3_tcp)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts.Get(0));
    const test::Stream& stream = Run(network, anabranch::SOCKETS, NS3);
    EXPECT_OF(stream.sink->GetTotalRx(), ==, BYTES);
    // 2.4 s at the rate of the link, with headers 2.5 s.
    EXPECT_OF(stream.lastAtS, <, 3.2);
}

CASE(both_ways_with_losses)
{
    for (const auto& [from, to] : {std::pair(NS3, anabranch::SOCKETS), std::pair(anabranch::SOCKETS, NS3)}) {
        Network network{{"10Mbps", "10ms", 0.01}};
        anabranch::Install(network.hosts.Get(from == NS3 ? 1 : 0));
        EXPECT_OF(Run(network, from, to).sink->GetTotalRx(), ==, BYTES);
        Simulator::Destroy();
    }
}

CASE(checksums_that_ns3_computes_are_right)
{
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
    for (const auto& [from, to] : {std::pair(NS3, anabranch::SOCKETS), std::pair(anabranch::SOCKETS, NS3)}) {
        Network network{{"10Mbps", "10ms"}};
        anabranch::Install(network.hosts.Get(from == NS3 ? 1 : 0));
        EXPECT_OF(Run(network, from, to).sink->GetTotalRx(), ==, BYTES);
        Simulator::Destroy();
    }
}
