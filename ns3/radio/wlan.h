// SPDX-License-Identifier: GPL-2.0-only
// An 802.11a channel of ns-3 in ad hoc mode: the destination (gate 0) and the relays (gates from 1 on).
#pragma once

#include "medium.h"

#include <vector>

namespace radio {

struct WlanSettings {
    uint32_t stations = 0;
    uint32_t rateMbps = 54;
    uint32_t queuePackets = 400;
    uint32_t rtsThresholdBytes = 2200;
};

class Wlan {
public:
    Wlan(const WlanSettings& settings, Listener* listener);
    void Send(uint32_t from, uint32_t to, uint64_t number, uint32_t wireBytes);

private:
    ns3::NodeContainer nodes;
    std::vector<ns3::Ptr<ns3::Socket>> sockets;
    std::vector<ns3::Ipv4Address> addresses;
};

} // namespace radio
