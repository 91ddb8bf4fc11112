// SPDX-License-Identifier: GPL-2.0-only
// Set-ups of LTE and Wi-Fi that the programs of this folder measure, and that the radio of runs uses: its models are those
// with which the built-in ones agree.
#pragma once

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace models {

// Nodes that stay where they are, in this order.
inline void PlaceAt(const ns3::NodeContainer& nodes, const std::vector<ns3::Vector>& places)
{
    auto positions = ns3::CreateObject<ns3::ListPositionAllocator>();
    for (const ns3::Vector& place : places)
        positions->Add(place);
    ns3::MobilityHelper mobility;
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
}

// The eNB is in the middle, the UEs are in a row beside it.
inline void PlaceInARow(const ns3::NodeContainer& enb, const ns3::NodeContainer& ues,
                        const std::vector<double>& distancesM)
{
    std::vector<ns3::Vector> places{ns3::Vector(0, 0, 0)};
    for (const double distanceM : distancesM)
        places.emplace_back(distanceM, 0, 0);
    PlaceAt(ns3::NodeContainer(enb, ues), places);
}

// The first node is in the middle, the others around it, so that it receives all frames equally strongly.
inline void PlaceAround(const ns3::NodeContainer& nodes, double radiusM)
{
    std::vector<ns3::Vector> places{ns3::Vector(0, 0, 0)};
    const uint32_t others = nodes.GetN() - 1;
    for (uint32_t other = 0; other < others; other++) {
        const double angle = 2 * M_PI * other / others;
        places.emplace_back(radiusM * std::cos(angle), radiusM * std::sin(angle), 0);
    }
    PlaceAt(nodes, places);
}

// The sounding reference signal of N UEs needs a period with N places.
inline uint32_t SoundingPeriodMs(size_t ues)
{
    return ues > 75 ? 320 : ues > 35 ? 160 : 80;
}

// The trace has 10 s of 100 resource blocks, as `anabranch fading` writes it.
template <typename Lte>
void SetFading(Lte& lte, const std::string& trace, double windowS)
{
    lte.SetFadingModel("ns3::TraceFadingLossModel");
    lte.SetFadingModelAttribute("TraceFilename", ns3::StringValue(trace));
    lte.SetFadingModelAttribute("TraceLength", ns3::TimeValue(ns3::Seconds(10)));
    lte.SetFadingModelAttribute("SamplesNum", ns3::UintegerValue(10000));
    lte.SetFadingModelAttribute("WindowSize", ns3::TimeValue(ns3::Seconds(windowS)));
    lte.SetFadingModelAttribute("RbNum", ns3::UintegerValue(100));
}

// ns-3 derives the rate of an ACK from the rate of the data. ControlMode is for RTS.
template <typename Wifi>
void SetRate(Wifi& wifi, uint32_t rateMbps, uint32_t rtsThresholdBytes)
{
    const std::string mode = "OfdmRate" + std::to_string(rateMbps) + "Mbps";
    const std::string control = "OfdmRate" + std::to_string(std::min(rateMbps, 24u)) + "Mbps";
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", ns3::StringValue(mode), "ControlMode",
                                 ns3::StringValue(control), "RtsCtsThreshold",
                                 ns3::UintegerValue(rtsThresholdBytes));
}

} // namespace models
