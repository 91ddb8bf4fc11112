// SPDX-License-Identifier: GPL-2.0-only
// What a relay's modem says about its link.
#pragma once

#include "ns3/data-rate.h"
#include "ns3/net-device.h"

#include <functional>

namespace anabranch {

struct LinkState {
    // Rate that the link would carry now; zero if the modem does not say.
    ns3::DataRate granted;
    // Whether data wait for the link.
    bool isBacklogged = false;
};

using Modem = std::function<LinkState()>;

// Returns the modem of a device. Of a link between two devices, such as point-to-point: the rate of the device at the
// other end, and what waits there. Of LTE: the rate of the whole carrier at the quality of the channel. Other devices
// say nothing.
Modem ModemOf(ns3::Ptr<ns3::NetDevice> device);

} // namespace anabranch
