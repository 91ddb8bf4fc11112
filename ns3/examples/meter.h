// SPDX-License-Identifier: GPL-2.0-only
// What the server of a download sees of its subflows.
#pragma once

#include "selection.h"

#include <algorithm>
#include <cstdio>

namespace meter {

// One subflow, in the server's statistics.
struct Sample {
    std::string peer;
    double sentBytes, rttMs;
};

// The value of a field of flat JSON; empty if there is none, or null.
inline std::string Field(const std::string& json, const std::string& name)
{
    const std::string key = "\"" + name + "\":";
    const size_t at = json.find(key);
    if (at == std::string::npos)
        return "";
    std::string value = json.substr(at + key.size(), json.find_first_of(",}", at) - at - key.size());
    value.erase(std::remove(value.begin(), value.end(), '"'), value.end());
    return value == "null" ? "" : value;
}

inline std::vector<Sample> SamplesOf(const std::string& statistics)
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

    // Prints each subflow that brought something: how much, and the mean of its smoothed round-trip time.
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
        ns3::Simulator::Schedule(ns3::MilliSeconds(100), &Meter::Measure, this);
    }

    const selection::Network& network;
    std::map<std::string, std::pair<double, uint32_t>> sums;
};

} // namespace meter
