// SPDX-License-Identifier: GPL-2.0-only
// Between the types of ns-3 and those of the engine's C interface.
#pragma once

#include "anabranch.h"

#include "ns3/inet-socket-address.h"
#include "ns3/ipv4-address.h"

#include <string>

namespace anabranch {

AnabranchAddress ToEngine(ns3::Ipv4Address address, uint16_t port = 0);
ns3::InetSocketAddress FromEngine(const AnabranchAddress& address);

// The time of the simulation, ns.
uint64_t NowNs();

// Ends the program if `status` is an error; says in which call, and why. For calls that fail only through a bug.
void Require(AnabranchStatus status, const char* call);

// Ends the program if `status` says that settings are wrong, as ns-3 does with attributes; the message names the field.
void RequireSettings(AnabranchStatus status, const std::string& settings);

} // namespace anabranch
