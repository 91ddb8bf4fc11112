// SPDX-License-Identifier: GPL-2.0-only
// The agent of a source: what relays report to it, and what follows from that.
#include "case.h"

#include "../examples/selection.h"

using namespace ns3;

namespace {

struct Reports {
    std::map<uint8_t, double> ratios;
    std::map<uint8_t, Time> delays;
    int callers = 0;

    explicit Reports(const selection::Network& network)
    {
        network.source->TraceConnectWithoutContext("Load", MakeCallback(&Reports::NoteLoad, this));
        network.source->TraceConnectWithoutContext("Delay", MakeCallback(&Reports::NoteDelay, this));
        network.source->TraceConnectWithoutContext("Caller", MakeCallback(&Reports::NoteCaller, this));
    }

    void NoteLoad(uint8_t path, double ratio) { ratios[path] = ratio; }
    void NoteDelay(uint8_t path, Time delay) { delays[path] = delay; }
    void NoteCaller(bool isPresent) { callers += isPresent ? 1 : -1; }

    double LargestRatio() const
    {
        double largest = 0;
        for (const auto& [path, ratio] : ratios)
            largest = std::max(largest, ratio);
        return largest;
    }
};

selection::Setup Setup(const std::string& cooperation)
{
    selection::Setup setup;
    setup.agents = R"({"cooperation": {)" + cooperation + "}}";
    setup.rates = {"3Mbps", "3Mbps"};
    setup.seconds = 15;
    setup.hasSource = true;
    return setup;
}

} // namespace

CASE(a_source_hears_how_crowded_links_are)
{
    selection::Setup setup = Setup(R"("bandwidth_sharing": {})");
    setup.owners = {{1, "2Mbps", 2.5}};
    selection::Network network(setup);
    const Reports reports(network);
    network.Run();
    EXPECT_OF(reports.callers, ==, 1);
    EXPECT_OF(reports.ratios.size(), ==, 2U);
    // What the owner wants over what is left of the link: 2.06 of 3 Mbit/s. The estimate is the highest recent rate.
    EXPECT_OF(reports.LargestRatio(), >, 2.0);
    EXPECT_OF(reports.LargestRatio(), <, 3.0);
    EXPECT_OF(reports.ratios.begin()->second + reports.ratios.rbegin()->second - reports.LargestRatio(), ==, 1.0);
    EXPECT(reports.delays.empty());
}

namespace {

// What the owner of relay 1 receives by TCP beside the download, Mbit/s.
double OwnersRate(selection::Setup setup)
{
    setup.relaysHaveEngines = true;
    setup.seconds = 30;
    selection::Network network(setup);
    const InetSocketAddress any(Ipv4Address::GetAny(), selection::OWNERS_PORT);
    const auto sink =
        DynamicCast<PacketSink>(PacketSinkHelper(anabranch::SOCKETS, any).Install(network.relays.Get(1)).Get(0));
    BulkSendHelper source(anabranch::SOCKETS, InetSocketAddress(network.LentBy(1), selection::OWNERS_PORT));
    source.SetAttribute("MaxBytes", UintegerValue(0));
    source.Install(network.server);
    network.Run();
    Simulator::Destroy();
    return sink->GetTotalRx() * 8e-6 / setup.seconds;
}

} // namespace

// The same controller, told that nobody competes, and that the owner wants ten times what is left.
CASE(a_source_yields_to_the_owners_of_relays)
{
    selection::Setup alone = Setup(R"("bandwidth_sharing": {})"), crowded = alone;
    alone.sockets = crowded.sockets = R"({"congestion": "mcc-coop"})";
    alone.relayAgents[1] = R"({"cooperation": {"bandwidth_sharing": {}}, "relay": {"rho": 1}})";
    crowded.relayAgents[1] = R"({"cooperation": {"bandwidth_sharing": {}}, "relay": {"rho": 10}})";
    const double beside = OwnersRate(alone);
    EXPECT_OF(OwnersRate(crowded), >, beside + 0.3);
}

CASE(a_source_hears_how_long_data_take_from_relays_that_acknowledge_at_once)
{
    selection::Setup setup = Setup(R"("relays": "fast-ack", "adaptive_congestion": {"relay_delays": true})");
    setup.localDelay = "40ms";
    selection::Network network(setup);
    const Reports reports(network);
    EXPECT_OF(network.Run() * 8e-6 / setup.seconds, >, 4.5);
    EXPECT_OF(reports.delays.size(), ==, 2U);
    for (const auto& [path, delay] : reports.delays) {
        EXPECT_OF(delay.GetMilliSeconds(), >=, 40);
        EXPECT_OF(delay.GetMilliSeconds(), <, 150);
    }
    EXPECT(reports.ratios.empty());
}
