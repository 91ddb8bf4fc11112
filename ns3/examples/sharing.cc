// SPDX-License-Identifier: GPL-2.0-only
// A laptop downloads over all relays around it. The relays report how crowded their links are to the server, which has an
// agent, and a controller that takes that into account. Prints each subflow as the server sees it, and what the relays
// reported last.
#include "meter.h"

using namespace ns3;

namespace {

void Note(std::map<uint32_t, double>* ratios, uint8_t path, double ratio)
{
    (*ratios)[path] = ratio;
}

// The settings of all agents, or of one relay.
std::string Agents(const std::string& relay)
{
    return R"({"cooperation": {"bandwidth_sharing": {}}, "relay": {)" + relay + "}}";
}

} // namespace

int main(int argc, char** argv)
{
    selection::Setup setup;
    std::string rates = "3Mbps,3Mbps", owner = "0,1500kbps,5.5", ratios;
    setup.sockets = R"({"congestion":"mcc-coop"})";
    setup.hasSource = true;
    CommandLine command(__FILE__);
    command.AddValue("rates", "rates of the relays' links, e.g. 1Mbps,2Mbps", rates);
    command.AddValue("owner", "a relay, what its owner receives, and from which second on; or none", owner);
    command.AddValue("rho", "what the relays report instead of what they measure, e.g. 5,2", ratios);
    command.AddValue("settings", "settings of both ends without spaces, e.g. {\"congestion\":\"lia\"}", setup.sockets);
    command.AddValue("seconds", "time of the download, s", setup.seconds);
    command.Parse(argc, argv);
    setup.agents = Agents("");
    setup.rates = selection::Split(rates);
    selection::Read(owner, setup.owners);
    for (const std::string& ratio : selection::Split(ratios))
        setup.relayAgents.emplace(setup.relayAgents.size(), Agents("\"rho\": " + ratio));

    selection::Network network(setup);
    std::map<uint32_t, double> reported;
    network.source->TraceConnectWithoutContext("Load", MakeBoundCallback(&Note, &reported));
    const meter::Meter seen(network);
    const uint64_t bytes = network.Run();
    seen.Print();
    for (const auto& [path, ratio] : reported)
        std::printf("address %u: rho %.3f\n", path, ratio);
    std::printf("%.3f Mbit/s\n", static_cast<double>(bytes) * 8e-6 / setup.seconds);
    Simulator::Destroy();
}
