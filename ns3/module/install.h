// SPDX-License-Identifier: GPL-2.0-only
// Puts engines and relays on nodes: all that most programs need.
#pragma once

#include "destination.h"
#include "host.h"
#include "relay-agent.h"
#include "relay.h"
#include "source.h"

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

// Gives the engine of a node the agent of a destination. `settings` is an object with `target` and `cooperation`, as in
// scenario files: R"({"target": {"bit_rate": "4 Mbit/s"}, "cooperation": {"selection": {"method": "ssrs"}}})"; see
// anabranch_start_agent() in anabranch.h.
ns3::Ptr<Destination> InstallDestination(ns3::Ptr<ns3::Node> node, const std::string& settings);

// Lends the address of `cellular` as `Lend` does, and gives the relay an agent, which reports to the destination what the
// link can spare. The destination must have its agent. `settings`: as there, with `relay`; empty for the same ones.
ns3::Ptr<RelayAgent> InstallRelay(ns3::Ptr<ns3::NetDevice> cellular, ns3::Ptr<ns3::NetDevice> local,
                                  ns3::Ptr<ns3::NetDevice> borrowing, const std::string& settings = "");

// Gives the engine of a server the agent of a source, for destinations that have theirs. `settings`: as there; empty for
// those of the first destination.
ns3::Ptr<Source> InstallSource(ns3::Ptr<ns3::Node> node, const ns3::NodeContainer& destinations,
                               const std::string& settings = "");

} // namespace anabranch
