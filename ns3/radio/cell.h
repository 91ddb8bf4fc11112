// SPDX-License-Identifier: GPL-2.0-only
// An LTE cell of ns-3 between a host behind the core network (gate 0) and the UEs (gates from 1 on).
#pragma once

#include "medium.h"

#include "ns3/lte-module.h"

#include <string>
#include <vector>

namespace radio {

struct CellSettings {
    std::string scheduler;
    uint32_t resourceBlocks = 50;
    double txPowerDbm = 30;
    double noiseFigureDb = 5;
    // Distance of the reference loss 1 m; the model of free space if zero.
    double pathLossExponent = 0;
    double referenceLossDb = 0;
    uint32_t queueBytes = 100000;
    uint64_t coreRateBps = 0;
    int64_t coreDelayNs = 0;
    // A trace of block fading, if any.
    std::string fading;
    std::vector<double> distancesM;
};

class Cell {
public:
    Cell(const CellSettings& settings, Listener* listener);
    void Send(uint32_t from, uint32_t to, uint64_t number, uint32_t wireBytes);

private:
    void Connect(const CellSettings& settings);

    ns3::Ptr<ns3::LteHelper> lte;
    ns3::Ptr<ns3::PointToPointEpcHelper> core;
    ns3::NodeContainer host, enb, ues;
    std::vector<ns3::Ptr<ns3::Socket>> sockets;
    std::vector<ns3::Ipv4Address> addresses;
};

} // namespace radio
