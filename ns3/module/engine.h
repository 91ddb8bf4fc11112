// SPDX-License-Identifier: GPL-2.0-only
// Between the types of ns-3 and those of the engine's C interface.
#pragma once

#include "anabranch.h"

#include "ns3/address.h"
#include "ns3/ipv4-address.h"
#include "ns3/ipv6-address.h"

#include <string>

namespace anabranch {

// The protocol of segments, in IP headers.
constexpr uint8_t PROTOCOL_TCP = 6;

AnabranchAddress ToEngine(ns3::Ipv4Address address, uint16_t port);
AnabranchAddress ToEngine(ns3::Ipv6Address address, uint16_t port);
// Of an InetSocketAddress or Inet6SocketAddress. An IPv4 address that is mapped into IPv6 is an IPv4 address. Any other
// kind of address gives one of family 0.
AnabranchAddress ToEngine(const ns3::Address& address);

// Returns an InetSocketAddress or Inet6SocketAddress.
ns3::Address FromEngine(const AnabranchAddress& address);
// The same, with IPv4 addresses mapped into IPv6.
ns3::Address MappedFromEngine(const AnabranchAddress& address);
ns3::Ipv4Address Ipv4Of(const AnabranchAddress& address);
ns3::Ipv6Address Ipv6Of(const AnabranchAddress& address);

// As in settings: 10.0.0.1:80 or [2001:db8::1]:80.
std::string TextOf(const AnabranchAddress& address);
// In hexadecimal digits.
std::string TextOf(const uint8_t* octets, size_t count);

// Returns whether the address stands for all of its family.
bool IsAny(const AnabranchAddress& address);
bool IsMulticast(const AnabranchAddress& address);
// An order of addresses with their ports: negative, zero or positive as with memcmp().
int Compare(const AnabranchAddress& left, const AnabranchAddress& right);

// The time of the simulation, ns.
uint64_t NowNs();

// Ends the program if `status` is an error; says in which call, and why. For calls that fail only through a bug.
void Require(AnabranchStatus status, const char* call);

// Ends the program if `status` says that settings are wrong, as ns-3 does with attributes; the message names the field.
void RequireSettings(AnabranchStatus status, const std::string& settings);

} // namespace anabranch
