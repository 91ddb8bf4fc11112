// SPDX-License-Identifier: GPL-2.0-only
// Puts engines and relays on nodes: all that most programs need.
#pragma once

#include "host.h"
#include "relay.h"

#include "ns3/node-container.h"

namespace anabranch {

// Name of the socket factory, for applications: BulkSendHelper(anabranch::SOCKETS, ...).
constexpr const char* SOCKETS = "anabranch::SocketFactory";

// Replaces ns-3's TCP on the nodes by the engine. They must have IPv4, IPv6 or both (InternetStackHelper). A socket of
// ns3::TcpSocketFactory ends the program when it sends there.
void Install(const ns3::NodeContainer& nodes);

// Returns the engine of a node; ends the program if it has none.
ns3::Ptr<Host> HostOf(ns3::Ptr<ns3::Node> node);

// Lends the address of `cellular`, a device of the relay, to a destination: one of IPv4 and one of IPv6 if it has both.
// Both nodes have an address of the family on their common network, `local` at the relay and `borrowing` at the
// destination. The destination can use the lent address when this returns; ns-3 checks an IPv6 address for a second.
ns3::Ptr<Relay> Lend(ns3::Ptr<ns3::NetDevice> cellular, ns3::Ptr<ns3::NetDevice> local,
                     ns3::Ptr<ns3::NetDevice> borrowing);

} // namespace anabranch
