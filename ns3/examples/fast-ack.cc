// SPDX-License-Identifier: GPL-2.0-only
// A laptop downloads over all relays around it. Relays pass packets on, or acknowledge at once: then neither the delay nor
// the losses of the local links are in the server's control loop. They may hold data until the laptop wants them. Prints each
// subflow as the server sees it: how much it brought, and the mean of its smoothed round-trip time.
#include "meter.h"

using namespace ns3;

int main(int argc, char** argv)
{
    selection::Setup setup;
    std::string mode = "fast-ack", rates = "3Mbps,3Mbps";
    uint32_t range = 0;
    setup.localDelay = "40ms";
    CommandLine command(__FILE__);
    command.AddValue("relays", "ip: they pass packets on; fast-ack: they acknowledge at once", mode);
    command.AddValue("range", "packets in a range, if relays hold what the destination does not want yet; or 0", range);
    command.AddValue("rates", "rates of the relays' links, e.g. 1Mbps,2Mbps", rates);
    command.AddValue("queue", "packets that wait for each of these links, e.g. 59p", setup.queue);
    command.AddValue("delay", "delay of the local links", setup.localDelay);
    command.AddValue("loss", "share of packets that are lost there towards the laptop", setup.localLoss);
    command.AddValue("settings", "settings of both ends without spaces, e.g. {\"congestion\":\"olia\"}", setup.sockets);
    command.AddValue("seconds", "time of the download, s", setup.seconds);
    command.Parse(argc, argv);
    const std::string holds = R"(, "forwarding": {"range_packets": )" + std::to_string(range) + "}";
    setup.agents = R"({"cooperation": {"relays": ")" + mode + '"' + (range > 0 ? holds : "") + "}}";
    setup.rates = selection::Split(rates);

    selection::Network network(setup);
    const meter::Meter seen(network);
    const uint64_t bytes = network.Run();
    seen.Print();
    std::printf("%.3f Mbit/s\n", static_cast<double>(bytes) * 8e-6 / setup.seconds);
    Simulator::Destroy();
}
