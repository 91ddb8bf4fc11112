// SPDX-License-Identifier: GPL-2.0-only
// A laptop downloads over all relays around it. Relays pass packets on, or acknowledge at once: then neither the delay nor
// the losses of the local links are in the server's control loop. Prints each subflow as the server sees it: how much it
// brought, and the mean of its smoothed round-trip time.
#include "selection.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

using namespace ns3;

namespace {

// One subflow, in the server's statistics.
struct Sample {
    std::string peer;
    double sentBytes, rttMs;
};

// The value of a field of flat JSON; empty if there is none, or null.
std::string Field(const std::string& json, const std::string& name)
{
    const std::string key = "\"" + name + "\":";
    const size_t at = json.find(key);
    if (at == std::string::npos)
        return "";
    std::string value = json.substr(at + key.size(), json.find_first_of(",}", at) - at - key.size());
    value.erase(std::remove(value.begin(), value.end(), '"'), value.end());
    return value == "null" ? "" : value;
}

std::vector<Sample> SamplesOf(const std::string& statistics)
{
    std::vector<Sample> samples;
    std::istringstream list(statistics.substr(std::min(statistics.find("\"subflows\":["), statistics.size())));
    for (std::string subflow; std::getline(list, subflow, '{');) {
        const std::string peer = Field(subflow, "remote"), rtt = Field(subflow, "srtt_ns");
        if (!peer.empty())
            samples.push_back({peer, std::stod(Field(subflow, "sent_bytes")), rtt.empty() ? 0 : std::stod(rtt) * 1e-6});
    }
    return samples;
}

// The subflows of the download, sampled ten times in a second.
class Meter {
public:
    explicit Meter(const selection::Network& network) : network(network) { Measure(); }

    void Print() const
    {
        for (const Sample& last : SamplesOf(network.Statistics())) {
            const auto found = sums.find(last.peer);
            if (last.sentBytes == 0 || found == sums.end())
                continue;
            const auto [sum, count] = found->second;
            std::printf("%s  %.0f octets  %.3f ms\n", last.peer.c_str(), last.sentBytes, sum / count);
        }
    }

private:
    void Measure()
    {
        for (const Sample& sample : SamplesOf(network.Statistics())) {
            if (sample.rttMs == 0)
                continue;
            auto& [sum, count] = sums[sample.peer];
            sum += sample.rttMs;
            count++;
        }
        Simulator::Schedule(MilliSeconds(100), &Meter::Measure, this);
    }

    const selection::Network& network;
    std::map<std::string, std::pair<double, uint32_t>> sums;
};

} // namespace

int main(int argc, char** argv)
{
    selection::Setup setup;
    std::string mode = "fast-ack", rates = "3Mbps,3Mbps";
    setup.localDelay = "40ms";
    CommandLine command(__FILE__);
    command.AddValue("relays", "ip: they pass packets on; fast-ack: they acknowledge at once", mode);
    command.AddValue("rates", "rates of the relays' links, e.g. 1Mbps,2Mbps", rates);
    command.AddValue("queue", "packets that wait for each of these links, e.g. 59p", setup.queue);
    command.AddValue("delay", "delay of the local links", setup.localDelay);
    command.AddValue("loss", "share of packets that are lost there towards the laptop", setup.localLoss);
    command.AddValue("settings", "settings of both ends without spaces, e.g. {\"congestion\":\"olia\"}", setup.sockets);
    command.AddValue("seconds", "time of the download, s", setup.seconds);
    command.Parse(argc, argv);
    setup.agents = R"({"cooperation": {"relays": ")" + mode + R"("}})";
    setup.rates = selection::Split(rates);

    selection::Network network(setup);
    const Meter meter(network);
    const uint64_t bytes = network.Run();
    meter.Print();
    std::printf("%.3f Mbit/s\n", static_cast<double>(bytes) * 8e-6 / setup.seconds);
    Simulator::Destroy();
}
