// SPDX-License-Identifier: GPL-2.0-only
// The IPv4 or the IPv6 of a node, as the layer below its engine: addresses, and routes of packets.
#pragma once

#include "anabranch.h"
#include "family.h"

#include <map>
#include <set>

namespace anabranch {

class Host;

// A node may lack the family; then there are no addresses, and no routes.
template <class Family>
class Layer {
public:
    using Ip = typename Family::Ip;
    using Address = typename Family::Address;
    using Header = typename Family::Header;
    using Route = typename Family::Route;

    // From now on the host hears when addresses may have changed, where ns-3 tells anybody.
    void Attach(ns3::Ptr<Ip> ip, ns3::Ptr<Host> host);
    void Detach();
    // Null if the node lacks the family.
    ns3::Ptr<Ip> GetIp() const { return ip; }

    // See Host.
    void SetNextHop(Address source, Address nextHop) { nextHops[source] = nextHop; }
    void SetBackup(Address address) { backups.insert(address); }
    void SetOnward(Address destination, ns3::Ptr<Route> route) { onward[destination] = route; }
    // Returns whether packets can leave from this address, whose interface must be up.
    bool IsUsable(Address address) const;
    // Returns whether the engine has an address of this family.
    bool HasAddress() const { return ip && !UsableAddresses().empty(); }
    // Returns the address from which packets to `destination` leave by default; that of nobody if there is no route.
    Address SourceFor(Address destination, ns3::Ptr<ns3::NetDevice> device) const;
    // Addresses may have changed.
    void NoteAddresses() { mayHaveMoved = true; }
    // Tells the engine which addresses have come and gone.
    void Follow(AnabranchEndpoint* engine);
    // Returns the route of a packet that the engine sends, by the device of its source address; null if there is none. A
    // packet that only passes has no such device.
    ns3::Ptr<Route> RouteOf(const Header& header, ns3::Ptr<ns3::Packet> packet) const;

private:
    std::set<Address> UsableAddresses() const;

    ns3::Ptr<Ip> ip;
    bool isWatched = false;
    std::set<Address> addresses;
    std::set<Address> backups;
    std::map<Address, Address> nextHops;
    std::map<Address, ns3::Ptr<Route>> onward;
    bool mayHaveMoved = true;
};

} // namespace anabranch
