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
