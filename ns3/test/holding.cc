// SPDX-License-Identifier: GPL-2.0-only
// Relays that hold data until the destination wants them.
#include "case.h"

#include "../examples/selection.h"

using namespace ns3;

namespace {

void Note(const selection::Network* network, uint64_t* most)
{
    uint64_t held = 0;
    for (const auto& agent : network->agents)
        held += agent->GetHeldBytes();
    *most = std::max(*most, held);
    Simulator::Schedule(MilliSeconds(10), &Note, network, most);
}

// Downloads over links of unequal rates; returns the most octets that relays held together.
uint64_t MostHeld(const std::string& relays, const std::string& forwarding)
{
    selection::Setup setup;
    setup.agents = R"({"cooperation": {"relays": ")" + relays + R"(", "forwarding": )" + forwarding + "}}";
    setup.rates = {"1Mbps", "3Mbps"};
    setup.seconds = 15;
    selection::Network network(setup);
    uint64_t most = 0;
    Simulator::Schedule(MilliSeconds(10), &Note, &network, &most);
    EXPECT_OF(network.Run() * 8e-6 / setup.seconds, >, 1.5);
    Simulator::Destroy();
    return most;
}

} // namespace

CASE(relays_that_route_hold_what_the_destination_does_not_want_yet)
{
    EXPECT_OF(MostHeld("ip", R"({"range_packets": 40})"), >, 10'000U);
    EXPECT_OF(MostHeld("ip", R"({"range_packets": 40, "hold_buffer": "0 B"})"), ==, 0U);
}

CASE(relays_that_acknowledge_at_once_hold_what_the_destination_does_not_want_yet)
{
    EXPECT_OF(MostHeld("fast-ack", R"({"range_packets": 40})"), >, 10'000U);
}
